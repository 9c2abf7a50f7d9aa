"""The tables of changes in docs/pipelines.md match the test cases, row by row."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")

from tests.spark.pipelines.test_evolution import CASES, KINDS
from tests.spark.pipelines.test_upgrades import ALLOWED, REFUSED, REFUSED_BY_RULE

PAGE = Path(__file__).parents[3] / "docs" / "pipelines.md"


def table(heading: str) -> list[list[str]]:
    """The cells of the table with this first cell, without its head."""
    lines = PAGE.read_text("utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |")) + 2
    rows = []
    while lines[first].startswith("|"):
        rows.append([cell.strip() for cell in lines[first].strip("|").split("|")])
        first += 1
    return rows


def test_every_documented_change_of_a_pipeline_matches_its_test_case() -> None:
    documented = {case: outcome for _, outcome, cases in table("change") for case in cases.split(", ")}

    assert {case for case, outcome in documented.items() if outcome == "rejected"} == {*REFUSED, *REFUSED_BY_RULE}
    assert {case for case, outcome in documented.items() if outcome.startswith("accepted")} == {*ALLOWED}


def test_every_cell_of_the_table_of_changed_columns_is_what_its_case_expects() -> None:
    documented = {cells[-1]: cells[1:-1] for cells in table("change of the query")}

    assert documented.keys() | {"add a column under strict", "widen under add"} == CASES.keys()
    for case, cells in documented.items():
        outcomes = CASES[case][3]
        assert {kind: cell == "refused" for kind, cell in zip(KINDS, cells, strict=True)} == {
            kind: bool(outcomes[kind]) for kind in KINDS
        }, case
