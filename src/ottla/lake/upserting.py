"""Tables with one row for each key: the data files that have changed keys are rewritten (copy on write).

As compaction does, keys are compared within a partition of the topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ottla.columns.arrow_types import with_schema
from ottla.lake.system_columns import KEY, PARTITION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table

    from ottla.lake.topic_table import TopicTable

KEY_COLUMNS: Final = (PARTITION, KEY)
DELETED: Final = "_deleted"
"""A column of changes, not of the table: whether the record is a tombstone."""
_ROW: Final = "_row"
_FILE_BYTES: Final = 128 << 20
"""Of rows that are kept, before a file is written."""
_MOST_KEYS_IN_FILTER: Final = 200
"""pyiceberg does not prune files by longer lists."""


class Rewritten(NamedTuple):
    removed: list[DataFile]
    added: list[DataFile]


def latest(changes: pa.Table) -> pa.Table:
    """The last record of each key; the records of a partition are in order."""
    numbered = changes.select(KEY_COLUMNS).append_column(_ROW, pa.array(range(changes.num_rows), pa.int64()))
    last = numbered.group_by(list(KEY_COLUMNS)).aggregate([(_ROW, "max")])[f"{_ROW}_max"].combine_chunks()
    return changes.take(last.take(pc.array_sort_indices(last)))


def rewrite(table: TopicTable, changes: pa.Table) -> Rewritten:
    """Data files with these changes, and those that they replace; `changes` has the last record of each key."""
    schema = table.arrow_schema()
    keys = _keys_by_partition(changes)
    removed, added = [], []
    pool = [with_schema(each, schema) for each in changes.filter(pc.invert(changes[DELETED])).to_batches()]
    for task in table.table.scan(row_filter=_admits(keys)).plan_files():
        is_changed = _is_changed(read(table.table, [task], KEY_COLUMNS), keys)
        if not pc.any(is_changed).as_py():
            continue
        removed.append(task.file)
        kept = read(table.table, [task]).filter(pc.invert(is_changed))
        pool += [with_schema(each, schema) for each in kept.to_batches()]
        if sum(each.nbytes for each in pool) >= _FILE_BYTES:
            added += _written(table, pool, schema)
            pool = []
    return Rewritten(removed, added + _written(table, pool, schema))


def read(table: Table, tasks: Iterable[FileScanTask], columns: tuple[str, ...] = ()) -> pa.Table:
    """The rows of data files with the current columns of the table, without those that delete files take out."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    schema = table.schema().select(*columns) if columns else table.schema()
    return ArrowScan(table.metadata, table.io, schema, AlwaysTrue()).to_table(tasks)


def _written(table: TopicTable, pool: list[pa.RecordBatch], schema: pa.Schema) -> list[DataFile]:
    rows = pa.Table.from_batches(pool, schema)
    return table.write(rows) if rows.num_rows else []


def _keys_by_partition(changes: pa.Table) -> dict[int, pa.Array]:
    partitions = changes[PARTITION]
    return {
        each: changes[KEY].filter(pc.equal(partitions, each)).combine_chunks()
        for each in pc.unique(partitions).to_pylist()
    }


def _is_changed(found: pa.Table, keys: dict[int, pa.Array]) -> pa.ChunkedArray:
    is_changed = pa.chunked_array([pa.repeat(pa.scalar(value=False), found.num_rows)])
    for partition, changed in keys.items():
        is_there = pc.is_in(found[KEY], value_set=changed.cast(found[KEY].type))
        is_changed = pc.or_(is_changed, pc.and_(pc.equal(found[PARTITION], partition), is_there))
    return is_changed


def _admits(keys: dict[int, pa.Array]) -> BooleanExpression:
    """By partitions and statistics of files: whether they may have one of the keys."""
    from pyiceberg.expressions import And, GreaterThanOrEqual, In, LessThanOrEqual

    values = set(_values(keys))
    if len(values) <= _MOST_KEYS_IN_FILTER:
        by_key: BooleanExpression = In(KEY, values)
    else:
        by_key = And(GreaterThanOrEqual(KEY, min(values)), LessThanOrEqual(KEY, max(values)))
    return And(In(PARTITION, set(keys)), by_key)


def _values(keys: dict[int, pa.Array]) -> Iterator[bytes]:
    for each in keys.values():
        yield from each.to_pylist()
