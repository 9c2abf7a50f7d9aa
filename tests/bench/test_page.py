"""Tables of benchmarks on docs/performance.md."""

from __future__ import annotations

import pytest
from bench.__main__ import BENCHES
from bench.page import PAGE, marked, why_not, with_table

TEXT = "a\n<!-- bench: log -->\n| old |\n<!-- end of bench -->\nb\n<!-- bench: rest -->\n| r |\n<!-- end of bench -->\n"


def test_a_new_table_replaces_the_old_one_and_nothing_else() -> None:
    changed = with_table(TEXT, "log", "| new |\n| 1 |")

    assert changed == TEXT.replace("| old |", "| new |\n| 1 |")


def test_a_benchmark_without_a_place_on_the_page_is_named() -> None:
    with pytest.raises(KeyError, match="no place for the table of wire"):
        with_table(TEXT, "wire", "| new |")


def test_every_table_on_the_page_belongs_to_a_benchmark() -> None:
    page = PAGE.read_text()

    assert set(marked(page)) <= set(BENCHES)
    for name in marked(page):
        assert with_table(page, name, "| x |").count("<!-- end of bench -->") == len(marked(page))


def test_a_short_run_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_SHORT", "1")

    assert why_not() == "BENCH_SHORT is set"
