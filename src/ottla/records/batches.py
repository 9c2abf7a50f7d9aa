"""Consecutive batches, as in a segment: which of them a reader gets.

Compiled by Cython if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

import struct

from ottla.records.batch import read_header

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
    from cython.cimports.ottla.records.big_endian import get_int32, get_int64
else:
    from ottla.records.uncompiled import flat, int64

_HEADER_BYTES = cython.declare(cython.longlong, 61)
_LENGTH_AT = cython.declare(cython.longlong, 12)
_MAGIC = cython.declare(cython.int, 2)
_HIGHEST_BASE_OFFSET = cython.declare(cython.longlong, 0x7FFFFFFF00000000)

# The fields needed to skip a batch: base offset, length, magic, last offset delta, record count.
_STEP = struct.Struct(">qi4xB6xi30xi")


def find_batches(
    source: bytes | bytearray | memoryview, from_offset: int, until_offset: int, max_bytes: int
) -> tuple[int, int, int]:
    """Start and end of the batches from `from_offset` to below `until_offset`, and the offset after.

    Only complete batches count: the first one regardless of its size, further ones while they fit into `max_bytes`. An
    end equal to the start means that the first batch is incomplete; an end of -1 that `from_offset` was not
    reached, and then the start, possibly past these bytes, is where to continue.
    """
    if cython.compiled:
        view = cython.declare(Py_buffer)
        bounds = (from_offset, until_offset, max_bytes)
        PyObject_GetBuffer(source, cython.address(view), PyBUF_SIMPLE)
        try:
            return _find(source, cython.cast(cython.p_const_uchar, view.buf), view.len, bounds)
        finally:
            PyBuffer_Release(cython.address(view))
    else:
        data = flat(source)
        return _find(source, data, len(data), (int64(from_offset), int64(until_offset), int64(max_bytes)))


@cython.cfunc
def _find(
    source: bytes | bytearray | memoryview,
    data: cython.p_const_uchar,
    size: cython.Py_ssize_t,
    bounds: tuple[int, int, int],
) -> tuple[int, int, int]:
    from_offset: cython.longlong
    until_offset: cython.longlong
    max_bytes: cython.longlong
    from_offset, until_offset, max_bytes = bounds
    at: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t = -1
    end: cython.longlong
    next_offset: cython.longlong = from_offset
    base_offset: cython.longlong
    length: cython.longlong
    magic: cython.int
    last_offset_delta: cython.longlong
    record_count: cython.int
    while size - at >= _HEADER_BYTES:
        if cython.compiled:
            base_offset = get_int64(data, at)
            length = get_int32(data, at + 8)
            magic = data[at + 16]
            last_offset_delta = get_int32(data, at + 23)
            record_count = get_int32(data, at + 57)
        else:
            base_offset, length, magic, last_offset_delta, record_count = _STEP.unpack_from(data, at)
        if not (
            magic == _MAGIC
            and length >= _HEADER_BYTES - _LENGTH_AT
            and 0 <= base_offset <= _HIGHEST_BASE_OFFSET
            and last_offset_delta >= 0
            and record_count >= 0
        ):
            # Batches before the corruption are valid; the next read reports the error.
            if start >= 0 and at > start:
                break
            read_header(source, at)
        end = at + _LENGTH_AT + length
        if start < 0:
            if base_offset + last_offset_delta < from_offset:
                at = end
                continue
            start = at
        elif end - start > max_bytes:
            break
        if end > size or base_offset >= until_offset:
            break
        at = end
        next_offset = base_offset + last_offset_delta + 1
    if start < 0:
        return at, -1, from_offset
    return start, at, next_offset
