"""Maintains the table of one topic: each committed record once, there or among the dead letters."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import pyarrow as pa

from ottla.columns.arrow_types import with_schema
from ottla.decoding.decoder import NewSchema
from ottla.lake.compacting import compact
from ottla.lake.evolving import evolve
from ottla.lake.names import DEAD_LETTERS, RECORDS, dead_letters_of, table_of
from ottla.lake.rows import DEAD_LETTER_SCHEMA, decoded, table_schema
from ottla.lake.source import TopicSource
from ottla.lake.system_columns import OFFSET, PARTITION
from ottla.lake.topic_table import TableDefinition, TopicTable
from ottla.lake.upserting import DELETED, KEY_COLUMNS, latest, rewrite
from ottla.lake.values import ValueSettings, decoder_for

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from ottla.client.blocking.background import Background
    from ottla.columns.partitioning import PartitionField
    from ottla.lake.covered import Covered
    from ottla.lake.rows import Decoded

_log: Final = logging.getLogger(__name__)
_ROUND_BYTES: Final = 256 << 20
"""Fetched before a commit."""
_UPSERT_ROUND_BYTES: Final = 64 << 20
"""The same for upserts, whose changes are in memory until then."""
_FILE_BYTES: Final = 128 << 20
"""Decoded before a file is written."""
_COMPACT_EVERY: Final = 20
"""Commits of a table, before its small files are merged."""
Mode = Literal["append", "upsert"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    topic: str
    namespace: str
    values: ValueSettings = field(default_factory=ValueSettings)
    mode: Mode = "append"
    """A row for each record, or for each key."""
    partition_by: tuple[PartitionField, ...] = ()
    allows_gaps: bool = False
    keep_snapshots: int = 100
    interval_s: float = 10.0
    """Between the starts of two commits."""


@dataclass(slots=True)
class Done:
    """What a round did."""

    rows: int = 0
    dead_letters: int = 0
    lag: int = 0
    """Offsets that were left: there was more to read than fits a commit."""


@dataclass(slots=True)
class _Pending:
    """Rows and files before their commit."""

    rows: list[pa.RecordBatch] = field(default_factory=list)
    tombstones: list[pa.Array] = field(default_factory=list)
    """For each of the batches, which rows are tombstones; for upserts."""
    bytes: int = 0
    files: list[DataFile] = field(default_factory=list)
    row_count: int = 0
    dead: list[pa.RecordBatch] = field(default_factory=list)


class TopicWriter:
    def __init__(self, link: Background, catalog: Catalog, settings: TopicSettings) -> None:
        self._settings = settings
        self._catalog = catalog
        self._source = TopicSource(link, settings.topic, allows_gaps=settings.allows_gaps)
        self._decoder = decoder_for(settings.values, settings.topic)
        self._table = TopicTable(
            catalog,
            TableDefinition(
                name=table_of(settings.topic, settings.namespace),
                topic=settings.topic,
                content=RECORDS,
                schema=table_schema(self._decoder.columns),
                values=settings.values.text(),
                partition_by=settings.partition_by,
                keep_snapshots=settings.keep_snapshots,
                key=KEY_COLUMNS if settings.mode == "upsert" else (),
            ),
        )
        self._is_upsert = settings.mode == "upsert"
        self._dead_letters = TopicTable(
            catalog,
            TableDefinition(
                name=dead_letters_of(settings.topic, settings.namespace),
                topic=settings.topic,
                content=DEAD_LETTERS,
                schema=DEAD_LETTER_SCHEMA,
                keep_snapshots=settings.keep_snapshots,
            ),
        )
        self._known_dead: set[tuple[int, int]] = set()
        self._is_claimed = self._is_reading = False
        self._commits = 0

    @property
    def covered(self) -> Covered:
        return self._table.covered

    def round(self) -> Done:
        """Append the records that the table lacks, in one commit."""
        try:
            if not self._is_reading:
                self._begin()
            return self._append()
        except BaseException:
            # What was read is read again, from the offsets that the table has.
            self._is_reading = False
            raise

    def close(self) -> None:
        self._source.close()

    def _begin(self) -> None:
        # The records first: their previous writer can add dead letters until it is fenced there, too.
        covered = self._table.resume() if self._is_claimed else self._table.claim(self._source.topic_id())
        evolve(self._table, self._decoder.columns)
        if self._decoder.has_errors or self._is_upsert:
            dead = self._dead_letters.resume() if self._is_claimed else self._dead_letters.claim(covered.topic_id)
            self._known_dead = _dead_since(self._dead_letters.table, dead, covered)
        self._is_claimed = True
        self._source.begin(covered, str(self._table.name))
        self._is_reading = True

    def _append(self) -> Done:
        pending = _Pending()
        for batch in self._source.batches(_UPSERT_ROUND_BYTES if self._is_upsert else _ROUND_BYTES):
            self._take(self._decoded(batch), pending)
        if pending.rows and not self._is_upsert:
            self._write(pending)
        positions = self._source.positions
        dead_count = sum(each.num_rows for each in pending.dead)
        if dead_count:
            files = self._dead_letters.write(pa.Table.from_batches(pending.dead, DEAD_LETTER_SCHEMA))
            self._dead_letters.commit(files, positions)
        if pending.rows:
            rewritten = rewrite(self._table, self._changes(pending))
            self._table.commit(rewritten.added, positions, rewritten.removed)
        elif pending.files or dead_count:
            self._table.commit(pending.files, positions)
        if pending.row_count or dead_count:
            self._known_dead = {each for each in self._known_dead if each[1] >= positions.get(each[0], 0)}
            self._compact()
        lag = sum(max(0, end - positions[each]) for each, end in self._source.targets.items())
        return Done(pending.row_count, dead_count, lag)

    def _compact(self) -> None:
        self._commits += 1
        if self._commits % _COMPACT_EVERY == 0:
            compact(self._table)
            if self._decoder.has_errors or self._is_upsert:
                compact(self._dead_letters)

    def _decoded(self, batch: pa.RecordBatch) -> Decoded:
        try:
            return decoded(batch, self._decoder, self._known_dead, needs_key=self._is_upsert)
        except NewSchema as new:
            _log.info("%s: %s", self._settings.topic, new)
        self._decoder = decoder_for(self._settings.values, self._settings.topic)
        evolve(self._table, self._decoder.columns)
        return decoded(batch, self._decoder, self._known_dead, needs_key=self._is_upsert)

    def _take(self, found: Decoded, pending: _Pending) -> None:
        if found.dead is not None:
            pending.dead.append(found.dead)
        if found.rows.num_rows:
            pending.rows.append(found.rows)
            pending.tombstones.append(found.is_tombstone)
            pending.row_count += found.rows.num_rows
            pending.bytes += found.rows.nbytes
        if pending.bytes >= _FILE_BYTES and not self._is_upsert:
            self._write(pending)

    def _write(self, pending: _Pending) -> None:
        schema = self._table.arrow_schema()
        rows = pa.Table.from_batches([with_schema(each, schema) for each in pending.rows], schema)
        pending.files += self._table.write(rows)
        pending.rows, pending.tombstones, pending.bytes = [], [], 0

    def _changes(self, pending: _Pending) -> pa.Table:
        """The last record of each key, with the column DELETED."""
        schema = self._table.arrow_schema()
        rows = pa.Table.from_batches([with_schema(each, schema) for each in pending.rows], schema)
        return latest(rows.append_column(DELETED, pa.chunked_array(pending.tombstones)))


def _dead_since(table: Table, dead: Covered, covered: Covered) -> set[tuple[int, int]]:
    """Dead letters of records that the other table does not cover yet: its commit did not follow theirs."""
    from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual

    found: set[tuple[int, int]] = set()
    for partition, end in dead.partitions.items():
        first = covered.partitions.get(partition, 0)
        if end > first:
            wanted = And(EqualTo(PARTITION, partition), GreaterThanOrEqual(OFFSET, first))
            rows = table.scan(row_filter=wanted, selected_fields=(PARTITION, OFFSET)).to_arrow()
            found |= set(zip(rows[PARTITION].to_pylist(), rows[OFFSET].to_pylist(), strict=True))
    return found
