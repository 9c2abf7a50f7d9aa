"""Writes on a real Spark: partitioning of rows, and exactly-once under retries."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.conftest import Cluster

from ottla import Admin, Consumer, TopicPartition
from ottla.client.admin.offsets import CommittedOffset

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)


def save(frame: "DataFrame", cluster: Cluster, mode: str = "append", **options: str) -> None:
    writer = frame.write.format("ottla").mode(mode).option("kafka.bootstrap.servers", cluster.servers)
    writer.options(**options).save()


def records(cluster: Cluster, *topics: str) -> list[Any]:
    with Consumer(cluster.servers, topics, auto_offset_reset="earliest") as consumer:
        found: list[Any] = []
        while batch := consumer.poll(timeout_ms=500):
            found += batch
    return found


def test_rows_go_to_the_topic_and_partition_of_their_columns_and_keys(spark: "SparkSession", cluster: Cluster) -> None:
    here, there = cluster.topic(partitions=3), cluster.topic(partitions=2)
    cluster.write(here, [b"k%d" % number for number in range(20)])  # a producer's own choice of partitions
    rows = [(f"k{number}", f"v{number}", here, None) for number in range(20)] + [("k", "pinned", there, 1)]
    frame = spark.createDataFrame(rows, "key string, value string, topic string, partition int")

    save(frame, cluster)

    found = records(cluster, here, there)
    by_key = {record.key: record.partition for record in found if record.value == record.key}
    assert {record.key: record.partition for record in found if record.value.startswith(b"v")} == by_key
    [pinned] = [record for record in found if record.topic == there]
    assert (pinned.partition, pinned.value) == (1, b"pinned")


def test_headers_nulls_and_times_are_written_and_read_back(spark: "SparkSession", cluster: Cluster) -> None:
    topic = cluster.topic()
    schema = "key binary, value binary, headers array<struct<key:string,value:binary>>, timestamp timestamp"
    rows = "VALUES (X'01', X'02', array(struct('h' AS key, X'03' AS value)), TIMESTAMP'2026-01-01 00:00:00')"
    nulls = "(CAST(NULL AS binary), CAST(NULL AS binary), NULL, TIMESTAMP'2026-01-01 00:00:01')"
    frame = spark.sql(f"SELECT * FROM {rows}, {nulls} AS t(key, value, headers, timestamp)").to(  # noqa: S608
        spark.createDataFrame([], schema).schema
    )

    save(frame.coalesce(1), cluster, topic=topic, **{"kafka.compression.type": "zstd"})

    read = cluster.read(spark, topic, includeHeaders="true").select("key", "value", "headers", "timestamp")
    assert read.exceptAll(frame).count() == 0
    assert read.count() == 2


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ("'x' AS text", {"topic": "t"}, "needs a column named value"),
        ("'x' AS value", {}, "needs the option topic, or a column named topic"),
        ("1 AS value", {"topic": "t"}, "the column value must be of type string or binary, not int"),
        ("'x' AS value, CAST(NULL AS string) AS topic", {}, "the column topic is null in a row"),
        ("'x' AS value", {"topic": "t", "kafka.compression.type": "rar"}, "kafka.compression.type must be none, gzip"),
        (
            "repeat('x', 3000) AS value",
            {"topic": "t", "kafka.max.request.size": "2000"},
            "raise kafka.max.request.size",
        ),
    ],
)
def test_invalid_rows_and_options_are_refused(
    spark: "SparkSession", cluster: Cluster, columns: str, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(Exception, match=reason):
        save(spark.sql(f"SELECT {columns}"), cluster, **options)


def test_a_topic_is_not_overwritten(spark: "SparkSession", cluster: Cluster) -> None:
    with pytest.raises(Exception, match="a topic cannot be overwritten"):
        save(spark.sql("SELECT 'x' AS value"), cluster, mode="overwrite", topic="t")


def failing_twice(servers: str, sink: str) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """A step that passes all rows on at its third attempt. Before, it fails once some of them are in the sink."""

    def written() -> int:
        at = TopicPartition(sink, 0)
        with Admin(servers) as admin:
            return int(admin.latest_offsets([at])[at].offset)

    def step(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        from pyspark import TaskContext

        attempt = TaskContext.get().attemptNumber()  # type: ignore[union-attr]
        before = written()
        for count, batch in enumerate(batches):
            order = range(batch.num_rows)
            yield batch.take(list(reversed(order) if attempt == 1 else order))
            if count == 10 and attempt < 2:
                # Nothing more is passed on, so this ends when what was passed on has been written, if it ever is.
                for _ in range(200):
                    if written() > before:
                        break
                    Event().wait(0.02)
                raise RuntimeError(f"attempt {attempt} fails on purpose")

    return step  # defined in here so that it goes to the workers by value, which have no tests to import


@pytest.fixture
def small_batches(spark: "SparkSession") -> Iterator[None]:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, "100")
    yield
    spark.conf.unset(name)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(("is_stream", "transactional"), [(False, "false"), (True, "false"), (True, "true")])
def test_a_task_that_is_repeated_writes_no_row_twice(
    spark: "SparkSession",
    cluster: Cluster,
    run: Callable[..., Any],
    is_stream: bool,  # noqa: FBT001
    transactional: str,
) -> None:
    source, sink = cluster.topic(), cluster.topic()
    # Some rows are equal, and all count.
    cluster.write(source, [b"%0200d" % (number % 1500) for number in range(2000)])
    reader = spark.readStream if is_stream else spark.read
    frame = cluster.reader(reader, subscribe=source, startingOffsets="earliest").load().select("key", "value")
    failing = frame.mapInArrow(failing_twice(cluster.servers, sink), "key binary, value binary")

    if is_stream:
        options = {"kafka__bootstrap__servers": cluster.servers, "topic": sink, "transactional": transactional}
        run(failing, "ottla", **options)
    else:
        save(failing, cluster, topic=sink, transactional=transactional)

    assert cluster.values(spark, sink) == cluster.values(spark, source)
    # The failed attempts had written in transactions, which are invisible with read_committed.
    is_plain = len(cluster.values(spark, sink, "read_uncommitted")) == 2000
    assert is_plain == (transactional == "false")


@pytest.mark.usefixtures("small_batches")
def test_nothing_of_a_failed_batch_is_visible(spark: "SparkSession", cluster: Cluster) -> None:
    source, sink = cluster.topic(partitions=2), cluster.topic()
    for partition in range(2):
        cluster.write(source, range(500), partition)
    frame = cluster.read(spark, source).select("partition", "value")
    failing = frame.mapInArrow(failing_in_one_task(cluster.servers, sink), "value binary")

    with pytest.raises(Exception, match="fails on purpose"):
        save(failing, cluster, topic=sink)

    assert len(cluster.values(spark, sink, "read_uncommitted")) >= 500
    # Nothing is left open either, for which readers would have to wait.
    save(spark.sql("SELECT 'next' AS value"), cluster, topic=sink)
    assert cluster.values(spark, sink) == [b"next"]


def failing_in_one_task(servers: str, sink: str) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """A step that passes on all rows of the first partition, and fails in the second when those are written."""

    def step(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            yield batch.select(["value"])
            if batch.column("partition")[0].as_py() == 1:
                at = TopicPartition(sink, 0)
                with Admin(servers) as admin:
                    for _ in range(500):
                        if int(admin.latest_offsets([at])[at].offset) >= 500:
                            break
                        Event().wait(0.02)
                raise RuntimeError("fails on purpose")

    return step


@pytest.mark.parametrize("transactional", ["true", "false"])
def test_a_micro_batch_missing_from_sparks_commit_log_is_not_written_again(
    spark: "SparkSession", cluster: Cluster, run: Callable[..., Any], tmp_path: Path, transactional: str
) -> None:
    source, sink = cluster.topic(), cluster.topic(partitions=2)
    cluster.write(source, range(100))

    def run_once() -> Any:
        frame = cluster.reader(spark.readStream, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=50)
        rows = frame.load().select("key", "value")
        options = {"kafka__bootstrap__servers": cluster.servers, "topic": sink, "transactional": transactional}
        return run(rows, "ottla", **options)

    query = run_once()
    # Killed after all was written and marked, before Spark noted it.
    _forget_last_commit(tmp_path)
    run_once()
    assert cluster.values(spark, sink) == cluster.values(spark, source)
    assert len(cluster.values(spark, sink, "read_uncommitted")) == 100
    if transactional == "true":
        return

    # Killed after all was written, before it was marked: the rows are looked for.
    _forget_last_commit(tmp_path)
    group = f"ottla-sink-{query.id}"
    with Admin(cluster.servers) as admin:
        marks = admin.group_offsets(group)
        assert {json.loads(mark.metadata)["batch"] for mark in marks.values()} == {1}
        earlier = CommittedOffset(0, metadata=json.dumps({"run": "another", "batch": 0}))
        admin.alter_group_offsets(group, dict.fromkeys(marks, earlier))
    run_once()
    assert cluster.values(spark, sink) == cluster.values(spark, source)


def _forget_last_commit(folder: Path) -> None:
    for file in (folder / "checkpoint" / "commits").glob("*1*"):
        file.unlink()


def test_without_transactions_and_deduplication_a_repeated_micro_batch_is_written_again(
    spark: "SparkSession", cluster: Cluster, run: Callable[..., Any], tmp_path: Path
) -> None:
    source, sink = cluster.topic(), cluster.topic()
    cluster.write(source, range(10))
    for _ in range(2):
        frame = cluster.reader(spark.readStream, subscribe=source, startingOffsets="earliest").load()
        options = {"topic": sink, "transactional": "false", "deduplicate": "false"}
        run(frame.select("value"), "ottla", kafka__bootstrap__servers=cluster.servers, **options)
        for file in (tmp_path / "checkpoint" / "commits").glob("*0*"):
            file.unlink()

    assert len(cluster.values(spark, sink)) == 20
    with Admin(cluster.servers) as admin:
        assert admin.latest_offsets([TopicPartition(sink, 0)])[TopicPartition(sink, 0)].offset == 20
