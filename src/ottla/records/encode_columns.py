"""Columns in Arrow's memory layout to batches, without an object per record.

Compiled by Cython if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.ottla.records.encode import BatchBuilder, encode_headers
    from cython.cimports.ottla.records.memory import Memory, get_int, get_long, put_int
    from cython.cimports.ottla.records.murmur2 import hash_of
else:
    from ottla.records.encode import BatchBuilder, encode_headers
    from ottla.records.memory import Memory, get_int, get_long, put_int
    from ottla.records.murmur2 import hash_of


@cython.cfunc
def _validity(bits: object, rows: int) -> Memory | None:
    if bits is None:
        return None
    memory: Memory = Memory(bits, is_writable=False)
    if 8 * memory.size < rows:
        raise ValueError("a column has fewer validity bits than rows")
    return memory


@cython.cfunc
def _starts(source: object, rows: int) -> Memory:
    memory: Memory = Memory(b"" if source is None else source, is_writable=False)
    # Arrow allows an empty column without offsets.
    if rows and memory.size < 4 * (rows + 1):
        raise ValueError("a column is shorter than its number of rows")
    return memory


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_null(validity: Memory | None, row: cython.Py_ssize_t) -> cython.bint:
    return validity is not None and not validity.bytes[row >> 3] & (1 << (row & 7))


@cython.final
@cython.cclass
class ColumnSource:
    """Byte strings in Arrow's layout to read from; `first` is the buffer row that counts as row 0."""

    rows = cython.declare(cython.Py_ssize_t)
    start = cython.declare(cython.Py_ssize_t)
    length = cython.declare(cython.Py_ssize_t)
    _validity = cython.declare(Memory)
    _starts = cython.declare(Memory)
    _data = cython.declare(Memory)
    _first = cython.declare(cython.Py_ssize_t)

    def __init__(self, buffers: tuple[Any, Any, Any], first: int, rows: int) -> None:
        validity, starts, data = buffers
        if first < 0 or rows < 0:
            raise ValueError("a column cannot start before its first row")
        self.rows = 0  # until the buffers are validated
        self._validity = _validity(validity, first + rows)
        self._starts = _starts(starts, first + rows)
        self._data = Memory(b"" if data is None else data, is_writable=False)
        self._first = first
        self.rows = rows

    @cython.cfunc
    @cython.exceptval(-1)
    def seek(self, row: cython.Py_ssize_t) -> cython.int:
        """Set `start` and `length` of this row; the length of null is -1."""
        row += self._first
        if _is_null(self._validity, row):
            self.start = 0
            self.length = -1
            return 0
        self.start = get_int(self._starts.bytes, row)
        self.length = get_int(self._starts.bytes, row + 1) - self.start
        if self.start < 0 or self.length < 0 or self.start + self.length > self._data.size:
            raise ValueError("a column's offsets exceed its data")
        return 0

    @cython.cfunc
    def pointer(self) -> cython.p_const_uchar:
        if cython.compiled:
            return self._data.bytes + self.start
        else:
            rest: memoryview = self._data.bytes[self.start :]
            return rest

    @cython.cfunc
    def cut(self) -> bytes | None:
        if self.length < 0:
            return None
        if cython.compiled:
            return PyBytes_FromStringAndSize(cython.cast(cython.p_char, self._data.bytes + self.start), self.length)
        else:
            return bytes(self._data.bytes[self.start : self.start + self.length])


@cython.final
@cython.cclass
class HeaderSource:
    """A list column of headers: row i's are the names and values from starts[i] to below starts[i + 1]."""

    rows = cython.declare(cython.Py_ssize_t)
    _validity = cython.declare(Memory)
    _starts = cython.declare(Memory)
    _names = cython.declare(ColumnSource)
    _values = cython.declare(ColumnSource)
    _first = cython.declare(cython.Py_ssize_t)

    def __init__(
        self,
        buffers: tuple[Any, Any],
        names: ColumnSource,
        values: ColumnSource,
        first: int,
        rows: int,
    ) -> None:
        validity, starts = buffers
        if first < 0 or rows < 0:
            raise ValueError("a column cannot start before its first row")
        self.rows = 0  # until the buffers are validated
        self._validity = _validity(validity, first + rows)
        self._starts = _starts(starts, first + rows)
        self._names = names
        self._values = values
        self._first = first
        self.rows = rows

    @cython.cfunc
    def row(self, row: cython.Py_ssize_t) -> list[tuple[str, bytes | None]]:
        headers: list[tuple[str, bytes | None]] = []
        row += self._first
        if _is_null(self._validity, row):
            return headers
        first: cython.Py_ssize_t = get_int(self._starts.bytes, row)
        limit: cython.Py_ssize_t = get_int(self._starts.bytes, row + 1)
        if not 0 <= first <= limit <= min(self._names.rows, self._values.rows):
            raise ValueError("a header column's offsets exceed its headers")
        for i in range(first, limit):
            self._names.seek(i)
            self._values.seek(i)
            name = self._names.cut()
            if name is None:
                raise ValueError("a header has no name")
            headers.append((name.decode(), self._values.cut()))
        return headers


def append_columns(  # noqa: PLR0913
    builder: BatchBuilder,
    timestamps: object,
    keys: ColumnSource,
    values: ColumnSource,
    headers: HeaderSource | None,
    first: int,
    rows: int,
) -> int:
    """Add rows, from `first` on, until the builder is full; return the row at which it stopped.

    `timestamps` holds an int64 of milliseconds per row.
    """
    row: cython.Py_ssize_t
    header_count: cython.int = 0
    header_bytes: bytes = b""
    times: Memory = Memory(timestamps, is_writable=False)
    if not 0 <= first <= rows <= min(keys.rows, values.rows, times.size // 8):
        raise ValueError(f"rows {first} to {rows} are out of range")
    if headers is not None and rows > headers.rows:
        raise ValueError(f"fewer headers than {rows} rows")
    for row in range(first, rows):
        keys.seek(row)
        values.seek(row)
        if headers is not None:
            row_headers = headers.row(row)
            header_bytes = encode_headers(row_headers)
            header_count = len(row_headers)
        if not builder.write(
            get_long(times.bytes, row),
            keys.pointer(),
            keys.length,
            values.pointer(),
            values.length,
            header_bytes,
            header_count,
        ):
            return row
    return rows


def partition_keys(keys: ColumnSource, partitions: cython.int) -> bytearray:
    """An int32 per row: the partition of its key, or -1 without a key."""
    row: cython.Py_ssize_t
    if partitions <= 0:
        raise ValueError(f"the number of partitions must be positive, got {partitions}")
    chosen = bytearray(4 * keys.rows)
    target: Memory = Memory(chosen, is_writable=True)
    for row in range(keys.rows):
        keys.seek(row)
        if keys.length < 0:
            put_int(target.bytes, row, -1)
        else:
            put_int(target.bytes, row, (hash_of(keys.pointer(), keys.length) & 0x7FFFFFFF) % partitions)
    return chosen
