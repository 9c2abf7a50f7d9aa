"""Kills at random points under load: each row arrives once."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.serving import Serve
from tests.spark.conftest import QUICK_JVM, Cluster
from tests.spark.pipelines.conftest import Pipelines
from tests.spark.pipelines.test_evolution import rows_of

import ottla
from ottla import Admin, Producer, TopicPartition
from ottla.spark.pipelines.definition import Pipeline
from ottla.spark.pipelines.loading import load_pipeline

pytestmark = pytest.mark.timeout(600)
Send = Callable[..., None]
Read = Callable[[str], list[Any]]
PATIENCE_S = 180.0
TOTAL = 3000

FILE = """
broker = "{servers}"
every = "100 ms"
[source.orders]
topics = "{topic}"
schema = "id bigint"
max_per_batch = 400
dead_letters = "none"
[sink.out]
kind = "topic"
topic = "{topic}.out"
"""
FILES = """
[sink.parquet]
kind = "parquet"
path = "table"
[sink.delta]
kind = "delta"
path = "delta"
"""
TABLES = """
[sink.iceberg]
kind = "iceberg"
path = "iceberg"
table = "shop.orders"
[sink.postgresql]
kind = "postgresql"
url = "{url}"
table = "{table}"
[sink.sqlite]
kind = "sqlite"
path = "shop.db"
table = "orders"
[sink.derby]
kind = "jdbc"
url = "jdbc:derby:{folder}/derby;create=true"
table = "orders"
"""


def wait_until(is_so: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(PATIENCE_S / 0.05)):
        if is_so():
            return
        pause.wait(0.05)
    pytest.fail("the condition never held")


class Driver:
    """`ottla pipeline run` as a process, with a JVM and Python workers below it."""

    def __init__(self, file: Path) -> None:
        command = [sys.executable, "-m", "ottla", "pipeline", "run", str(file), "--master", "local[2]"]
        self._log = (file.parent / "driver.log").open("ab")
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(Path(ottla.__file__).parents[1])},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the driver first, then its remaining workers, so that a new driver does not meet them."""
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._log.close()


def count(servers: str, topic: str) -> int:
    at = TopicPartition(topic, 0)
    with Admin(servers) as admin:
        if topic not in admin.list_topics():
            return 0
        return int(admin.latest_offsets([at])[at].offset)


def kill_under_load(cluster: Cluster, folder: Path, sinks: str, total: int) -> tuple[Pipeline, str]:
    """Kill drivers at random points while records arrive. Each has written some rows to the sinks and to a topic."""
    topic = cluster.topic(partitions=2)
    file = folder / "killed.toml"
    quick = f'[spark]\n"spark.driver.extraJavaOptions" = "{QUICK_JVM}"\n'
    file.write_text(FILE.format(servers=cluster.servers, topic=topic) + sinks + quick)
    chance = random.Random(os.environ.get("SPARK_SEED", "7"))
    is_over = threading.Event()

    def load() -> None:
        with Producer(cluster.servers) as producer:
            for number in range(total):
                producer.send(topic, json.dumps({"id": number}).encode())
                if number % 100 == 0:
                    producer.flush()
                    is_over.wait(0.05)

    loader = threading.Thread(target=load)
    loader.start()
    written = 0
    for _ in range(int(os.environ.get("SPARK_KILLS", "1"))):
        driver = Driver(file)
        written += chance.randint(1, 800)
        # After this many rows, at an arbitrary point.
        try:
            wait_until(lambda: count(cluster.servers, f"{topic}.out") > written or not driver.is_alive())  # noqa: B023
            assert driver.is_alive(), (folder / "driver.log").read_text()
            is_over.wait(chance.random() * 0.4)
        finally:
            driver.kill()
        written = count(cluster.servers, f"{topic}.out")
    is_over.set()
    loader.join()
    assert written < total
    return load_pipeline(file), f"{topic}.out"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_driver_that_is_killed_at_random_points_under_load_leaves_each_row_once(
    pipelines: Pipelines, cluster: Cluster, read: Read, tmp_path: Path
) -> None:
    deltalake = pytest.importorskip("deltalake")
    expected = list(range(TOTAL))
    pipeline, out = kill_under_load(cluster, tmp_path, FILES, TOTAL)

    assert pipelines.run_loaded(pipeline).state == "finished"

    assert sorted(row.id for row in pipelines.rows()) == expected
    table = deltalake.DeltaTable(str(tmp_path / "delta")).to_pyarrow_table()
    assert sorted(table.column("id").to_pylist()) == expected
    assert sorted(json.loads(record.value)["id"] for record in read(out)) == expected


@pytest.mark.timeout(3600)
@pytest.mark.skipif("SPARK_KILLS" not in os.environ, reason="long; `make pipeline-test` runs it")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_killed_driver_leaves_each_row_once_in_iceberg_and_databases(
    pipelines: Pipelines, cluster: Cluster, postgresql: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyiceberg")
    sinks = TABLES.format(url=postgresql, table=f"killed_{tmp_path.name}", folder=tmp_path)
    expected = list(range(TOTAL))
    pipeline, _ = kill_under_load(cluster, tmp_path, sinks, TOTAL)

    assert pipelines.run_loaded(pipeline).state == "finished"

    for kind in ("iceberg", "postgresql"):
        assert [row["id"] for row in rows_of(pipeline.sinks[kind])] == expected, kind
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        assert [each for (each,) in database.execute("SELECT id FROM orders ORDER BY id")] == expected
    derby = pipelines.spark.read.format("jdbc").options(url=f"jdbc:derby:{tmp_path}/derby", dbtable="orders").load()
    assert sorted(row.id for row in derby.collect()) == expected


WAITING = """
from pathlib import Path


def waiting(spark, tables):
    def wait(batches):
        import time

        for batch in batches:
            Path("{folder}/reached").touch()
            while not Path("{folder}/go-on").exists():
                time.sleep(0.02)
            yield batch

    return tables["orders"].select("id").mapInArrow(wait, "id bigint")
"""


def test_a_broker_kill_during_a_micro_batch_loses_no_row(pipelines: Pipelines, tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    with Serve(tmp_path / "broker") as broker:
        servers = broker.ready["kafka"]
        port = servers.rpartition(":")[2]
        with Producer(servers) as producer:
            for number in range(1000):
                producer.send("orders", json.dumps({"id": number}).encode())
        (tmp_path / "steps.py").write_text(WAITING.format(folder=tmp_path))
        slow = '[step.slow]\npython = "steps.py:waiting"\n[sink.parquet]\nkind = "parquet"\npath = "table"\n'
        (tmp_path / "shop.toml").write_text(FILE.format(servers=servers, topic="orders") + slow)
        done: list[Any] = []
        pipeline = load_pipeline(tmp_path / "shop.toml")
        runner = threading.Thread(target=lambda: done.append(pipelines.run_loaded(pipeline)))
        runner.start()
        wait_until(lambda: (tmp_path / "reached").exists() or not runner.is_alive())
        broker.process.kill()
        broker.process.wait()
    with Serve(tmp_path / "broker", "--port", port) as broker:
        (tmp_path / "go-on").touch()
        runner.join(PATIENCE_S)
        assert [status.state for status in done] == ["finished"]
        assert sorted(row.id for row in pipelines.rows()) == list(range(1000))
        with ottla.Consumer(
            servers, ["orders.out"], auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer:
            found: list[int] = []
            while records := consumer.poll(timeout_ms=500):
                found += [json.loads(record.value)["id"] for record in records]
        assert sorted(found) == list(range(1000))
