"""Streaming reads on a real Spark."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")

from tests.spark.conftest import Cluster

from ottla import Admin, TopicPartition
from ottla.broker.embedded import EmbeddedBroker
from ottla.spark.reader.rows import spark_schema
from ottla.spark.source import OttlaDataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)


def stream(cluster: Cluster, spark: "SparkSession", topic: str, **options: object) -> "DataFrame":
    given = {"subscribe": topic, "startingOffsets": "earliest", **options}
    return cluster.reader(spark.readStream, **given).load()  # type: ignore[no-any-return]


def table(spark: "SparkSession", folder: Path) -> list[int]:
    return sorted(int(bytes(row.value)) for row in spark.read.parquet(str(folder / "table")).collect())


def group_offsets(spark: "SparkSession", cluster: Cluster, group: str) -> dict[TopicPartition, int]:
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    with Admin(cluster.servers) as admin:
        return {at: committed.offset for at, committed in admin.group_offsets(group).items()}


def test_existing_records_are_read_in_limited_micro_batches_and_shown_as_a_group(
    spark: "SparkSession", cluster: Cluster, run: Callable[..., Any], tmp_path: Path
) -> None:
    topic = cluster.topic(partitions=2)
    cluster.write(topic, range(100))

    options = {"maxOffsetsPerTrigger": 40, "kafka.group.id": f"of-{topic}"}
    query = run(stream(cluster, spark, topic, **options), name="named")

    counts = [progress.numInputRows for progress in query.recentProgress]
    assert len(counts) == 3
    assert max(counts) <= 40
    assert table(spark, tmp_path) == list(range(100))
    last = json.loads((tmp_path / "checkpoint" / "offsets" / "2").read_text().splitlines()[-1])
    ends = {TopicPartition(topic, int(partition)): offset for partition, offset in last[topic].items()}
    assert sum(ends.values()) == 100
    assert group_offsets(spark, cluster, f"of-{topic}") == ends


def test_a_stream_from_latest_has_one_start_however_often_spark_asks(cluster: Cluster) -> None:
    topic = cluster.topic()
    options = {"kafka.bootstrap.servers": cluster.servers, "subscribe": topic, "startingOffsets": "latest"}
    reader = OttlaDataSource(options).streamReader(spark_schema(with_headers=False))
    begin = reader.initialOffset()
    cluster.write(topic, range(3))

    assert reader.initialOffset() == begin == {topic: {"0": 0}}


def test_small_partitions_of_a_micro_batch_are_read_by_one_task(cluster: Cluster) -> None:
    topic = cluster.topic(partitions=3)
    for partition in range(3):
        cluster.write(topic, [b"%d" % partition] * 2, partition=partition)
    options = {"kafka.bootstrap.servers": cluster.servers, "subscribe": topic, "startingOffsets": "earliest"}
    reader = OttlaDataSource(options).streamReader(spark_schema(with_headers=False))
    [task] = reader.partitions(reader.initialOffset(), {topic: {"0": 2, "1": 2, "2": 2}})

    rows = [row for batch in reader.read(task) for row in batch.to_pylist()]  # type: ignore[union-attr]
    assert [(row["partition"], row["offset"]) for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


def test_a_query_continues_at_its_checkpoint_and_reads_added_partitions(
    spark: "SparkSession", cluster: Cluster, run: Callable[..., Any], tmp_path: Path
) -> None:
    topic = cluster.topic()
    cluster.write(topic, range(10))
    run(stream(cluster, spark, topic))
    with Admin(cluster.servers) as admin:
        admin.create_partitions(topic, 2)
    cluster.write(topic, range(10, 15), partition=1)
    cluster.write(topic, range(15, 20), partition=0)

    run(stream(cluster, spark, topic))

    assert table(spark, tmp_path) == list(range(20))


def test_the_listener_commits_every_micro_batch_to_the_group_named_after_the_query(
    spark: "SparkSession", cluster: Cluster, run: Callable[..., Any]
) -> None:
    topic = cluster.topic()
    cluster.write(topic, range(10))

    run(stream(cluster, spark, topic), name="nightly")

    assert group_offsets(spark, cluster, "nightly") == {TopicPartition(topic, 0): 10}


def test_a_stream_joined_with_a_table_commits_to_its_group(
    spark: "SparkSession", cluster: Cluster, run: Callable[..., Any]
) -> None:
    topic = cluster.topic()
    cluster.write(topic, range(10))
    names = spark.createDataFrame([(number, f"name {number}") for number in range(10)], "number int, name string")
    numbers = stream(cluster, spark, topic).selectExpr("CAST(CAST(value AS string) AS int) AS number")

    run(names.join(numbers, "number"), name="joined")

    assert group_offsets(spark, cluster, "joined") == {TopicPartition(topic, 0): 10}


def test_expired_offsets_stop_a_stream_or_are_skipped(
    spark: "SparkSession", cluster: Cluster, run: Callable[..., Any], tmp_path: Path
) -> None:
    topic = cluster.topic()
    cluster.write(topic, range(10))
    run(stream(cluster, spark, topic))
    cluster.write(topic, range(10, 20))
    with Admin(cluster.servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 15})

    with pytest.raises(Exception, match=rf"{topic}-0: offsets 10 to 14 are gone.*failOnDataLoss"):
        run(stream(cluster, spark, topic))
    run(stream(cluster, spark, topic, failOnDataLoss="false"))

    assert table(spark, tmp_path) == [*range(10), *range(15, 20)]


def test_a_removed_partition_stops_a_stream(spark: "SparkSession", cluster: Cluster, run: Callable[..., Any]) -> None:
    topic = cluster.topic()
    cluster.write(topic, range(3))
    run(stream(cluster, spark, topic))
    with Admin(cluster.servers) as admin:
        admin.delete_topic(topic)

    with pytest.raises(Exception, match=rf"{topic}-0 \(read up to offset 3\) were read before.*failOnDataLoss"):
        run(stream(cluster, spark, topic))


def test_a_stream_survives_a_broker_restart(
    spark: "SparkSession", tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("restarted")
    broker = EmbeddedBroker(folder)
    with broker:
        cluster = Cluster(broker, folder)
        settings = broker.broker.settings
        port = int(cluster.servers.rsplit(":", 1)[1])
        topic = cluster.topic()
        cluster.write(topic, range(10))
        query = (
            stream(cluster, spark, topic)
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "table"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        query.processAllAvailable()
    with EmbeddedBroker(folder, settings._replace(net=_on_port(settings.net, port))):
        cluster.write(topic, range(10, 20))
        query.processAllAvailable()
        query.stop()

    assert table(spark, tmp_path) == list(range(20))


def _on_port(net: Any, port: int) -> Any:
    from msgspec.structs import replace

    return replace(net, port=port)
