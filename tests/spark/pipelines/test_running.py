"""Continuous pipelines, two at once, and their status."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines
from tests.spark.pipelines.test_faults import wait_until

from ottla import Admin, TopicPartition
from ottla.cli.connecting import Reach
from ottla.cli.pipelines.reports import SeenPipeline, read_statuses, rows
from ottla.cli.profiles import Profile
from ottla.core.errors import OttlaError
from ottla.spark.pipelines.state_folder import StateFolder

pytestmark = pytest.mark.timeout(300)

FILE = """
every = "100 ms"
[source.numbers]
topics = "{topic}"
schema = "id bigint"
dead_letters = "none"
[sink.table]
kind = "sqlite"
path = "shop.db"
table = "{table}"
"""


def seen(cluster: Cluster, name: str) -> SeenPipeline:
    [found] = [
        each for each in asyncio.run(read_statuses(Reach(Profile(servers=cluster.servers)))) if each.name == name
    ]
    return found


def numbers(pipelines: Pipelines, table: str) -> list[int]:
    import sqlite3

    with closing(sqlite3.connect(pipelines.folder / "shop.db")) as database:
        try:
            return sorted(number for (number,) in database.execute(f"SELECT id FROM {table}"))  # noqa: S608
        except sqlite3.OperationalError:
            return []  # there is no table yet


def test_two_pipelines_run_at_once_until_they_are_stopped(
    pipelines: Pipelines, cluster: Cluster, send: Callable[..., None]
) -> None:
    topic = cluster.topic()
    loaded = {name: pipelines.load(FILE.format(topic=topic, table=name), f"{topic}-{name}") for name in ("one", "two")}
    states = {name: StateFolder(pipeline.state) for name, pipeline in loaded.items()}
    done: dict[str, Any] = {}

    def run(name: str) -> None:
        done[name] = pipelines.run_loaded(loaded[name], available_now=False)

    threads = [threading.Thread(target=run, args=[name]) for name in loaded]
    for thread in threads:
        thread.start()
    send(topic, [{"id": number} for number in range(10)])
    wait_until(lambda: all(len(numbers(pipelines, name)) == 10 for name in loaded))
    send(topic, [{"id": number} for number in range(10, 20)])
    wait_until(lambda: all(len(numbers(pipelines, name)) == 20 for name in loaded))

    assert seen(cluster, f"{topic}-one").status.state == "running"
    with pytest.raises(OttlaError, match="the pipeline is running already"):
        pipelines.run_loaded(loaded["one"])
    for state in states.values():
        assert state.is_held()
        state.ask_to_stop()
    for thread in threads:
        thread.join()

    assert {name: status.state for name, status in done.items()} == {"one": "stopped", "two": "stopped"}
    assert not states["one"].is_held()
    assert [numbers(pipelines, name) for name in loaded] == [list(range(20))] * 2
    [row] = rows(seen(cluster, f"{topic}-two"))
    assert (row["state"], row["rows"], row["lag"], row["query"]) == ("stopped", 20, 0, "table")
    with Admin(cluster.servers) as admin:
        # Spark calls its listeners in a separate thread, which may be later than the end of the query.
        wait_until(lambda: admin.group_offsets(f"{topic}-one.table")[TopicPartition(topic, 0)].offset == 20)


def test_a_failed_pipeline_reports_the_reason(
    pipelines: Pipelines, cluster: Cluster, send: Callable[..., None]
) -> None:
    topic = cluster.topic()
    send(topic, [{"id": 0}])
    step = '[step.bad]\nsql = "SELECT 1 DIV id AS id FROM numbers"\n'
    pipeline = pipelines.load(FILE.format(topic=topic, table="none") + step, f"{topic}-fails")
    said: list[str] = []

    with pytest.raises(OttlaError, match=r"table failed: .*[Dd]ivision by zero"):
        pipelines.run_loaded(pipeline, restarts=1, say=said.append)

    assert len(said) == 1
    assert said[0].endswith("restarting it")
    status = seen(cluster, pipeline.name).status
    assert status.state == "failed"
    assert "ivision by zero" in status.error
