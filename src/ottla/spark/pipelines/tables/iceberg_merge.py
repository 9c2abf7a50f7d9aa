"""Merges changes into an Iceberg table: files with rows of the changed keys are rewritten without these rows, and the
new rows are added.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ottla.spark.pipelines.changes.rules import DELETE

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from ottla.spark.pipelines.changes.rules import ChangeRule
    from ottla.spark.pipelines.tables.changes import Changes

_MOST_IN_LIST: Final = 200
_WRITTEN_AT_ONCE: Final = 256 << 20
"""Maximum number of rows in memory before they are written to files."""
_RANGED: Final = (pa.types.is_integer, pa.types.is_date, pa.types.is_string, pa.types.is_large_string)
_OLD, _NEW, _ROW, _CHANGE = "old", "new", "row", "change"


@dataclass(slots=True)
class Rewrite:
    old: list[Any] = field(default_factory=list)
    """Data files that are removed from the table."""
    new: list[Any] = field(default_factory=list)
    row_count: int = 0


def rewrite(table: Table, metadata: TableMetadata, changes: Changes, rule: ChangeRule) -> Rewrite:
    """Write the new files. `metadata` is the table's with the columns that the changes need."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files

    schema = metadata.schema()
    compared = [*rule.key, *([rule.order_by] if rule.order_by else [])]
    keys = ArrowScan(metadata, table.io, schema.select(*compared), AlwaysTrue())
    whole = ArrowScan(metadata, table.io, schema, AlwaysTrue())
    columns = schema.as_arrow()
    done = Rewrite()
    stale: list[int] = []
    kept: list[pa.Table] = []
    for task in table.scan(row_filter=_near(changes, rule)).plan_files():
        matches = _Matches(keys.to_table([task]), changes, rule)
        stale += matches.stale
        if not len(matches.replaced):
            continue
        stored = whole.to_table([task])
        done.old.append(task.file)
        kept.append(_without(stored, _Matches(stored, changes, rule).replaced).cast(columns))
        if sum(each.nbytes for each in kept) > _WRITTEN_AT_ONCE:
            done.new += _dataframe_to_data_files(metadata, pa.concat_tables(kept), table.io)
            kept = []
    valid = _without(changes.rows, pa.array(stale, pa.int64()))
    upserts = valid.filter(pc.invert(valid[DELETE])).select(columns.names).cast(columns)
    done.row_count = valid.num_rows
    rest = pa.concat_tables([*kept, upserts])
    if rest.num_rows:
        done.new += _dataframe_to_data_files(metadata, rest, table.io)
    return done


def _near(changes: Changes, rule: ChangeRule) -> BooleanExpression:
    """A filter that a file must match to have any of the keys; its statistics may exclude it."""
    from pyiceberg.expressions import AlwaysTrue, And, GreaterThanOrEqual, In, LessThanOrEqual

    found: Any = AlwaysTrue()
    for name in rule.key:
        values = changes.rows[name]
        if not len(values) or not any(is_ranged(values.type) for is_ranged in _RANGED):
            continue
        if len(distinct := pc.unique(values)) <= _MOST_IN_LIST:
            found = And(found, In(name, set(distinct.to_pylist())))
        else:
            least, most = pc.min(values).as_py(), pc.max(values).as_py()
            found = And(found, And(GreaterThanOrEqual(name, least), LessThanOrEqual(name, most)))
    return found


class _Matches:
    """The numbers of the rows of a file whose keys are changed."""

    def __init__(self, stored: pa.Table, changes: Changes, rule: ChangeRule) -> None:
        names = [f"k{number}" for number in range(len(rule.key))]
        left = dict(zip(names, (stored[name] for name in rule.key), strict=True))
        right = dict(zip(names, (changes.rows[name] for name in rule.key), strict=True))
        # Widened types, and large strings beside strings: a join wants them alike.
        right = {name: column.cast(left[name].type) for name, column in right.items()}
        left[_ROW], right[_CHANGE] = _numbers(stored), _numbers(changes.rows)
        if rule.order_by is not None:
            left[_OLD] = stored[rule.order_by]
            right[_NEW] = changes.rows[rule.order_by].cast(left[_OLD].type)
        due = late = pa.table(left).join(pa.table(right), keys=names, join_type="inner")
        if rule.order_by is not None:
            is_due = pc.or_kleene(pc.is_null(due[_OLD]), pc.greater_equal(due[_NEW], due[_OLD]))
            is_due = pc.fill_null(is_due, False)  # noqa: FBT003 - a value
            due, late = due.filter(is_due), due.filter(pc.invert(is_due))
        self.replaced: pa.ChunkedArray = due[_ROW]
        self.stale: list[int] = late[_CHANGE].to_pylist() if rule.order_by is not None else []
        """Changes that are older than the stored rows."""


def _numbers(table: pa.Table) -> pa.Array:
    return pa.array(range(table.num_rows), pa.int64())


def _without(table: pa.Table, rows: pa.ChunkedArray | pa.Array) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(_numbers(table), value_set=rows))) if len(rows) else table
