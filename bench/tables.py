"""`ottla.spark.table` beside `format("kafka")` and `format("ottla")`: one topic of JSON values, one Spark, in one run.

The table has all but the last records of the topic, as typed columns. BENCH_TABLES is the number of records of 100 B
(default 10,000,000); a tenth of it are those of 1 KiB.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from interop.spark_connector import connector_jars

from bench.report import Row
from bench.sides import Ottla
from bench.spark import _measure, _require, _speed, _to_parquet
from ottla import Admin, Producer

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.table import Table
    from pyspark.sql import DataFrame, SparkSession

COUNT = int(os.environ.get("BENCH_TABLES", "10000000"))
TOPICS = {"100 B": (100, COUNT), "1 KiB": (1024, COUNT // 10)}
PARTITIONS = 4
ROWS_AT_A_TIME = 50_000
TAIL_ROWS = 10_000
"""Records that are not in the table yet."""
COLUMNS = "id bigint, store int, price int, note string"
FIRST_MS = 1_700_000_000_000
STORES = 50


def rows() -> Iterator[Row]:
    import ottla.spark

    with Ottla() as side:
        for name, (size, count) in TOPICS.items():
            _fill(side.bootstrap, side.folder / "data", _topic(name), size, count)
        spark = ottla.spark.session("bench", master="local[2]", config={"spark.jars": connector_jars()})
        try:
            for name, (_, count) in TOPICS.items():
                yield from _compare(spark, side, name, count + TAIL_ROWS)
        finally:
            spark.stop()


def _topic(name: str) -> str:
    return f"orders-{name.replace(' ', '')}"


def _fill(servers: str, data: Path, topic: str, size: int, count: int) -> None:
    """Each turn goes to one partition and is one file of the table; timestamps rise by a millisecond."""
    with Admin(servers) as admin:
        admin.create_topic(topic, partitions=PARTITIONS)
    ends = dict.fromkeys(range(PARTITIONS), 0)
    table: Table | None = None
    with Producer(servers) as producer:
        for first in range(0, count, ROWS_AT_A_TIME):
            part = _rows(first, min(ROWS_AT_A_TIME, count - first), size)
            partition = first // ROWS_AT_A_TIME % PARTITIONS
            _send(producer, topic, part, partition)
            table = _append(data, topic, table, part, partition, ends)
        producer.flush()
        _send(producer, topic, _rows(count, TAIL_ROWS, size), 0)
        producer.flush()


def _rows(first: int, count: int, size: int) -> pa.RecordBatch:
    ids = pa.array(range(first, first + count), pa.int64())
    store = pc.cast(pc.subtract(ids, pc.multiply(pc.divide(ids, STORES), STORES)), pa.int32())
    price = pc.cast(pc.bit_wise_and(ids, 1023), pa.int32())
    note = pa.repeat(pa.scalar("x" * (size - 55)), count)
    return pa.record_batch([ids, store, price, note], ["id", "store", "price", "note"])


def _send(producer: Producer, topic: str, part: pa.RecordBatch, partition: int) -> None:
    values = pa.array([json.dumps(row, separators=(",", ":")).encode() for row in part.to_pylist()], pa.binary())
    times = pc.cast(pc.add(part.column("id"), FIRST_MS), pa.timestamp("ms", tz="UTC"))
    partitions = pa.repeat(pa.scalar(partition, pa.int32()), len(values))
    producer.send_arrow(topic, pa.record_batch([values, times, partitions], ["value", "timestamp", "partition"]))


def _append(
    data: Path, topic: str, table: Table | None, part: pa.RecordBatch, partition: int, ends: dict[int, int]
) -> Table:
    count = part.num_rows
    first = ends[partition]
    ends[partition] = first + count
    system = {
        "_partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
        "_offset": pa.array(range(first, first + count), pa.int64()),
        "_timestamp": pc.cast(pc.add(part.column("id"), FIRST_MS), pa.timestamp("ms")).cast(pa.timestamp("us", "UTC")),
    }
    whole = pa.table({**system, **{name: part.column(name) for name in part.schema.names}})
    if table is None:
        table = _created(data, topic, whole.schema)
    covered = {"topic-id": "", "partitions": {str(each): offset for each, offset in ends.items()}}
    values = {"format": "json", "columns": COLUMNS}
    properties = {"ottla.offsets": json.dumps(covered), "ottla.values": json.dumps(values)}
    with table.transaction() as change:
        change.append(whole, snapshot_properties=properties)
        change.set_properties(properties)
    return table


def _created(data: Path, topic: str, schema: pa.Schema) -> Table:
    from pyiceberg.catalog import load_catalog

    folder = data / "lake"
    folder.mkdir(exist_ok=True)
    catalog = load_catalog(
        "ottla", type="sql", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=f"file://{folder / 'warehouse'}"
    )
    catalog.create_namespace_if_not_exists("topics")
    return catalog.create_table(("topics", topic), schema, properties={"ottla.topic": topic})


def _compare(spark: SparkSession, side: Ottla, name: str, count: int) -> Iterator[Row]:
    import ottla.spark

    def records(source: str) -> DataFrame:
        reader = spark.read.format(source).option("kafka.bootstrap.servers", side.bootstrap)
        return reader.option("subscribe", _topic(name)).load()

    def orders(source: str) -> DataFrame:
        if source == "table":
            return ottla.spark.table(
                spark, _topic(name), servers=side.bootstrap, catalog=side.folder / "data"
            ).withColumnRenamed("_timestamp", "timestamp")
        parsed = records(source).selectExpr("timestamp", f"from_json(CAST(value AS string), '{COLUMNS}') AS o")
        return parsed.select("timestamp", "o.*")

    since = datetime.fromtimestamp((FIRST_MS + count * 0.9) / 1000, UTC).isoformat()

    def aggregate(frame: DataFrame) -> None:
        _require(len(frame.groupBy("store").sum("price").collect()), STORES)

    jobs: dict[str, tuple[float, Callable[[str], None]]] = {
        "count": (
            10,
            lambda source: _require((orders(source) if source == "table" else records(source)).count(), count),
        ),
        "aggregate over two columns": (10, lambda source: aggregate(orders(source))),
        "the same of the last tenth by time": (
            10,
            lambda source: aggregate(orders(source).where(f"timestamp >= '{since}'")),
        ),
        "all columns to Parquet": (3, lambda source: _to_parquet(orders(source))),
    }
    for what, (goal, job) in jobs.items():
        ours, kafka, plain = (_measure(spark, job, source, count) for source in ("table", "kafka", "ottla"))
        yield _speed(f'{name}: {what}, against format("kafka")', ours, kafka, goal)
        yield _speed(f'{name}: {what}, against format("ottla")', ours, plain, 1)
