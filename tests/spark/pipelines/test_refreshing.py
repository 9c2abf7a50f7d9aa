"""Static tables that change while a pipeline runs."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines
from tests.spark.pipelines.test_faults import wait_until

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


@pytest.mark.timeout(300)
def test_a_running_pipeline_joins_new_records_with_the_new_rows_of_a_table(
    pipelines: Pipelines, cluster: Cluster, send: Callable[..., None], tmp_path: Path
) -> None:
    from ottla.spark.pipelines.state_folder import StateFolder

    topic = cluster.topic()
    cities = tmp_path / "cities.csv"
    cities.write_text("city,country\nPrag,CZ\n")
    pipeline = pipelines.load(FILE.format(topic=topic), f"{topic}-refreshed")
    said: list[str] = []
    done: list[Any] = []

    def run() -> None:
        done.append(pipelines.run_loaded(pipeline, available_now=False, say=said.append))

    def countries() -> dict[int, str | None]:
        import pyarrow.parquet as pq

        files = [pq.ParquetFile(file).read().to_pylist() for file in (tmp_path / "table").glob("*.parquet")]
        return {row["id"]: row["country"] for rows in files for row in rows}

    thread = threading.Thread(target=run)
    thread.start()
    try:
        send(topic, [{"id": 1, "city": "Prag"}, {"id": 2, "city": "Wien"}])
        wait_until(lambda: len(countries()) == 2 or not thread.is_alive())
        cities.write_text("city,country\nPrag,CZ\nWien,AT\n")
        wait_until(lambda: "cities changed; restarting the queries" in said or not thread.is_alive())
        send(topic, [{"id": 3, "city": "Wien"}])
        wait_until(lambda: len(countries()) == 3 or not thread.is_alive())
        # A table that cannot be read leaves the rows there were.
        cities.unlink()
        wait_until(lambda: any("using the old rows" in line for line in said) or not thread.is_alive())
    finally:
        StateFolder(pipeline.state).ask_to_stop()
        thread.join()

    # Rows that were joined before the change stay as they are.
    assert countries() == {1: "CZ", 2: None, 3: "AT"}
    assert [status.state for status in done] == ["stopped"]


def test_contradictory_keys_of_tables_are_refused(tmp_path: Path) -> None:
    text = FILE.format(topic="orders")
    for change, said in (
        (('format = "csv"', 'format = "jdbc"'), "needs url"),
        (('refresh = "1s"', 'refresh = "often"'), "refresh: 'often' is not a valid duration"),
        (('refresh = "1s"', 'query = "SELECT 1"'), 'query: is for format = "jdbc"; this one is csv'),
        (('path = "cities.csv"', 'url = "jdbc:x:y"\ntable = "t"'), "needs path"),
    ):
        with pytest.raises(ConfigError, match=said):
            parse_pipeline(text.replace(*change), tmp_path / "shop.toml", {})
