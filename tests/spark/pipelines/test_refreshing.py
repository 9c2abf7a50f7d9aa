"""Static tables that change while a pipeline runs."""

from pathlib import Path
from typing import Any

import pytest

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.definition import StaticTable
from ottla.spark.pipelines.loading import parse_pipeline
from ottla.spark.pipelines.refreshing import Refresher, content_mark


def test_a_table_is_checked_when_due_and_reported_only_if_changed() -> None:
    marks: dict[str, Any] = {"cities": 1, "often": 1, "far": None}
    tables = [
        StaticTable(name="cities", format="csv", refresh_ms=10_000),
        StaticTable(name="often", format="csv", refresh_ms=1000),
        StaticTable(name="far", format="parquet", refresh_ms=20_000),
        StaticTable(name="never", format="csv"),
    ]
    refresher = Refresher(tables, 0.0, lambda table: marks[table.name])

    marks["cities"] = 2
    assert refresher.changed(9.0) == []
    assert refresher.changed(10.0) == ["cities"]
    marks["often"] = 2
    assert refresher.changed(10.5) == []
    assert refresher.changed(11.0) == ["often"]
    # Whether something at an address has changed cannot be told, so that it counts as changed.
    assert refresher.changed(20.0) == ["far"]


def test_files_that_are_replaced_added_or_removed_leave_another_mark(tmp_path: Path) -> None:
    table = StaticTable(name="t", format="csv", path=str(tmp_path))
    marks = [content_mark(table)]
    (tmp_path / "a.csv").write_text("1")
    marks.append(content_mark(table))
    (tmp_path / "a.csv").write_text("12")
    marks.append(content_mark(table))
    assert len(set(marks)) == 3
    assert content_mark(StaticTable(name="t", format="csv", path="s3://x/y")) is None


FILE = """
every = "100 ms"
[source.orders]
topics = "{topic}"
schema = "id bigint, city string"
dead_letters = "none"
[table.cities]
format = "csv"
path = "cities.csv"
options = {{ header = true }}
refresh = "1s"
[step.named]
sql = "SELECT o.id, c.country FROM orders o LEFT JOIN cities c ON o.city = c.city"
[sink.table]
kind = "parquet"
path = "table"
"""


def test_contradictory_keys_of_tables_are_refused(tmp_path: Path) -> None:
    text = FILE.format(topic="orders")
    for change, said in (
        (('format = "csv"', 'format = "jdbc"'), "needs url"),
        (('refresh = "1s"', 'refresh = "often"'), "refresh: 'often' is not a duration"),
        (('refresh = "1s"', 'query = "SELECT 1"'), 'query: is for format = "jdbc"; this one is csv'),
        (('path = "cities.csv"', 'url = "jdbc:x:y"\ntable = "t"'), "needs path"),
    ):
        with pytest.raises(ConfigError, match=said):
            parse_pipeline(text.replace(*change), tmp_path / "shop.toml", {})
