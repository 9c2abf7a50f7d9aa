"""One-off jobs: backfill, and replay of a table into a topic."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines

from ottla import Producer
from ottla.core.errors import ConfigError

pytestmark = pytest.mark.timeout(300)
DAY_MS = 86_400_000


def test_a_time_range_is_backfilled_once_and_replayed_with_its_timestamps(
    pipelines: Pipelines, cluster: Cluster, read: Callable[[str], list[Any]]
) -> None:
    from ottla.spark.pipelines.backfill import Backfill, run_backfill
    from ottla.spark.pipelines.preparing import kafka_of
    from ottla.spark.pipelines.replay import Replay, replay_rows, table_frame
    from ottla.spark.pipelines.sessions import pipeline_session

    # The records are older than the default retention.
    kept = {"retention.ms": "-1"}
    topic, again = cluster.topic(**kept), cluster.topic(partitions=2, **kept)
    with Producer(cluster.servers) as producer:
        for day in range(10):
            producer.send(topic, json.dumps({"id": day}).encode(), timestamp_ms=day * DAY_MS)
        producer.send(topic, b"bad", timestamp_ms=3 * DAY_MS)
    pipeline = pipelines.load(f"""
        [source.orders]
        topics = "{topic}"
        schema = "id bigint"
        start = "latest"
        dead_letters = "{topic}.dead"
        [step.rows]
        sql = "SELECT id, _timestamp AS at FROM orders"
        [sink.table]
        kind = "parquet"
        path = "table"
    """)  # noqa: S608 - of our own
    session = pipeline_session(pipeline, "local[2,3]")
    said: list[str] = []

    run_backfill(session, pipeline, Backfill(from_ms=2 * DAY_MS, to_ms=5 * DAY_MS), said.append)
    run_backfill(session, pipeline, Backfill(from_ms=2 * DAY_MS, to_ms=5 * DAY_MS), said.append)
    files = Backfill(from_ms=8 * DAY_MS, to_ms=10 * DAY_MS, data_dir=str(cluster.folder))
    run_backfill(session, pipeline, files, said.append)

    assert said == ["table: 3 rows", "table: 0 rows", "table: 2 rows"]
    assert sorted(row.id for row in pipelines.rows()) == [2, 3, 4, 8, 9]
    assert {record.value for record in read(f"{topic}.dead")} == {b"bad"}

    wanted = Replay(topic=again, timestamp="at", key="id", where="id < 9")
    replay_rows(table_frame(session, pipeline.sinks["table"]), wanted, kafka_of(pipeline))

    records = read(again)
    assert {int(record.key): record.timestamp for record in records} == {day: day * DAY_MS for day in (2, 3, 4, 8)}
    assert {json.loads(record.value)["id"] for record in records} == {2, 3, 4, 8}
    with pytest.raises(ConfigError, match="--timestamp: there is no column att; did you mean at"):
        replay_rows(table_frame(session, pipeline.sinks["table"]), Replay(topic=again, timestamp="att"), {})
    with pytest.raises(ConfigError, match=r"--sink: no \[sink.tabl\] in the file; did you mean table"):
        run_backfill(session, pipeline, Backfill(from_ms=0, to_ms=1, sinks=["tabl"]), said.append)


def test_records_only_in_the_archive_are_processed_and_backfilled(pipelines: Pipelines, cluster: Cluster) -> None:
    from ottla.spark.pipelines.backfill import Backfill, run_backfill
    from ottla.spark.pipelines.sessions import pipeline_session

    topic = cluster.topic()
    with Producer(cluster.servers) as producer:
        for day in range(6):
            producer.send(topic, json.dumps({"id": day}).encode(), timestamp_ms=day * DAY_MS)
    command = ["pipeline", "archive", topic, "--to", str(pipelines.folder / "past"), "--trim-topic", "0s"]
    broker = ["--broker", cluster.servers]
    subprocess.run([sys.executable, "-m", "ottla", *command, *broker], check=True, timeout=60, capture_output=True)
    with Producer(cluster.servers) as producer:
        producer.send(topic, json.dumps({"id": 6}).encode(), timestamp_ms=6 * DAY_MS)
    text = f"""
        [source.orders]
        topics = "{topic}"
        schema = "id bigint"
        archive = "past"
        dead_letters = "none"
        [sink.table]
        kind = "parquet"
        path = "table"
    """
    pipelines.run(text)
    assert sorted(row.id for row in pipelines.rows()) == [*range(7)]

    pipeline = pipelines.load(text.replace('"table"', '"again"'), name="again")
    said: list[str] = []
    span = Backfill(from_ms=2 * DAY_MS, to_ms=7 * DAY_MS)
    run_backfill(pipeline_session(pipeline, "local[2,3]"), pipeline, span, said.append)
    assert sorted(row.id for row in pipelines.rows("again")) == [2, 3, 4, 5, 6]
