"""A topic and its archive read as one frame."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")

from ottla import Admin, Producer, TopicPartition
from ottla.spark.archive.cover import contents_of
from ottla.spark.archive.names import Span
from ottla.spark.archive.places import place_of
from ottla.spark.archive.reading import archived_rows
from ottla.spark.errors import DataLoss
from ottla.spark.reader.options import parse_source
from ottla.spark.reader.ranges import OffsetRange
from ottla.spark.reader.rows import RowMaker, spark_schema

from .conftest import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY_MS = 24 * 3600 * 1000


def archive(cluster: Cluster, topic: str, folder: Path, *options: str) -> None:
    command = ["pipeline", "archive", topic, "--to", str(folder), "--broker", cluster.servers, *options]
    subprocess.run([sys.executable, "-m", "ottla", *command], check=True, timeout=60, capture_output=True)


def numbers(frame: "DataFrame") -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())


@pytest.fixture
def topic(cluster: Cluster, tmp_path: Path) -> str:
    """300 records: 100 only in the archive, 100 in both, 100 only in the topic."""
    name = cluster.topic(partitions=2)
    with Producer(cluster.servers) as producer:
        for number in range(100):
            producer.send(name, b"%d" % number, partition=number % 2, timestamp_ms=(number + 1) * DAY_MS // 10)
    archive(cluster, name, tmp_path / "archive", "--trim-topic", "0s")
    cluster.write(name, range(100, 200))
    archive(cluster, name, tmp_path / "archive")
    cluster.write(name, range(200, 300))
    return name


def test_history_and_live_log_are_one_frame(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    assert numbers(cluster.read(spark, topic)) == list(range(100, 300))
    frame = cluster.read(spark, topic, archive=tmp_path / "archive")
    assert numbers(frame) == list(range(300))
    assert frame.select("partition", "offset").distinct().count() == 300
    assert frame.where("offset < 50").count() == 100


def test_rows_of_the_archive_equal_those_of_the_topic(spark: "SparkSession", cluster: Cluster, tmp_path: Path) -> None:
    name = cluster.topic(partitions=1)
    with Producer(cluster.servers, compression="lz4") as producer:
        for number in range(50):
            producer.send(
                name,
                None if number % 5 == 0 else b"%d" % number,
                key=None if number % 3 == 0 else b"key",
                headers=[("a", b"%d" % number), ("b", None)] if number % 2 else None,
                timestamp_ms=number * DAY_MS,
            )
    live = sorted(cluster.read(spark, name, includeHeaders=True).collect(), key=lambda row: row.offset)
    archive(cluster, name, tmp_path, "--trim-topic", "0s")
    kept = sorted(
        cluster.read(spark, name, includeHeaders=True, archive=tmp_path).collect(), key=lambda row: row.offset
    )
    assert kept == live
    assert len(kept) == 50


def test_bounds_reach_into_the_archive(spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path) -> None:
    where: dict[str, Any] = {"archive": tmp_path / "archive"}
    bounds = {name: json.dumps({topic: {"0": at, "1": at}}) for name, at in (("first", 10), ("last", 60))}
    some = cluster.read(spark, topic, startingOffsets=bounds["first"], endingOffsets=bounds["last"], **where)
    assert sorted((row.partition, row.offset) for row in some.select("partition", "offset").collect()) == [
        (partition, offset) for partition in (0, 1) for offset in range(10, 60)
    ]
    since = cluster.read(spark, topic, startingTimestamp=60 * DAY_MS // 10, **where)
    assert numbers(since) == list(range(59, 300))
    only = cluster.reader(spark.read, subscribe=topic, **where).schema("offset bigint").load()
    assert only.count() == 300


def test_a_stream_starts_in_the_archive_and_continues_in_the_topic(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path, run: Callable[..., Any]
) -> None:
    stream = cluster.reader(
        spark.readStream,
        subscribe=topic,
        startingOffsets="earliest",
        archive=tmp_path / "archive",
        maxOffsetsPerTrigger=90,
    ).load()
    query = run(stream.selectExpr("CAST(value AS string) AS value", "partition", "offset"))
    assert len(query.recentProgress) > 3
    assert numbers(spark.read.parquet(str(tmp_path / "table"))) == list(range(300))


def test_offsets_in_neither_are_named(spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path) -> None:
    with Admin(cluster.servers) as admin:
        ends = admin.latest_offsets([TopicPartition(topic, 0)])
        admin.delete_records({TopicPartition(topic, 0): ends[TopicPartition(topic, 0)].offset})
    with pytest.raises(Exception, match="are gone; the partition now begins at") as lost:
        cluster.read(spark, topic, archive=tmp_path / "archive").count()
    assert "failOnDataLoss" in str(lost.value)
    left = cluster.read(spark, topic, archive=tmp_path / "archive", failOnDataLoss=False)
    assert set(range(200)) <= set(numbers(left)) < set(range(300))


def test_plain_parquet_readers_see_the_archive(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    archive(cluster, topic, tmp_path / "archive", "--merge")
    table = spark.read.parquet(str(tmp_path / "archive" / topic))
    assert numbers(table) == list(range(300))
    assert {"key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers", "date"} == set(
        table.columns
    )
    assert table.where("date = '1970-01-02'").count() == 10


def test_a_task_finds_rows_that_were_dropped_from_the_topic_after_it_was_planned(
    spark: "SparkSession", cluster: Cluster, tmp_path: Path
) -> None:
    name = cluster.topic(partitions=1)
    cluster.write(name, range(100))
    frame = cluster.read(spark, name, archive=tmp_path)
    assert frame.rdd.getNumPartitions() == 1  # planned, before there is an archive
    archive(cluster, name, tmp_path, "--trim-topic", "0s")
    cluster.write(name, range(100, 110))
    assert numbers(frame) == list(range(100))


def test_a_task_finds_files_that_were_merged_after_it_was_planned(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "archive")
    options = parse_source(
        {"kafka.bootstrap.servers": cluster.servers, "subscribe": topic, "archive": folder}, is_stream=False
    )
    schema = spark_schema(with_headers=True)
    at = TopicPartition(topic, 0)
    end = contents_of(place_of(folder, topic).sizes()).end(0)
    assert end is not None
    pieces = contents_of(place_of(folder, topic).sizes()).within(Span(0, 0, end))
    ranges = [OffsetRange(at, each.start, each.end, b"", tuple(map(str, each.stretch.files))) for each in pieces]
    assert len(ranges) == 2
    begun = archived_rows(ranges[0], options, RowMaker(at, schema))
    first = next(begun).num_rows
    archive(cluster, topic, tmp_path / "archive", "--merge")
    read = first + sum(batch.num_rows for batch in begun)
    read += sum(batch.num_rows for batch in archived_rows(ranges[1], options, RowMaker(at, schema)))
    assert read == end
    end = contents_of(place_of(folder, topic).sizes()).ends()[0]
    past = OffsetRange(at, 0, end + 5)
    with pytest.raises(DataLoss, match=f"offsets {end} to {end + 4} are neither in the topic nor in its archive"):
        list(archived_rows(past, options, RowMaker(at, schema)))


def test_the_archive_of_a_deleted_topic_is_not_used_for_its_re_creation(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    with Admin(cluster.servers) as admin:
        admin.delete_topic(topic)
        admin.create_topic(topic, partitions=2)
    cluster.write(topic, range(500))
    with pytest.raises(Exception, match="was deleted and re-created"):
        cluster.read(spark, topic, archive=tmp_path / "archive").count()
