"""Batch reads on a real Spark."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.conftest import Cluster

from ottla import Admin, Producer, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)
THE_START_MS = 1_700_000_000_000


def places(frame: "DataFrame") -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


def task_count(frame: "DataFrame") -> int:
    return int(frame.rdd.getNumPartitions())


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    """Two partitions of ten records, a millisecond apart."""
    name = cluster.topic(partitions=2)
    with Producer(cluster.servers) as producer:
        for number in range(20):
            partition, offset = number % 2, number // 2
            producer.send(name, b"%d" % number, partition=partition, timestamp_ms=THE_START_MS + offset)
    return name


def test_rows_have_the_columns_of_the_kafka_connector(spark: "SparkSession", cluster: Cluster) -> None:
    topic = cluster.topic()
    with Producer(cluster.servers) as producer:
        producer.send(topic, b"v", key=b"k", headers=[("a", b"1"), ("a", None)], timestamp_ms=THE_START_MS)
        producer.send(topic, None, timestamp_ms=THE_START_MS + 1)

    frame = cluster.read(spark, topic, includeHeaders="true")

    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    first, second = frame.orderBy("offset").collect()
    assert (bytes(first.key), bytes(first.value), first.topic, first.partition) == (b"k", b"v", topic, 0)
    assert [(header.key, header.value and bytes(header.value)) for header in first.headers] == [
        ("a", b"1"),
        ("a", None),
    ]
    assert first.timestamp == datetime.fromtimestamp(THE_START_MS / 1000)  # noqa: DTZ006 - so does Spark
    assert (second.offset, second.key, second.value, second.headers, second.timestampType) == (1, None, None, None, 0)


def test_headers_are_left_out_unless_asked_for(spark: "SparkSession", cluster: Cluster, topic: str) -> None:
    assert "headers" not in cluster.read(spark, topic).columns


def test_only_the_columns_of_a_given_schema_are_read(spark: "SparkSession", cluster: Cluster, topic: str) -> None:
    def reader(schema: str) -> Any:
        return cluster.reader(spark.read, subscribe=topic).schema(schema)

    few = reader("offset bigint, value binary").load()

    assert few.columns == ["offset", "value"]
    assert sorted(int(bytes(row.value)) for row in few.collect()) == list(range(20))
    with pytest.raises(Exception, match="no column price in this source; it has key, value, topic"):
        reader("price int").load().count()
    with pytest.raises(Exception, match="the column value has type binary, but the schema says string"):
        reader("value string").load().count()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": "@{0:7,1:-2}", "endingOffsets": "@{0:-1,1:2}"}, {0: range(7, 10), 1: range(2)}),
        ({"startingTimestamp": THE_START_MS + 8}, {0: range(8, 10), 1: range(8, 10)}),
        ({"endingTimestamp": THE_START_MS + 1}, {0: range(1), 1: range(1)}),
        ({"startingOffsetsByTimestamp": f"@{{0:{THE_START_MS + 9},1:{THE_START_MS + 5}}}"}, {0: [9], 1: range(5, 10)}),
        ({"startingTimestamp": THE_START_MS + 99, "startingOffsetsByTimestampStrategy": "latest"}, {}),
    ],
)
def test_reads_are_bounded_by_offsets_and_times(
    spark: "SparkSession", cluster: Cluster, topic: str, options: dict[str, Any], expected: dict[int, Any]
) -> None:
    given = {name: _with_topic(str(value), topic) for name, value in options.items()}
    wanted = [(partition, offset) for partition, offsets in expected.items() for offset in offsets]

    assert places(cluster.read(spark, topic, **given)) == wanted
    assert places(cluster.read(spark, topic, path=cluster.folder, **given)) == wanted


def _with_topic(text: str, topic: str) -> str:
    if not text.startswith("@"):
        return text
    pairs = (pair.split(":") for pair in text[2:-1].split(","))
    return json.dumps({topic: {partition: int(offset) for partition, offset in pairs}})


def test_topics_are_read_by_pattern_and_partitions_by_assignment(
    spark: "SparkSession", cluster: Cluster, topic: str
) -> None:
    by_pattern = cluster.reader(spark.read, subscribePattern=f"{topic[:-1]}[{topic[-1]}]").load()
    assigned = cluster.reader(spark.read, assign=json.dumps({topic: [1]})).load()

    assert by_pattern.count() == 20
    assert places(assigned) == [(1, offset) for offset in range(10)]


def test_filters_are_pushed_down_to_offset_ranges_on_request(
    spark: "SparkSession", cluster: Cluster, topic: str
) -> None:
    def everything(**options: object) -> "DataFrame":
        return cluster.read(spark, topic, maxRecordsPerPartition=1, **options)

    narrow = everything(pushFilters="true").where("partition = 1 and offset >= 4 and offset < 7")
    frame = everything(pushFilters="true")
    recent = frame.where(frame.timestamp >= datetime.fromtimestamp((THE_START_MS + 8) / 1000, UTC))
    scanned = everything(pushFilters="true", path=cluster.folder).where(f"topic = '{topic}' and partition in (1)")

    assert places(narrow) == [(1, 4), (1, 5), (1, 6)]
    assert places(recent) == [(0, 8), (0, 9), (1, 8), (1, 9)]
    assert places(scanned) == [(1, offset) for offset in range(10)]
    assert [task_count(each) for each in (everything(), narrow, recent, scanned)] == [20, 3, 4, 1]


def test_a_frame_that_is_filtered_in_two_ways_is_read_whole(
    spark: "SparkSession", cluster: Cluster, topic: str
) -> None:
    # Spark applies filters pushed down for one use of a frame to the others, so push-down is opt-in.
    frame = cluster.read(spark, topic)
    few = frame.where("offset < 2")

    assert few.count() == 4
    assert frame.count() == 20
    assert few.union(frame).count() == 24


def test_a_session_that_pushes_no_filters_down_reads_all_the_same(
    spark: "SparkSession", cluster: Cluster, topic: str
) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert places(cluster.read(spark, topic).where("offset = 3")) == [(0, 3), (1, 3)]
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_a_partition_is_split_among_as_many_tasks_as_asked_for(
    spark: "SparkSession", cluster: Cluster, topic: str
) -> None:
    frame = cluster.read(spark, topic, minPartitions=5)

    assert task_count(frame) == 6  # the shares are rounded as the connector rounds them
    assert len(places(frame)) == len(set(places(frame))) == 20


def test_an_empty_topic_has_no_rows(spark: "SparkSession", cluster: Cluster) -> None:
    assert cluster.read(spark, cluster.topic(partitions=3)).count() == 0


def test_deleted_offsets_stop_a_read_or_are_skipped(spark: "SparkSession", cluster: Cluster) -> None:
    topic = cluster.topic()
    cluster.write(topic, range(10))
    with Admin(cluster.servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 6})
    from_two = {"startingOffsets": json.dumps({topic: {"0": 2}})}

    with pytest.raises(Exception, match=rf"{topic}-0: offsets 2 to 5 are gone.*begins at 6.*failOnDataLoss"):
        cluster.read(spark, topic, **from_two).count()
    assert cluster.read(spark, topic, failOnDataLoss="false", **from_two).count() == 4
    with pytest.raises(Exception, match=rf"{topic}-0: offset 19 is past the end, which is 10"):
        cluster.read(spark, topic, endingOffsets=json.dumps({topic: {"0": 20}})).count()


def test_a_missing_topic_is_named(spark: "SparkSession", cluster: Cluster) -> None:
    with pytest.raises(Exception, match=r"no-such-topic.*UNKNOWN_TOPIC_OR_PARTITION"):
        cluster.read(spark, "no-such-topic").count()
    with pytest.raises(Exception, match="no topic no-such-topic in path"):
        cluster.read(spark, "no-such-topic", path=cluster.folder).count()


def test_a_folder_is_scanned_without_a_broker_up_to_incomplete_batches(
    spark: "SparkSession", cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.topic(partitions=2, **{"segment.bytes": str(1 << 20)})
    cluster.write(topic, [b"%d" % number * 3000 for number in range(1000)])
    expected = sorted(map(tuple, cluster.read(spark, topic, includeHeaders="true").collect()))
    copy = shutil.copytree(cluster.folder, tmp_path / "copy", ignore=shutil.ignore_patterns("*.lock", ".lock"))
    segments = sorted((copy / f"{topic}-0").glob("*.log"))
    with segments[-1].open("ab") as log:
        log.write(b"\0\0\0\0\0\0\0\0 a torn tail")

    scanned = spark.read.format("ottla").option("path", str(copy)).option("subscribe", topic)
    frame = scanned.option("includeHeaders", "true").load()

    assert len(segments) > 3
    assert task_count(frame) >= 8
    assert sorted(map(tuple, frame.collect())) == expected


def test_a_damaged_batch_is_distinguished_from_an_incomplete_one(
    spark: "SparkSession", cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.topic()
    for number in range(3):
        cluster.write(topic, range(number, number + 1))
    copy = shutil.copytree(cluster.folder / f"{topic}-0", tmp_path / f"{topic}-0")
    [log] = copy.glob("*.log")
    content = bytearray(log.read_bytes())
    frame = spark.read.format("ottla").option("path", str(tmp_path)).option("subscribe", topic)

    log.write_bytes(content[:-1])
    assert frame.load().count() == 2
    content[65] ^= 0xFF
    log.write_bytes(content)
    with pytest.raises(Exception, match="the batch at position 0 is damaged, and later ones are intact"):
        frame.load().count()
