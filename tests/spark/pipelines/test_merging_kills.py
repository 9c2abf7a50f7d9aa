"""Kill a driver while it merges, evolves and expires: tables end with the contents of a plain dictionary."""

import json
import os
import random
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import QUICK_JVM, Cluster
from tests.spark.pipelines import test_object_stores as in_stores
from tests.spark.pipelines.conftest import Pipelines
from tests.spark.pipelines.object_stores import Bucket
from tests.spark.pipelines.test_evolution import rows_of
from tests.spark.pipelines.test_faults import Driver, wait_until

from ottla import Producer
from ottla.spark.pipelines.definition import Pipeline
from ottla.spark.pipelines.loading import load_pipeline

pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif("SPARK_KILLS" not in os.environ, reason="long; `make pipeline-test` runs it"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KILLS = int(os.environ.get("SPARK_KILLS", "0"))
RECORDS = 1500 * KILLS
KEYS = 120
FILE = """
broker = "{servers}"
every = "100 ms"
[source.orders]
topics = "{topic}"
schema = "id bigint, part string, {columns}"
nulls = "delete"
key = "id"
max_per_batch = 200
dead_letters = "none"
[sink.delta]
kind = "delta"
path = "{place}/delta"
from = "orders"
key = "id"
keep_versions = 2
evolution = "widen"
[sink.iceberg]
kind = "iceberg"
path = "{place}/iceberg"
table = "shop.orders"
from = "orders"
key = "id"
partition_by = "part"
keep_versions = 2
compact_every = 7
evolution = "widen"
{catalog}
[sink.lite]
kind = "sqlite"
path = "shop.db"
table = "orders"
from = "orders"
key = "id"
evolution = "widen"
[spark]
"spark.driver.extraJavaOptions" = "{java}"
"""
DATABASES = """
[step.plain]
sql = "SELECT id, part, CAST(version AS bigint) AS version, _deleted, _topic, _partition, _offset FROM orders"
[sink.postgresql]
kind = "postgresql"
url = "{url}"
table = "{table}"
from = "orders"
key = "id"
evolution = "widen"
[sink.derby]
kind = "jdbc"
url = "jdbc:derby:{folder}/derby;create=true"
table = "orders"
from = "plain"
key = "id"
"""


class Story:
    """The records, the file, and what the tables must have in the end."""

    def __init__(self, cluster: Cluster, folder: Path, text: str) -> None:
        self.cluster = cluster
        self.folder = folder
        self.topic = cluster.topic(partitions=2)
        self.file = folder / "merging.toml"
        self.model: dict[int, tuple[str, int]] = {}
        self.is_over = threading.Event()
        self._text = text

    def describe(self, columns: str) -> None:
        given = {"servers": self.cluster.servers, "topic": self.topic, "java": QUICK_JVM, "columns": columns}
        text = self._text
        for name, value in given.items():
            text = text.replace(f"{{{name}}}", value)
        self.file.write_text(text)

    def load(self) -> None:
        records = random.Random(4)
        with Producer(self.cluster.servers) as producer:
            for version in range(RECORDS):
                key = records.randrange(KEYS)
                row = {"id": key, "part": f"p{version % 3}", "version": version, "note": f"n{version}"}
                value = None if records.random() < 0.25 else json.dumps(row).encode()
                producer.send(self.topic, value, key=b"%d" % key, partition=key % 2)
                self.model.pop(key, None)
                if value is not None:
                    self.model[key] = (str(row["part"]), version)
                if version % 100 == 0:
                    producer.flush()
                    self.is_over.wait(0.1)

    def commits(self) -> int:
        """Micro-batches of the database: the other sinks are about as far."""
        with closing(sqlite3.connect(self.folder / "shop.db", timeout=60)) as database:
            try:
                [(last,)] = database.execute("SELECT max(batch) FROM ottla_batches")
            except sqlite3.OperationalError:
                return 0  # there is no table yet
        return int(last or 0)

    def live_and_die(self) -> Pipeline:
        """Drivers are killed at random points; a column is added and one becomes wider during the run."""
        chance = random.Random(os.environ.get("SPARK_SEED", "17"))
        self.describe("version int")
        loader = threading.Thread(target=self.load)
        loader.start()
        for number in range(KILLS):
            if number == KILLS // 2:
                self.describe("version bigint, note string")
            driver = Driver(self.file)
            target = self.commits() + chance.randint(1, 4)
            try:
                wait_until(lambda: self.commits() >= target or not driver.is_alive())  # noqa: B023 - called at once
                assert driver.is_alive(), (self.folder / "driver.log").read_text()
                self.is_over.wait(chance.random() * 0.5)
            finally:
                driver.kill()
        self.is_over.set()
        loader.join()
        self.describe("version bigint, note string")
        return load_pipeline(self.file)

    def check(self, kind: str, rows: list[dict[str, Any]]) -> None:
        expected = [(key, *self.model[key]) for key in sorted(self.model)]
        assert [(row["id"], row["part"], row["version"]) for row in rows] == expected, kind
        assert {row.get("note") for row in rows} <= {None, *(f"n{version}" for _, _, version in expected)}


def test_tables_are_correct_after_a_driver_is_killed_while_merging(
    pipelines: Pipelines, cluster: Cluster, postgresql: str, tmp_path: Path
) -> None:
    for package in ("deltalake", "pyiceberg"):
        pytest.importorskip(package)
    databases = DATABASES.format(url=postgresql, table=f"merged_{tmp_path.name}", folder=tmp_path)
    text = FILE.replace("{place}", str(tmp_path)).replace("{catalog}", "")
    story = Story(cluster, tmp_path, text.replace("[spark]", f"{databases}[spark]"))

    pipeline = story.live_and_die()
    assert pipelines.run_loaded(pipeline).state == "finished"

    for kind in ("delta", "iceberg", "postgresql"):
        story.check(kind, rows_of(pipeline.sinks[kind]))
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.row_factory = sqlite3.Row
        story.check("sqlite", [dict(row) for row in database.execute("SELECT * FROM orders ORDER BY id")])
    derby = pipelines.spark.read.format("jdbc").options(url=f"jdbc:derby:{tmp_path}/derby", dbtable="orders").load()
    story.check("derby", sorted((row.asDict() for row in derby.collect()), key=lambda row: row["id"]))


def test_tables_in_a_store_are_correct_after_a_driver_is_killed_while_merging(
    pipelines: Pipelines, cluster: Cluster, bucket: Bucket, tmp_path: Path
) -> None:
    for package in ("deltalake", "pyiceberg"):
        pytest.importorskip(package)
    place = f"{bucket.address}/{tmp_path.name}"
    catalog = in_stores.ICEBERG.format(folder=tmp_path).replace('table = "shop.orders"\n', "")
    text = (
        FILE.replace("{place}", place).replace("{catalog}", catalog).replace("[spark]", f"{bucket.storage()}\n[spark]")
    )
    story = Story(cluster, tmp_path, text)

    pipeline = story.live_and_die()
    assert pipelines.run_loaded(pipeline).state == "finished"

    for kind in ("delta", "iceberg"):
        story.check(kind, in_stores.rows_of(kind, place, bucket, tmp_path))
