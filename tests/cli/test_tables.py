from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.tables import GAP, fitted, layout, spoken, width_of


def test_numbers_are_right_aligned_and_text_left_aligned() -> None:
    rows = [{"name": "a", "count": 5}, {"name": "longer", "count": 1000}]
    assert layout(("name", "count"), rows) == [
        "NAME    COUNT",
        "a           5",
        "longer   1000",
    ]


def test_a_table_without_rows_is_its_heading() -> None:
    assert layout(("in_sync", "b"), []) == ["IN SYNC  B"]


def test_the_widest_column_is_cut_to_fit_the_terminal() -> None:
    rows = [{"topic": "orders", "value": "x" * 100}]
    heading, line = layout(("topic", "value"), rows, width=30)
    assert heading == "TOPIC   VALUE"
    assert line == "orders  " + "x" * 21 + "…"
    assert len(line) == 30


def test_without_a_width_nothing_is_cut() -> None:
    assert layout(("v",), [{"v": "x" * 500}])[1] == "x" * 500


def test_a_number_is_never_cut_but_its_heading_may_be() -> None:
    rows = [{"name": "a" * 20, "messages_per_s": 1234567}]
    assert layout(("name", "messages_per_s"), rows, width=12) == [
        "NAME    MESSAG…",
        "aaaaa…  1234567",
    ]


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 30)), min_size=1, max_size=8), st.integers(20, 200))
def test_a_row_fits_unless_all_columns_have_their_minimum_width(columns: list[tuple[int, int]], total: int) -> None:
    widths, least = [width for width, _ in columns], [narrow for _, narrow in columns]
    fitting = fitted(widths, least, total)
    assert all(min(before, narrow) <= now <= before for now, before, narrow in zip(fitting, widths, least, strict=True))
    fits = sum(fitting) + GAP * (len(fitting) - 1) <= total
    assert fits or all(now <= narrow for now, narrow in zip(fitting, least, strict=True))


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, "-"),
        ("", "-"),
        ([], "-"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        ([1, 2], "1,2"),
        ("a\nb\x1b[31m", "a\\nb\\x1b[31m"),
    ],
)
def test_a_cell_is_one_line_without_terminal_escapes(value: object, cell: str) -> None:
    assert spoken(value) == cell


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("\u00e9", 1), ("e\u0301", 1)])
def test_a_width_is_counted_in_terminal_columns(text: str, width: int) -> None:
    assert width_of(text) == width


def test_wide_characters_are_cut_where_they_would_not_fit() -> None:
    heading, line = layout(("name",), [{"name": "日本日本日本"}], width=8)
    assert (heading, line) == ("NAME", "日本日…")
