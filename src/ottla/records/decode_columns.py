"""Batches to columns in Arrow's memory layout, without an object per record.

Each batch is scanned once, to validate it, to fill the fixed-width columns and to record the position of every key and
value; then the bytes are copied into buffers of exactly the right size. The caller may
change the batches or buffers in between, so copies are bounds-checked again.

Compiled by Cython if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.records.batch import check_batch, whole_batch
from ottla.records.compression import MAX_DECOMPRESSED_BYTES
from ottla.records.payload import open_batch

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.libc.string import memmove
    from cython.cimports.ottla.records.memory import Memory, get_int, put_int, put_long, room
    from cython.cimports.ottla.records.payload import Payload
else:
    from ottla.records.memory import Memory, get_int, put_int, put_long, room
    from ottla.records.payload import Payload
    from ottla.records.uncompiled import int64

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_OFFSET = 0x7FFFFFFFFFFFFFFF
_MAX_INT32 = cython.declare(cython.longlong, 0x7FFFFFFF)
_CHANGED = "the batches or the columns changed while they were being decoded"


@cython.final
@cython.cclass
class BytesColumn:
    """Byte strings in Arrow's layout: int32 offsets, the concatenated bytes, a validity bit for each."""

    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    null_count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _max_rows = cython.declare(cython.Py_ssize_t)
    _allocate = cython.declare(object)
    _used = cython.declare(cython.longlong)
    _starts = cython.declare(Memory)
    _validity = cython.declare(Memory)
    _data = cython.declare(Memory)
    _places = cython.declare(Memory)

    # Pointers to two of these, written once per row.
    _start = cython.declare(cython.p_uchar)
    _place = cython.declare(cython.p_uchar)

    def __init__(self, allocate: Callable[[int], Any], rows: int) -> None:
        if rows < 0:
            raise ValueError(f"invalid number of rows: {rows}")
        if self._starts is not None:
            raise RuntimeError("this column is already initialized")
        self.count = self.null_count = self._used = self._max_rows = 0
        self._starts = room(allocate, 4 * (rows + 1))
        self._start = self._starts.bytes
        put_int(self._start, 0, 0)
        self._places = room(bytearray, 4 * rows)
        self._validity = None
        self._allocate = allocate
        self._place = self._places.bytes
        self._max_rows = rows

    @property
    @cython.nonecheck(True)
    def buffers(self) -> tuple[Any, Any, Any]:
        """The validity, offsets and data buffers, in Arrow's order; no validity buffer without nulls."""
        return (self._validity.source if self.null_count else None, self._starts.source, self._data.source)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def note(self, at: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.int:
        """Append these bytes of the current payload as the next row; a length of -1 is null."""
        row: cython.Py_ssize_t = self.count
        if row >= self._max_rows or self._used > _MAX_INT32 - length:
            self.refuse(row)
        if length < 0:
            self.note_null(row)
        else:
            self._used += length
        put_int(self._place, row, at)
        put_int(self._start, row + 1, self._used)
        self.count = row + 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def refuse(self, row: cython.Py_ssize_t) -> cython.int:
        if row >= self._max_rows:
            raise RuntimeError(_CHANGED)
        raise ValueError("a column is limited to 2 GiB")

    @cython.cfunc
    @cython.exceptval(-1)
    def note_null(self, row: cython.Py_ssize_t) -> cython.int:
        if self.null_count == 0:
            self.all_valid()
        self.null_count += 1
        self._validity.bytes[row >> 3] &= ~(1 << (row & 7)) & 0xFF
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def all_valid(self) -> cython.int:
        """Create the validity bitmap at the first null."""
        i: cython.Py_ssize_t
        validity: Memory = room(self._allocate, (self._max_rows + 7) // 8)
        for i in range(validity.size):
            validity.bytes[i] = 0xFF
        self._validity = validity
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def allocate_data(self) -> cython.int:
        self._data = room(self._allocate, self._used)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def copy(self, payload: Payload, first: cython.Py_ssize_t, limit: cython.Py_ssize_t) -> cython.int:
        """Copy the bytes of these rows from the payload in which they were recorded."""
        row: cython.Py_ssize_t
        start: cython.Py_ssize_t
        length: cython.Py_ssize_t
        at: cython.Py_ssize_t
        data_size: cython.Py_ssize_t = self._data.size
        if not 0 <= first <= limit <= self.count:
            raise RuntimeError(_CHANGED)
        for row in range(first, limit):
            start = get_int(self._start, row)
            length = get_int(self._start, row + 1) - start
            at = get_int(self._place, row)
            if start < 0 or length < 0 or length > data_size - start or length > payload.end - at:
                raise RuntimeError(_CHANGED)
            if cython.compiled:
                memmove(self._data.bytes + start, payload.data + at, length)
            else:
                self._data.bytes[start : start + length] = payload.data[at : at + length]
        return 0


@cython.final
@cython.cclass
class Columns:
    """Many records in Arrow's layout; integers in this machine's byte order."""

    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    keys = cython.declare(BytesColumn, visibility="readonly")
    values = cython.declare(BytesColumn, visibility="readonly")
    header_names = cython.declare(BytesColumn, visibility="readonly")
    header_values = cython.declare(BytesColumn, visibility="readonly")
    _offsets = cython.declare(Memory)
    _timestamps = cython.declare(Memory)
    _timestamp_types = cython.declare(Memory)
    _header_starts = cython.declare(Memory)
    _headers_at = cython.declare(Memory)
    _header_count = cython.declare(cython.Py_ssize_t)

    def __init__(self, allocate: Callable[[int], Any], rows: int) -> None:
        if rows < 0:
            raise ValueError(f"invalid number of rows: {rows}")
        if self._offsets is not None:
            raise RuntimeError("these columns are already initialized")
        self.count = self._header_count = 0
        self._offsets = room(allocate, 8 * rows)
        self._timestamps = room(allocate, 8 * rows)
        self._timestamp_types = room(allocate, rows)
        self._header_starts = room(allocate, 4 * (rows + 1))
        put_int(self._header_starts.bytes, 0, 0)
        self._headers_at = room(bytearray, 4 * rows)
        self.keys = BytesColumn(allocate, rows)
        self.values = BytesColumn(allocate, rows)

    @property
    @cython.nonecheck(True)
    def offsets(self) -> object:
        """int64 per record."""
        return self._offsets.source

    @property
    @cython.nonecheck(True)
    def timestamps(self) -> object:
        """int64 per record, milliseconds."""
        return self._timestamps.source

    @property
    @cython.nonecheck(True)
    def timestamp_types(self) -> object:
        """int8 per record: 0 set by the producer, 1 by the log."""
        return self._timestamp_types.source

    @property
    @cython.nonecheck(True)
    def header_starts(self) -> object:
        """int32: the index of each record's first header among the header names and values."""
        return self._header_starts.source

    @cython.cfunc
    @cython.exceptval(-1)
    def walk(self, payload: Payload, first: cython.longlong, limit: cython.longlong) -> cython.int:
        """Validate every record of the payload, and add those from offset `first` to below `limit`."""
        row: cython.Py_ssize_t
        while payload.records_left:
            payload.next_record()
            is_wanted: cython.bint = first <= payload.offset < limit
            if is_wanted:
                row = self.count
                self.keys.note(payload.key_at, payload.key_length)
                self.values.note(payload.value_at, payload.value_length)
                put_long(self._offsets.bytes, row, payload.offset)
                put_long(self._timestamps.bytes, row, payload.timestamp)
                self._timestamp_types.bytes[row] = payload.is_log_append_time
                put_int(self._headers_at.bytes, row, payload.at)
                self._header_count += payload.header_count
                if self._header_count > _MAX_INT32:
                    raise ValueError("a column is limited to 2 billion headers")
                put_int(self._header_starts.bytes, row + 1, self._header_count)
                self.count = row + 1
            if payload.header_count:
                self.check_headers(payload)
                payload.finish_record()
        payload.finish()
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def check_headers(self, payload: Payload) -> cython.int:
        i: cython.Py_ssize_t
        length: cython.Py_ssize_t
        for _ in range(payload.header_count):
            length = payload.skip_name()
            for i in range(payload.at - length, payload.at):
                if payload.data[i] >= 0x80:
                    payload.text(payload.at - length, length)
                    break
            payload.skip_bytes()
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def note_headers(self, payload: Payload, first: cython.Py_ssize_t, limit: cython.Py_ssize_t) -> cython.int:
        row: cython.Py_ssize_t
        length: cython.Py_ssize_t
        payload.record_end = payload.end
        for row in range(first, limit):
            payload.at = get_int(self._headers_at.bytes, row)
            for _ in range(get_int(self._header_starts.bytes, row + 1) - get_int(self._header_starts.bytes, row)):
                length = payload.skip_name()
                self.header_names.note(payload.at - length, length)
                length = payload.skip_bytes()
                self.header_values.note(payload.at - max(length, 0), length)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def copy(self, walked: list[tuple[Payload, int, int]], allocate: Callable[[int], Any]) -> cython.int:
        payload: Payload
        # Most records have no headers; calling the allocator would cost more than it is worth.
        header_allocate = allocate if self._header_count else bytearray
        self.header_names = BytesColumn(header_allocate, self._header_count)
        self.header_values = BytesColumn(header_allocate, self._header_count)
        if self._header_count:
            for payload, first, limit in walked:
                self.note_headers(payload, first, limit)
        self.keys.allocate_data()
        self.values.allocate_data()
        self.header_names.allocate_data()
        self.header_values.allocate_data()
        for payload, first, limit in walked:
            self.keys.copy(payload, first, limit)
            self.values.copy(payload, first, limit)
            first_header: cython.Py_ssize_t = get_int(self._header_starts.bytes, first)
            header_limit: cython.Py_ssize_t = get_int(self._header_starts.bytes, limit)
            self.header_names.copy(payload, first_header, header_limit)
            self.header_values.copy(payload, first_header, header_limit)
        return 0


def decode_columns(
    source: bytes | bytearray | memoryview,
    from_offset: int = 0,
    until_offset: int = _MAX_OFFSET,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    allocate: Callable[[int], Any] = bytearray,
    *,
    check_crcs: bool = True,
) -> Columns:
    """The data records of consecutive batches, from one offset to below another, as columns.

    `max_decompressed_bytes` is for all batches together, since all are held at once. `allocate` returns
    writable buffers; they may be longer than the columns in them. It is not called without headers.
    """
    payload: Payload
    payloads: list[Payload] = []
    view = memoryview(source).cast("B")
    check = check_batch if check_crcs else whole_batch
    if not cython.compiled:
        from_offset, until_offset = int64(from_offset), int64(until_offset)
    first: cython.longlong = from_offset
    limit: cython.longlong = until_offset
    rows: cython.Py_ssize_t = 0
    at = 0
    while at < len(view):
        header = check(view, at)
        if not header.is_control and first <= header.last_offset and header.base_offset < limit:
            payload = open_batch(view, header, at, max_decompressed_bytes)
            payloads.append(payload)
            rows += payload.records_left
            if header.compression:
                max_decompressed_bytes -= payload.end
        at += header.size
    columns: Columns = Columns(allocate, rows)
    walked: list[tuple[Payload, int, int]] = []
    for payload in payloads:
        first_row = columns.count
        columns.walk(payload, first, limit)
        walked.append((payload, first_row, columns.count))
    columns.copy(walked, allocate)
    return columns
