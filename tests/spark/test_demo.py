"""The demonstration, with a short day."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")

from examples.shop.chart import bars, share
from examples.shop.demo import Demo, Plan
from examples.shop.shop import Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)


def test_every_event_is_in_its_table_at_the_end(spark: "SparkSession", tmp_path: Path) -> None:
    assert spark.version
    said: list[str] = []
    plan = Plan(
        folder=tmp_path / "demo", minutes=4, orders_per_minute=20, minute_s=0.05, archive_every_s=0.1, say=said.append
    )
    outcome = Demo(plan).run()

    assert outcome.sent["orders"] > 50
    assert outcome.paid == outcome.sent["payments"]
    assert outcome.all_clicks == outcome.sent["clicks"]
    assert 0 < outcome.archived_clicks < outcome.sent["clicks"]
    # The window of the last one after hours is not closed yet.
    assert outcome.sent["orders"] - outcome.late_orders - 1 <= outcome.orders_in_table <= outcome.sent["orders"]
    assert any("█" in line for line in said)


def test_the_same_seed_makes_the_same_day() -> None:
    assert [*Shop(seed=3).minute(1)] == [*Shop(seed=3).minute(1)]
    assert [*Shop(seed=3).minute(1)] != [*Shop(seed=4).minute(1)]


def test_bars_are_as_high_as_their_values() -> None:
    assert bars([0, 1, 2], ["a", "c"], height=2) == [
        "        2 │  █",
        "          │ ██",
        "        0 └───",
        "           a c",
    ]
    assert share("tea", 1, 2, width=4) == "           tea ██·· 1"
