"""Kill a driver while it merges, expires and deletes files: tables end with the contents of a plain dictionary."""

import json
import os
import random
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.spark.conftest import QUICK_JVM, Cluster
from tests.spark.pipelines.conftest import Pipelines
from tests.spark.pipelines.test_evolution import rows_of
from tests.spark.pipelines.test_faults import Driver, wait_until

from ottla import Producer
from ottla.spark.pipelines.loading import load_pipeline

pytestmark = [
    pytest.mark.timeout(1800),
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
schema = "id bigint, part string, version bigint{more}"
nulls = "delete"
key = "id"
max_per_batch = 200
dead_letters = "none"
[sink.delta]
kind = "delta"
path = "delta"
key = "id"
keep_versions = 2
[sink.iceberg]
kind = "iceberg"
path = "warehouse"
table = "shop.orders"
key = "id"
partition_by = "part"
keep_versions = 2
compact_every = 7
[sink.lite]
kind = "sqlite"
path = "shop.db"
table = "orders"
key = "id"
[spark]
"spark.driver.extraJavaOptions" = "{java}"
"""


def commits(folder: Path) -> int:
    """Of the Delta table: its log is shortened, and its numbers grow."""
    return max((int(file.stem) for file in (folder / "delta" / "_delta_log").glob("0*.json")), default=0)


@pytest.mark.skipif(not KILLS, reason="long; `make pipeline-test` runs it")
def test_tables_are_correct_after_a_driver_is_killed_while_merging(
    pipelines: Pipelines, cluster: Cluster, tmp_path: Path
) -> None:
    for package in ("deltalake", "pyiceberg"):
        pytest.importorskip(package)
    topic = cluster.topic(partitions=2)
    file = tmp_path / "merging.toml"
    chance = random.Random(os.environ.get("SPARK_SEED", "17"))
    is_over = threading.Event()
    model: dict[int, tuple[str, int]] = {}

    def describe(more: str) -> None:
        file.write_text(FILE.format(servers=cluster.servers, topic=topic, more=more, java=QUICK_JVM))

    def load() -> None:
        records = random.Random(4)
        with Producer(cluster.servers) as producer:
            for version in range(RECORDS):
                key = records.randrange(KEYS)
                row = {"id": key, "part": f"p{version % 3}", "version": version, "note": f"n{version}"}
                value = None if records.random() < 0.25 else json.dumps(row).encode()
                producer.send(topic, value, key=b"%d" % key, partition=key % 2)
                model.pop(key, None)
                if value is not None:
                    model[key] = (str(row["part"]), version)
                if version % 100 == 0:
                    producer.flush()
                    is_over.wait(0.1)

    describe("")
    loader = threading.Thread(target=load)
    loader.start()
    for number in range(KILLS):
        if number == KILLS // 2:
            describe(", note string")  # an additional column during the run
        driver = Driver(file)
        target = commits(tmp_path) + chance.randint(1, 4)
        try:
            wait_until(lambda: commits(tmp_path) >= target or not driver.is_alive())  # noqa: B023 - called at once
            assert driver.is_alive(), (tmp_path / "driver.log").read_text()
            is_over.wait(chance.random() * 0.5)
        finally:
            driver.kill()
    is_over.set()
    loader.join()

    pipeline = load_pipeline(file)
    assert pipelines.run_loaded(pipeline).state == "finished"

    expected = [(key, *model[key]) for key in sorted(model)]
    for kind in ("delta", "iceberg"):
        rows = rows_of(pipeline.sinks[kind])
        assert [(row["id"], row["part"], row["version"]) for row in rows] == expected, kind
        assert {row["note"] for row in rows} <= {None, *(f"n{version}" for _, _, version in expected)}
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        assert database.execute("SELECT id, part, version FROM orders ORDER BY id").fetchall() == expected
