"""`ottla.spark.table`: the rows of a table and the records after them, each once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.rest.lake_tables import catalog_of, table_of

import ottla.spark
from ottla import Admin
from ottla.client.blocking.background import Background
from ottla.core.errors import OttlaError
from ottla.lake.catalogs import LakeSettings, open_catalog
from ottla.lake.values import ValueSettings
from ottla.lake.writer import TopicSettings, TopicWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from ottla.lake.writer import Done

    from .conftest import Cluster

pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.slow


def rows_of(values: range, partition: int = 0, first: int = 0) -> Any:
    """Records of one partition as `ottla lake` writes them, without decoding."""
    import pyarrow as pa

    count = len(values)
    data = [b"%d" % value for value in values]
    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.table(
        {
            "_partition": pa.array([partition] * count, pa.int32()),
            "_offset": pa.array(range(first, first + count), pa.int64()),
            "_timestamp": pa.array([datetime.now(UTC)] * count, pa.timestamp("us", tz="UTC")),
            "_key": pa.array(data, pa.binary()),
            "_headers": pa.nulls(count, header),
            "value": pa.array(data, pa.binary()),
        }
    )


@pytest.fixture
def read(spark: SparkSession, cluster: Cluster) -> Callable[..., DataFrame]:
    def table(topic: str, **options: Any) -> DataFrame:
        return ottla.spark.table(spark, topic, servers=cluster.servers, catalog=cluster.folder, **options)

    return table


def values(frame: DataFrame) -> list[int]:
    return sorted(int(bytes(row.value)) for row in frame.select("value").collect())


def test_a_batch_has_the_rows_of_the_table_and_the_records_after_it(
    cluster: Cluster, read: Callable[..., DataFrame]
) -> None:
    topic = cluster.topic(3)
    cluster.write(topic, range(5), partition=0)
    cluster.write(topic, range(5, 8), partition=1)
    cluster.write(topic, range(8, 10), partition=2)
    table_of(cluster.folder, topic, rows_of(range(3)), {0: 3, 1: 0})
    table_of(cluster.folder, topic, rows_of(range(5, 8), partition=1), {0: 3, 1: 3})

    frame = read(topic)

    # Settled when it was made: later records are not in it, and every action sees the same.
    cluster.write(topic, range(100, 110), partition=0)
    assert values(frame) == list(range(10))
    assert frame.count() == 10
    last = frame.where("_partition = 0 AND _offset = 4").collect()
    assert [bytes(row._key) for row in last] == [b"4"]
    assert values(read(topic)) == [*range(10), *range(100, 110)]


def lake_round(cluster: Cluster, topic: str, settings: ValueSettings) -> Done:
    """Append what the table lacks, as `ottla lake run --once` does."""
    lake = LakeSettings(folder=cluster.folder / "lake")
    link = Background("test", cluster.servers, {})
    writer = TopicWriter(link, open_catalog(lake), TopicSettings(topic=topic, namespace="topics", values=settings))
    try:
        return writer.round()
    finally:
        writer.close()
        link.close()


def test_the_tail_is_decoded_as_the_table_is(cluster: Cluster, read: Callable[..., DataFrame]) -> None:
    topic = cluster.topic()
    settings = ValueSettings(format="json", columns="id bigint, tags array<string>, at timestamp")
    cluster.write(topic, [b'{"id": 1, "tags": ["a"], "at": "2026-01-02T03:04:05Z"}', b"not JSON"], partition=0)
    assert lake_round(cluster, topic, settings).dead_letters == 1
    before = read(topic).collect()
    cluster.write(topic, [b'{"id": 2}', b"neither", b'{"id": 3, "tags": ["b", "c"]}'], partition=0)

    frame = read(topic)
    both = frame.orderBy("_offset").collect()
    lake_round(cluster, topic, settings)
    after = read(topic)

    assert [(row._offset, row.id, row.tags) for row in both] == [(0, 1, ["a"]), (2, 2, None), (4, 3, ["b", "c"])]
    assert both[:1] == before
    # The records that were the tail are the same rows once the table has them.
    assert after.orderBy("_offset").collect() == both
    assert after.schema.names == frame.schema.names


def test_history_is_read_by_the_vectorised_parquet_reader(cluster: Cluster, read: Callable[..., DataFrame]) -> None:
    topic = cluster.topic()
    cluster.write(topic, range(4), partition=0)
    table_of(cluster.folder, topic, rows_of(range(4)), {0: 4})

    frame = read(topic).where("_offset > 1").select("_offset")

    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet [_offset" in plan
    assert "Batched: true" in plan
    assert "GreaterThan(_offset,1)" in plan
    assert "Python" not in plan  # nothing is read from the broker if the table has everything
    assert [row._offset for row in frame.collect()] == [2, 3]


def test_renamed_added_and_widened_columns_are_read_from_old_files(
    cluster: Cluster, read: Callable[..., DataFrame]
) -> None:
    import pyarrow as pa
    from pyiceberg.types import LongType, StringType

    topic = cluster.topic()
    cluster.write(topic, range(4), partition=0)
    old = pa.table({"_offset": pa.array([0, 1], pa.int64()), "size": pa.array([1, 2], pa.int32()), "name": ["a", "b"]})
    table = table_of(cluster.folder, topic, old, {0: 2})
    with table.update_schema() as change:
        change.update_column("size", LongType())
        change.rename_column("name", "title")
    with table.update_schema() as change:
        change.add_column("name", StringType())
    new = pa.table({"_offset": [2, 3], "size": [3, 1 << 40], "title": ["c", "d"], "name": ["e", "f"]})
    table_of(cluster.folder, topic, new, {0: 4})

    frame = read(topic)

    assert [tuple(row) for row in frame.orderBy("_offset").collect()] == [
        (0, 1, "a", None),
        (1, 2, "b", None),
        (2, 3, "c", "e"),
        (3, 1 << 40, "d", "f"),
    ]
    assert not any(field.metadata for field in frame.schema.fields)


def test_records_that_were_deleted_before_the_table_had_them_are_an_error(
    cluster: Cluster, read: Callable[..., DataFrame]
) -> None:
    from ottla.core.ids import TopicPartition

    topic = cluster.topic()
    cluster.write(topic, range(6), partition=0)
    table_of(cluster.folder, topic, rows_of(range(2)), {0: 2})
    with Admin(cluster.servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 4})

    with pytest.raises(Exception, match="offsets 2 to 3 are gone"):
        read(topic).collect()


def test_a_topic_without_a_table_is_an_error_that_says_how_to_get_one(
    cluster: Cluster, read: Callable[..., DataFrame], tmp_path: Path, spark: SparkSession
) -> None:
    topic = cluster.topic()
    catalog_of(cluster.folder).create_namespace_if_not_exists("topics")

    with pytest.raises(OttlaError, match="run: ottla lake run topic-"):
        read(topic)
    with pytest.raises(OttlaError, match="no tables in"):
        ottla.spark.table(spark, topic, catalog=tmp_path)


def test_a_table_that_is_ahead_of_the_topic_is_an_error(cluster: Cluster, read: Callable[..., DataFrame]) -> None:
    topic = cluster.topic()
    table_of(cluster.folder, topic, rows_of(range(2)), {0: 2})

    with pytest.raises(OttlaError, match="truncated"):
        read(topic)


def test_a_stream_begins_with_the_files_and_follows_across_restarts(
    spark: SparkSession, cluster: Cluster, run: Callable[..., Any], tmp_path: Path
) -> None:
    topic = cluster.topic(2)
    cluster.write(topic, range(5), partition=0)
    cluster.write(topic, range(5, 10), partition=1)
    table_of(cluster.folder, topic, rows_of(range(3)), {0: 3, 1: 0})

    def stream() -> DataFrame:
        where = str(tmp_path / "checkpoint")
        return ottla.spark.table_stream(
            spark, topic, checkpoint=where, servers=cluster.servers, catalog=cluster.folder
        ).select("_partition", "_offset", "value")

    run(stream())
    assert values(spark.read.parquet(str(tmp_path / "table"))) == list(range(10))
    # The table has more files at the next start: their records were read from the topic.
    table_of(cluster.folder, topic, rows_of(range(3, 5), first=3), {0: 5, 1: 0})
    cluster.write(topic, range(10, 12), partition=1)
    run(stream())
    assert values(spark.read.parquet(str(tmp_path / "table"))) == list(range(12))


def test_a_checkpoint_of_another_query_is_refused(
    spark: SparkSession, cluster: Cluster, run: Callable[..., Any], tmp_path: Path
) -> None:
    topic = cluster.topic()
    cluster.write(topic, range(2), partition=0)
    table_of(cluster.folder, topic, rows_of(range(2)), {0: 2})
    run(cluster.reader(spark.readStream, subscribe=topic, startingOffsets="earliest").load().select("value"))

    with pytest.raises(OttlaError, match="belongs to another query"):
        ottla.spark.table_stream(
            spark, topic, checkpoint=str(tmp_path / "checkpoint"), servers=cluster.servers, catalog=cluster.folder
        )
