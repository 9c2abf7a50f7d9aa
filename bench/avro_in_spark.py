"""Avro with schema ids in Spark: `from_registry`, and `option("registry")` of the source, beside Spark's `from_avro`.

The values and columns are the same.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from interop.kafka_artifacts import ToolMissingError
from interop.maven_artifacts import maven_artifact

from bench.report import Row
from bench.spark import measure, rows_speed
from ottla.client.blocking.producer import Producer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame, SparkSession

    from ottla.schema import Registry

REPEATS: Final = 15
SPARK_AVRO: Final = "org.apache.spark:spark-avro_2.13:4.1.1"
"""The newest release on Maven Central; Spark 4.3 runs it."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with values of one schema."""

    name: str
    schema: str
    values: list[bytes]

    @property
    def count(self) -> int:
        return len(self.values) * REPEATS

    @property
    def shown(self) -> str:
        return f"a {self.name} record of {len(json.loads(self.schema)['fields'])} fields"


def rows(kafka: str, registry: Registry, topics: list[Topic]) -> Iterator[Row]:
    import ottla.spark

    try:
        jar = next(maven_artifact(SPARK_AVRO).glob("*.jar"))
    except (ToolMissingError, RuntimeError) as missing:
        yield Row(what="Avro in Spark, beside from_avro", ours="not measured", theirs=str(missing))
        return
    spark = ottla.spark.session("bench", master="local[1]", config={"spark.jars": str(jar)})
    try:
        for topic in topics:
            yield _columns(spark, registry, topic)
            yield _topics(spark, kafka, registry, topic)
    finally:
        spark.stop()


def _columns(spark: SparkSession, registry: Registry, topic: Topic) -> Row:
    """A column of a Parquet file."""
    from ottla.spark.registry import from_registry

    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/values.parquet"
        pq.write_table(pa.table({"value": pa.array(topic.values * REPEATS, pa.binary())}), file)
        frame = spark.read.parquet(file)
        frames = {
            "ours": frame.select(from_registry("value", registry, f"{topic.name}-value").alias("row")),
            "theirs": frame.select(_from_avro(topic).alias("row")),
        }
        ours, theirs = (measure(spark, lambda side: _read(frames[side]), side, topic.count) for side in frames)
    return rows_speed(f"from_registry of {topic.shown}, beside from_avro", ours, theirs)


def _topics(spark: SparkSession, kafka: str, registry: Registry, topic: Topic) -> Row:
    """A topic."""
    with Producer(kafka) as producer:
        for value in topic.values * REPEATS:
            producer.send(topic.name, value)
    source = spark.read.format("ottla").option("kafka.bootstrap.servers", kafka).option("subscribe", topic.name)
    frames = {
        "theirs": source.load().select(_from_avro(topic).alias("row")),
        "ours": source.option("registry", registry.url).load().selectExpr("value AS row"),
    }
    ours, theirs = (measure(spark, lambda side: _read(frames[side]), side, topic.count) for side in ("ours", "theirs"))
    return rows_speed(f"a topic with {topic.shown}, by option registry, beside from_avro", ours, theirs)


def _from_avro(topic: Topic) -> Column:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
    from pyspark.sql.avro.functions import from_avro

    return from_avro(F.expr("substring(value, 6)"), topic.schema)


def _read(frame: DataFrame) -> None:
    frame.select("row.*").write.format("noop").mode("overwrite").save()
