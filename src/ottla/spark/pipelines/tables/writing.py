"""Writes micro-batches to tables of files."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final, cast

from ottla.core.errors import OttlaError
from ottla.spark.pipelines.changes.writing import write_changes
from ottla.spark.pipelines.evolution.conforming import conformed, frame_columns
from ottla.spark.pipelines.evolution.deciding import evolution_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.sinks.batch import MicroBatch
    from ottla.spark.pipelines.sinks.tables import TableSink
    from ottla.spark.pipelines.tables.interface import MergingTable, Table

_log: Final = logging.getLogger(__name__)
_ORPHANS_EVERY_S: Final = 3600.0
_ORPHAN_AGE_S: Final = 3600.0


class TableWriter:
    """Writes the micro-batches of a stream, with compaction and removal of orphans in between."""

    def __init__(self, sink: TableSink) -> None:
        self._sink = sink
        self._table: Table | None = None
        self._next_orphans_s = 0.0

    def write(self, frame: DataFrame, batch: MicroBatch) -> int:
        # Kept open: what opening costs grows with the table's history.
        table = self._table or self._sink.open_table()
        # A failure may leave it half changed in memory; the next attempt opens it again.
        self._table = None
        count = write_table(table, frame, self._sink, batch)
        every = self._sink.compact_every
        if every is not None and (batch.number + 1) % every == 0:
            self._sink.tidy()
        self._table = table
        self._remove_orphans(table)
        return count

    def _remove_orphans(self, table: Table) -> None:
        """Once an hour, because it lists all files."""
        if time.monotonic() < self._next_orphans_s:
            return
        self._next_orphans_s = time.monotonic() + _ORPHANS_EVERY_S
        try:
            table.remove_orphans(_ORPHAN_AGE_S)
        except (OSError, OttlaError) as failed:
            _log.warning("%s: could not remove orphaned files: %s", self._sink.name, failed)


def write_table(table: Table, frame: DataFrame, sink: TableSink, batch: MicroBatch) -> int:
    """Returns the number of written rows; 0 if the micro-batch is already in the table."""
    if sink.changes.is_merge:
        return write_changes(cast("MergingTable", table), frame, sink, batch)
    if table.has(batch.id):
        return 0
    evolution = evolution_for(sink, table.columns(), frame_columns(frame))
    files = table.stage(conformed(frame, evolution.columns), batch.id)
    return table.commit(files, batch.id, evolution)
