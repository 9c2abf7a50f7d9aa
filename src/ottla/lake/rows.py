"""Fetched records as rows of a topic's table and of its table of dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ottla.columns.arrow_types import arrow_schema
from ottla.lake.system_columns import ERROR, HEADERS, KEY, OFFSET, PARTITION, TIMESTAMP, VALUE

if TYPE_CHECKING:
    from collections.abc import Collection

    from ottla.columns.types import Struct
    from ottla.lake.values import ValueDecoder

_HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_SYSTEM: Final = (
    pa.field(PARTITION, pa.int32(), nullable=False),
    pa.field(OFFSET, pa.int64(), nullable=False),
    pa.field(TIMESTAMP, pa.timestamp("us", tz="UTC")),
    pa.field(KEY, pa.binary()),
    pa.field(HEADERS, pa.list_(_HEADER)),
)
_FETCHED: Final = ("partition", "offset", "timestamp", "key", "headers")
DEAD_LETTER_SCHEMA: Final = pa.schema([*_SYSTEM, pa.field(VALUE, pa.binary()), pa.field(ERROR, pa.string())])


class Decoded(NamedTuple):
    rows: pa.RecordBatch
    is_tombstone: pa.Array
    """For each row whether its record has no value."""
    dead: pa.RecordBatch | None


def table_schema(columns: Struct) -> pa.Schema:
    return pa.schema([*_SYSTEM, *arrow_schema(columns)])


def decoded(
    records: pa.RecordBatch, decoder: ValueDecoder, known_dead: Collection[tuple[int, int]], *, needs_key: bool = False
) -> Decoded:
    """`known_dead` are partitions and offsets that the table of dead letters has already."""
    columns, errors = decoder.decode(records)
    if needs_key:
        no_key = pa.scalar("the record has no key", pa.string())
        errors = pc.coalesce(errors, pc.if_else(pc.is_null(records.column("key")), no_key, None))
    is_tombstone = pc.is_null(records.column("value"))
    system = _system_columns(records)
    schema = table_schema(decoder.columns)
    rows = pa.RecordBatch.from_arrays([*system, *columns], schema=schema)
    if errors.null_count == len(errors) and not known_dead:
        return Decoded(rows, is_tombstone, None)
    is_known = _is_known(records, known_dead)
    is_dead = pc.is_valid(errors)
    dead = pa.RecordBatch.from_arrays([*system, records.column("value"), errors], schema=DEAD_LETTER_SCHEMA)
    new_dead = dead.filter(pc.and_(is_dead, pc.invert(is_known)))
    is_kept = pc.invert(pc.or_(is_dead, is_known))
    return Decoded(rows.filter(is_kept), is_tombstone.filter(is_kept), new_dead if new_dead.num_rows else None)


def _system_columns(records: pa.RecordBatch) -> list[pa.Array]:
    return [records.column(name).cast(field.type) for name, field in zip(_FETCHED, _SYSTEM, strict=True)]


def _is_known(records: pa.RecordBatch, known_dead: Collection[tuple[int, int]]) -> pa.Array:
    if not known_dead:
        return pa.repeat(pa.scalar(value=False), records.num_rows)
    partition = records.column("partition")[0].as_py()  # a batch is of one partition
    offsets = pa.array([offset for at, offset in known_dead if at == partition], pa.int64())
    return pc.is_in(records.column("offset"), value_set=offsets)
