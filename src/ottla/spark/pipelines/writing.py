"""Writing rows: micro-batches into sinks, and records into topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.columns.ddl import quoted
from ottla.spark.pipelines.changes.rules import DELETE
from ottla.spark.pipelines.preparing import kafka_of
from ottla.spark.pipelines.refused_rows import RefusedRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.spark.pipelines.definition import Pipeline
    from ottla.spark.pipelines.sinks.sink import Sink
    from ottla.spark.pipelines.sinks.topic import TopicSink


class EachBatch:
    """Called by Spark with every micro-batch, and again if it was not acknowledged."""

    def __init__(self, sink: Sink, checkpoint: str, refused: RefusedRows) -> None:
        self._writer = sink.writer()
        self._checkpoint = checkpoint
        self._refused = refused
        self._query_id: str | None = None
        self._last = -1
        """The last batch that this process began: only this one and earlier ones may be repeated."""

    def __call__(self, frame: DataFrame, number: int) -> None:
        may_be_repeated = self._last in (-1, number)
        self._last = number
        self._writer.write(
            frame, self._refused.micro_batch(self._query(frame), number, may_be_repeated=may_be_repeated)
        )

    def _query(self, frame: DataFrame) -> str:
        """Spark's id of the query, created with its checkpoint: a new checkpoint must not find old batches."""
        if self._query_id is None:
            [line] = frame.sparkSession.read.text(f"{self._checkpoint}/metadata").collect()
            self._query_id = str(json.loads(line[0])["id"])
        return self._query_id


def as_records(frame: DataFrame, sink: TopicSink) -> DataFrame:
    """Rows as records of a topic."""
    shown = [column for column in frame.columns if not column.startswith("_")]
    row = F.struct(*(quoted(column) for column in shown))
    if sink.value is not None:
        value = F.col(sink.value)
    elif sink.registry:
        value = _registered(frame.select(*(quoted(column) for column in shown)), row, sink)
    else:
        value = F.to_json(row)
    if DELETE in frame.columns:
        value = F.when(~F.col(DELETE), value)
    chosen = [value.alias("value")]
    if sink.key:
        chosen.append(F.col(sink.key[0]).cast("string").alias("key"))
    return frame.select(*chosen)


def _registered(rows: DataFrame, row: Column, sink: TopicSink) -> Column:
    from ottla.schema.registry import Registry
    from ottla.spark.registry.encoding import RowEncoder
    from ottla.spark.registry.functions import encoded
    from ottla.spark.registry.spark_types import columns_in_struct

    subject = sink.subject or f"{sink.topic}-value"
    columns = columns_in_struct(rows.schema)
    return encoded(row, RowEncoder(Registry(sink.registry), sink.format, subject, columns, sink.register))


def stream_writer(frame: DataFrame, sink: Sink, pipeline: Pipeline) -> DataStreamWriter:
    checkpoint = checkpoint_of(pipeline.checkpoint, sink.name)
    return sink.stream(frame, pipeline).outputMode(sink.mode).option("checkpointLocation", checkpoint)


def each_batch(sink: Sink, pipeline: Pipeline) -> EachBatch:
    return EachBatch(sink, checkpoint_of(pipeline.checkpoint, sink.name), refused_rows(sink, pipeline))


def refused_rows(sink: Sink, pipeline: Pipeline) -> RefusedRows:
    return RefusedRows(kafka=kafka_of(pipeline), topic=sink.dead_letter_topic, pipeline=pipeline.name, sink=sink.name)


def topic_writer(records: DataFrame, topic: str, kafka: Mapping[str, str]) -> DataStreamWriter:
    options = {f"kafka.{name}": value for name, value in kafka.items()}
    return records.writeStream.format("ottla").option("topic", topic).options(**options)


def write_records(records: DataFrame, topic: str, kafka: Mapping[str, str]) -> None:
    """As a batch instead of a stream."""
    options = {f"kafka.{name}": value for name, value in kafka.items()}
    records.write.format("ottla").mode("append").option("topic", topic).options(**options).save()


def checkpoint_of(root: str, query: str) -> str:
    """In Spark's form: a local folder, or an address."""
    return f"{root.rstrip('/')}/{query}" if "://" in root else (Path(root) / query).as_uri()
