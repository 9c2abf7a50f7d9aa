"""Batches as Arrow record batches and back. Needs pyarrow: `pip install ottla[arrow]`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ottla.records.compression import MAX_DECOMPRESSED_BYTES, Compression
from ottla.records.decode_columns import BytesColumn, Columns, decode_columns
from ottla.records.encode import BatchBuilder
from ottla.records.encode_columns import ColumnSource, HeaderSource, append_columns, partition_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

_STRING: Final = pa.string()
_BYTES: Final = pa.binary()
_INT8: Final = pa.int8()
_INT64: Final = pa.int64()
_TIMESTAMP: Final = pa.timestamp("ms", tz="UTC")
_HEADER: Final = pa.struct([pa.field("key", _STRING, nullable=False), pa.field("value", _BYTES)])
_HEADERS: Final = pa.list_(pa.field("header", _HEADER, nullable=False))
_NO_HEADERS: Final = pa.nulls(0, _HEADER)  # not pa.array, which imports pandas if installed

SCHEMA: Final = pa.schema(
    [
        pa.field("offset", _INT64, nullable=False),
        pa.field("timestamp", _TIMESTAMP, nullable=False),
        pa.field("timestamp_type", _INT8, nullable=False),
        pa.field("key", _BYTES),
        pa.field("value", _BYTES),
        pa.field("headers", _HEADERS, nullable=False),
    ]
)


def to_arrow(
    batches: bytes | bytearray | memoryview,
    from_offset: int = 0,
    until_offset: int = (1 << 63) - 1,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    *,
    check_crcs: bool = True,
) -> pa.RecordBatch:
    """The data records of consecutive batches, from one offset to below another.

    All are held at once, so `max_decompressed_bytes` is for all of them together.
    """
    columns = decode_columns(
        batches, from_offset, until_offset, max_decompressed_bytes, pa.allocate_buffer, check_crcs=check_crcs
    )
    count = columns.count
    from_buffers = pa.Array.from_buffers
    arrays = [
        from_buffers(_INT64, count, [None, columns.offsets]),
        from_buffers(_TIMESTAMP, count, [None, columns.timestamps]),
        from_buffers(_INT8, count, [None, columns.timestamp_types]),
        _bytes_array(columns.keys, _BYTES),
        _bytes_array(columns.values, _BYTES),
        from_buffers(_HEADERS, count, [None, columns.header_starts], children=[_header_array(columns)]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def from_arrow(
    rows: pa.RecordBatch,
    *,
    compression: int = Compression.NONE,
    max_batch_bytes: int = 1 << 20,
    now_ms: int | None = None,
) -> Iterator[bytearray]:
    """Batches of these rows, none larger than `max_batch_bytes` before compression unless one row is.

    Only `value` is required. `key` and `headers` may be missing; a missing or null `timestamp` means now.
    """
    source = RowSource(rows, now_ms)
    done = 0
    while done < rows.num_rows:
        builder = BatchBuilder(compression, max_batch_bytes)
        done = source.append_to(builder, done)
        yield builder.build()


class RowSource:
    """Rows to convert to records; see from_arrow for the columns."""

    def __init__(self, rows: pa.RecordBatch, now_ms: int | None = None) -> None:
        count = rows.num_rows
        if "value" not in rows.schema.names:
            raise ValueError(f"no column 'value' in {rows.schema.names}")
        self._count = count
        self._values = _bytes_source(rows.column("value"), count)
        self._keys = _bytes_source(_column(rows, "key", pa.nulls(count, _BYTES)), count)
        self._headers = _header_source(rows.column("headers"), count) if "headers" in rows.schema.names else None
        self._timestamps = _timestamps(rows, now_ms)

    def append_to(self, builder: BatchBuilder, first: int) -> int:
        """Add rows, from `first` on, until the builder is full; return the row at which it stopped."""
        return append_columns(builder, self._timestamps, self._keys, self._values, self._headers, first, self._count)


def key_partitions(rows: pa.RecordBatch, partitions: int) -> pa.Array:
    """The partition of each row's key among `partitions`; -1 for a row without a key."""
    count = rows.num_rows
    keys = _bytes_source(_column(rows, "key", pa.nulls(count, _BYTES)), count)
    return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(partition_keys(keys, partitions))])


def _column(rows: pa.RecordBatch, name: str, otherwise: pa.Array) -> pa.Array:
    return rows.column(name) if name in rows.schema.names else otherwise


def _bytes_array(column: BytesColumn, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, column.count, list(column.buffers), null_count=column.null_count)


def _header_array(columns: Columns) -> pa.Array:
    if columns.header_names.count == 0:
        return _NO_HEADERS
    names, values = _bytes_array(columns.header_names, _STRING), _bytes_array(columns.header_values, _BYTES)
    return pa.StructArray.from_arrays([names, values], fields=list(_HEADER))


def _bytes_source(array: pa.Array, count: int) -> ColumnSource:
    plain = array if array.type in (_BYTES, _STRING) else array.cast(_BYTES)
    return ColumnSource(tuple(plain.buffers()), plain.offset, count)


def _header_source(array: pa.Array, count: int) -> HeaderSource:
    plain = array if array.type == _HEADERS else array.cast(_HEADERS)
    pairs = plain.values
    if pairs.null_count and plain.flatten().null_count:
        raise ValueError("a header is null")
    names, values = (_bytes_source(pairs.field(i), len(pairs)) for i in (0, 1))
    validity, starts = plain.buffers()[:2]
    return HeaderSource((validity, starts), names, values, plain.offset, count)


def _timestamps(rows: pa.RecordBatch, now_ms: int | None) -> pa.Buffer | bytes:
    now = pa.scalar(time.time_ns() // 1_000_000 if now_ms is None else now_ms, _INT64)
    column = _column(rows, "timestamp", pa.nulls(rows.num_rows, _INT64))
    if pa.types.is_timestamp(column.type):
        # Fractions of a millisecond may be lost; overflowing seconds may not.
        column = column.cast(pa.timestamp("ms", tz=column.type.tz), safe=column.type.unit == "s")
    filled = column.cast(_INT64).fill_null(now)
    return filled.buffers()[1][8 * filled.offset :] if len(filled) else b""
