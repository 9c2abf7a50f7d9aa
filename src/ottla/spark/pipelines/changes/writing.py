"""A micro-batch of changes into a table of files: merged by key, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ottla.spark.pipelines.changes.marking import last_per_key, without_key
from ottla.spark.pipelines.changes.rules import DELETE, merge_rule, null_key
from ottla.spark.pipelines.databases.interface import RefusedRow
from ottla.spark.pipelines.evolution.conforming import conformed, frame_columns
from ottla.spark.pipelines.evolution.deciding import evolution_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.definition import Sink
    from ottla.spark.pipelines.evolution.rules import Evolution
    from ottla.spark.pipelines.tables.interface import MergingTable
    from ottla.spark.pipelines.tables.staging import BatchId

    Refused = Callable[[Sequence[RefusedRow]], None]


def write_changes(table: MergingTable, frame: DataFrame, sink: Sink, batch: BatchId, refused: Refused) -> int:
    """Returns how many changes were made; none, if the micro-batch is in the table already."""
    if table.has(batch):
        return 0
    found = table.columns()
    evolution = evolution_for(sink, found, frame_columns(frame))
    rows = last_per_key(frame, sink)
    if DELETE not in rows.columns:
        rows = rows.withColumn(DELETE, F.lit(False))  # noqa: FBT003 - a literal of Spark's
    rows = conformed(rows, evolution.columns, DELETE)
    if found is None:
        return _first(table, rows, sink, batch, refused, evolution)
    changes = table.stage_changes(rows, batch)
    bad = [RefusedRow(row, reason) for row in changes.without_key(sink.key) if (reason := null_key(row, sink.key))]
    if bad:
        refused(bad)
    return table.merge(changes.with_key(sink.key), batch, evolution, merge_rule(sink))


def _first(  # noqa: PLR0913 - of one micro-batch
    table: MergingTable, rows: DataFrame, sink: Sink, batch: BatchId, refused: Refused, evolution: Evolution
) -> int:
    """There is nothing to merge with: however many rows there are, they do not pass through the driver."""
    lacking = rows.where(without_key(sink)).drop(DELETE).toLocalIterator()
    bad = [RefusedRow(row.asDict(), null_key(row.asDict(), sink.key) or "") for row in lacking]
    if bad:
        refused(bad)
    upserts = rows.where(~without_key(sink) & ~F.col(DELETE)).drop(DELETE)
    return table.commit(table.stage(upserts, batch), batch, evolution)
