"""A micro-batch of changes into a table of files: merged by key, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.spark.pipelines.changes.marking import last_per_key, without_key
from ottla.spark.pipelines.changes.rules import DELETE, null_key
from ottla.spark.pipelines.evolution.conforming import conformed, frame_columns
from ottla.spark.pipelines.evolution.deciding import evolution_for
from ottla.spark.pipelines.sinks.batch import RefusedRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.columns.evolution import Evolution
    from ottla.spark.pipelines.changes.rules import ChangeRule
    from ottla.spark.pipelines.sinks.batch import MicroBatch
    from ottla.spark.pipelines.sinks.stored import StoredSink
    from ottla.spark.pipelines.tables.interface import MergingTable


def write_changes(table: MergingTable, frame: DataFrame, sink: StoredSink, batch: MicroBatch) -> int:
    """Returns the number of changes; 0 if the micro-batch is already in the table."""
    if table.has(batch.id):
        return 0
    found = table.columns()
    rule = sink.changes
    evolution = evolution_for(sink, found, frame_columns(frame))
    rows = last_per_key(frame, rule)
    if DELETE not in rows.columns:
        rows = rows.withColumn(DELETE, F.lit(False))  # noqa: FBT003 - a literal of Spark's
    rows = conformed(rows, evolution.columns, DELETE)
    if found is None:
        return _first(table, rows, rule, batch, evolution)
    changes = table.stage_changes(rows, batch.id)
    bad = [RefusedRow(row, reason) for row in changes.without_key(rule.key) if (reason := null_key(row, rule.key))]
    if bad:
        batch.refuse(bad)
    return table.merge(changes.with_key(rule.key), batch.id, evolution, rule)


def _first(table: MergingTable, rows: DataFrame, rule: ChangeRule, batch: MicroBatch, evolution: Evolution) -> int:
    """There is nothing to merge with: however many rows there are, they do not pass through the driver."""
    lacking = rows.where(without_key(rule)).drop(DELETE).toLocalIterator()
    bad = [RefusedRow(row.asDict(), null_key(row.asDict(), rule.key) or "") for row in lacking]
    if bad:
        batch.refuse(bad)
    upserts = rows.where(~without_key(rule) & ~F.col(DELETE)).drop(DELETE)
    return table.commit(table.stage(upserts, batch.id), batch.id, evolution)
