from __future__ import annotations

import pytest

from ottla.cli.benchmark.results import COLUMNS, Measured, percentile


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (90, 90), (99, 99), (99.9, 100), (100, 100), (0, 1)])
def test_a_percentile_is_the_smallest_value_not_exceeded_by_that_share(percent: float, value: int) -> None:
    assert percentile(range(1, 101), percent) == value


def test_one_value_is_every_percentile_and_no_values_have_none() -> None:
    assert percentile([7], 50) == percentile([7], 99.9) == 7
    assert percentile([], 50) is None


def test_a_row_has_rates_and_milliseconds() -> None:
    row = Measured("produce", 1000, 500_000, 0.5, [0.003, 0.001, 0.002]).row()
    assert tuple(row) == COLUMNS
    assert row == {
        "measured": "produce",
        "messages": 1000,
        "seconds": 0.5,
        "messages_per_s": 2000,
        "mb_per_s": 1.0,
        "p50_ms": 2.0,
        "p90_ms": 3.0,
        "p99_ms": 3.0,
        "p99.9_ms": 3.0,
        "max_ms": 3.0,
    }
    assert Measured("consume", 1, 1, 1.0).row()["p50_ms"] is None
