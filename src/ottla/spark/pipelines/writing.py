"""What a query does with each micro-batch, by the kind of its sink."""

from __future__ import annotations

import json
import logging
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ottla.core.errors import OttlaError
from ottla.spark.pipelines.changes.rules import DELETE
from ottla.spark.pipelines.changes.writing import write_changes
from ottla.spark.pipelines.databases.opening import database_of
from ottla.spark.pipelines.definition import DATABASE_KINDS, TABLE_KINDS
from ottla.spark.pipelines.evolution.conforming import conformed, frame_columns
from ottla.spark.pipelines.evolution.deciding import evolution_for
from ottla.spark.pipelines.preparing import kafka_of
from ottla.spark.pipelines.refused_rows import RefusedRows
from ottla.spark.pipelines.tables.opening import table_of, tidy
from ottla.spark.pipelines.tables.staging import BatchId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.spark.pipelines.databases.interface import RefusedRow
    from ottla.spark.pipelines.definition import Pipeline, Sink
    from ottla.spark.pipelines.tables.interface import MergingTable, Table

    Refused = Callable[[Sequence[RefusedRow]], None]

_log: Final = logging.getLogger(__name__)
_ORPHANS_EVERY_S: Final = 3600.0
_ORPHAN_AGE_S: Final = 3600.0


class EachBatch:
    """Called with every micro-batch; may be called again with one that was written, and then does nothing."""

    def __init__(self, sink: Sink, checkpoint: str, refused: RefusedRows) -> None:
        self._sink = sink
        self._checkpoint = checkpoint
        self._refused = refused
        self._query_id: str | None = None
        self._table: Table | None = None
        self._next_orphans_s = 0.0
        self._last = -1
        """The last that this process began: only that one and those before may be repeated."""

    def __call__(self, frame: DataFrame, number: int) -> None:
        batch = BatchId(self._query(frame), number)
        may_be_repeated = self._last in (-1, number)
        self._last = number
        deliver = partial(self._refused.deliver, batch=batch, may_be_repeated=may_be_repeated)
        if self._sink.kind in TABLE_KINDS:
            self._write_table(frame, batch, deliver)
        else:
            database_of(self._sink).write(frame, batch, deliver)

    def _write_table(self, frame: DataFrame, batch: BatchId, refused: Refused) -> None:
        # Kept open: what opening costs grows with the table's history.
        table = self._table or table_of(self._sink)
        # A failure may leave it half changed in memory; the next attempt opens it again.
        self._table = None
        write_table(table, frame, self._sink, batch, refused)
        every = self._sink.compact_every
        if every is not None and (batch.number + 1) % every == 0:
            tidy(self._sink)
        self._table = table
        self._remove_orphans(table)

    def _remove_orphans(self, table: Table) -> None:
        """Once an hour: it reads the names of all files."""
        if time.monotonic() < self._next_orphans_s:
            return
        self._next_orphans_s = time.monotonic() + _ORPHANS_EVERY_S
        try:
            table.remove_orphans(_ORPHAN_AGE_S)
        except (OSError, OttlaError) as failed:
            _log.warning("%s: could not remove orphaned files: %s", self._sink.name, failed)

    def _query(self, frame: DataFrame) -> str:
        """Spark's own id of the query, as old as its checkpoint: a new checkpoint must not find old batches."""
        if self._query_id is None:
            [line] = frame.sparkSession.read.text(f"{self._checkpoint}/metadata").collect()
            self._query_id = str(json.loads(line[0])["id"])
        return self._query_id


def write_batch(frame: DataFrame, sink: Sink, batch: BatchId, refused: Refused) -> int:
    """Returns how many rows were written; none, if the batch was there already."""
    if sink.kind in TABLE_KINDS:
        return write_table(table_of(sink), frame, sink, batch, refused)
    return database_of(sink).write(frame, batch, refused)


def write_table(table: Table, frame: DataFrame, sink: Sink, batch: BatchId, refused: Refused) -> int:
    if sink.key:
        return write_changes(cast("MergingTable", table), frame, sink, batch, refused)
    if table.has(batch):
        return 0
    evolution = evolution_for(sink, table.columns(), frame_columns(frame))
    files = table.stage(conformed(frame, evolution.columns), batch)
    return table.commit(files, batch, evolution)


def as_records(frame: DataFrame, sink: Sink) -> DataFrame:
    """Rows as records of a topic."""
    if sink.value is not None:
        value = F.col(sink.value)
    else:
        value = F.to_json(F.struct(*(f"`{column}`" for column in frame.columns if not column.startswith("_"))))
    if DELETE in frame.columns:
        value = F.when(~F.col(DELETE), value)
    chosen = [value.alias("value")]
    if sink.key:
        chosen.append(F.col(sink.key[0]).cast("string").alias("key"))
    return frame.select(*chosen)


def stream_writer(frame: DataFrame, sink: Sink, pipeline: Pipeline) -> DataStreamWriter:
    checkpoint = checkpoint_of(pipeline.checkpoint, sink.name)
    if sink.kind in TABLE_KINDS or sink.kind in DATABASE_KINDS:
        writer = frame.writeStream.foreachBatch(EachBatch(sink, checkpoint, refused_rows(sink, pipeline)))
    elif sink.kind == "topic":
        writer = topic_writer(as_records(frame, sink), sink.topic, kafka_of(pipeline))
    else:
        writer = frame.writeStream.format("console").option("truncate", "false")
    return writer.outputMode(sink.mode).option("checkpointLocation", checkpoint)


def refused_rows(sink: Sink, pipeline: Pipeline) -> RefusedRows:
    return RefusedRows(kafka=kafka_of(pipeline), topic=sink.dead_letters, pipeline=pipeline.name, sink=sink.name)


def topic_writer(records: DataFrame, topic: str, kafka: Mapping[str, str]) -> DataStreamWriter:
    options = {f"kafka.{name}": value for name, value in kafka.items()}
    return records.writeStream.format("ottla").option("topic", topic).options(**options)


def write_records(records: DataFrame, topic: str, kafka: Mapping[str, str]) -> None:
    """At once, instead of as a stream."""
    options = {f"kafka.{name}": value for name, value in kafka.items()}
    records.write.format("ottla").mode("append").option("topic", topic).options(**options).save()


def checkpoint_of(root: str, query: str) -> str:
    """As Spark takes it: a folder of this machine, or an address."""
    return f"{root.rstrip('/')}/{query}" if "://" in root else (Path(root) / query).as_uri()
