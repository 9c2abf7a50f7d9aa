"""The records of one batch, decompressed and iterated without an object per record.

A record is: length, attributes, timestamp delta, offset delta, key, value, headers; every number except the
attributes byte is a zigzag varint, and a length of -1 means null. Every length is checked against the
remaining bytes before it is used.

Compiled by Cython with the C types in payload.pxd if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import CorruptMessage
from ottla.records.batch import HEADER_BYTES
from ottla.records.compression import decompress

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.cpython.buffer import (
        PyBUF_SIMPLE,
        PyBuffer_Release,
        PyObject_GetBuffer,
    )
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.cpython.unicode import PyUnicode_DecodeUTF8
else:
    from ottla.records.uncompiled import flat

if TYPE_CHECKING:
    from ottla.records.batch import BatchHeader

IS_COMPILED = cython.compiled

_MAX_INT64 = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
_MIN_INT64 = cython.declare(cython.longlong, -1 - _MAX_INT64)
_SMALLEST_RECORD_BYTES = cython.declare(cython.longlong, 7)


class Payload:
    """The records of one batch, and the read position; payload.pxd lists its fields."""

    def __init__(self, header: BatchHeader, source: bytes | bytearray | memoryview) -> None:
        if cython.compiled:
            if self.is_held:
                raise RuntimeError("this payload is already open")
            PyObject_GetBuffer(source, cython.address(self.view), PyBUF_SIMPLE)
            self.is_held = True
            self.data = cython.cast(cython.p_const_uchar, self.view.buf)
            self.end = self.view.len
        else:
            self.data = flat(source)
            self.end = len(self.data)
        self.at = self.next_at = 0
        self.records_left = header.record_count
        if self.records_left > self.end // _SMALLEST_RECORD_BYTES:
            raise CorruptMessage(f"{self.records_left} records do not fit into {self.end} bytes")
        self.base_offset = header.base_offset
        self.last_offset_delta = header.last_offset_delta
        self.base_timestamp = header.base_timestamp
        self.is_log_append_time = header.is_log_append_time
        self.append_timestamp = header.max_timestamp

    def __dealloc__(self) -> None:
        if cython.compiled and self.is_held:
            PyBuffer_Release(cython.address(self.view))

    def varint(self, max_bits: cython.int) -> cython.longlong:
        at: cython.Py_ssize_t = self.at
        byte: cython.int
        second: cython.int
        # One or two bytes in nearly all cases; the loop handles the rest.
        if at + 1 < self.end:
            byte = self.data[at]
            if byte < 0x80:
                self.at = at + 1
                return (byte >> 1) ^ -(byte & 1)
            second = self.data[at + 1]
            if second < 0x80:
                self.at = at + 2
                return ((second << 6) | ((byte & 0x7F) >> 1)) ^ -(byte & 1)
        return self.long_varint(max_bits)

    def long_varint(self, max_bits: cython.int) -> cython.longlong:
        at: cython.Py_ssize_t = self.at
        byte: cython.ulonglong = 0x80
        raw: cython.ulonglong = 0
        shift: cython.int = 0
        while byte & 0x80:
            if at >= self.end:
                raise CorruptMessage("a record ends in the middle of a varint")
            byte = self.data[at]
            at += 1
            if shift >= max_bits or (byte & 0x7F) >> min(max_bits - shift, 7):
                raise CorruptMessage(f"a varint exceeds {max_bits} bits")
            raw |= (byte & 0x7F) << shift
            shift += 7
        self.at = at
        if cython.compiled:
            return cython.cast(cython.longlong, raw >> 1) ^ -cython.cast(cython.longlong, raw & 1)
        else:
            return (raw >> 1) ^ -(raw & 1)

    def skip_bytes(self) -> cython.Py_ssize_t:
        """Skip a length and that many bytes; return the length, -1 for null."""
        length: cython.longlong = self.varint(32)
        if length == -1:
            return -1
        if length < 0 or length > self.record_end - self.at:
            self.refuse_length(length)
        self.at += length
        return length

    def refuse_length(self, length: cython.longlong) -> cython.int:
        if length < 0:
            raise CorruptMessage(f"invalid length {length}")
        raise CorruptMessage(f"a key or value of {length} bytes exceeds its record")

    def skip_name(self) -> cython.Py_ssize_t:
        length: cython.Py_ssize_t = self.skip_bytes()
        if length < 0:
            raise CorruptMessage("a header has no name")
        return length

    def next_record(self) -> cython.int:
        """Read the next record up to its headers; a record without headers is finished."""
        size: cython.longlong
        delta: cython.longlong
        self.at = self.next_at
        self.record_end = self.end
        size = self.varint(32)
        if size < _SMALLEST_RECORD_BYTES - 1 or size > self.end - self.at:
            raise CorruptMessage(f"invalid record length {size} ({self.end - self.at} bytes left)")
        self.record_end = self.at + size
        self.at += 1
        delta = self.varint(64)
        if self.is_log_append_time:
            self.timestamp = self.append_timestamp
        else:
            if (delta > 0 and self.base_timestamp > _MAX_INT64 - delta) or (
                delta < 0 and self.base_timestamp < _MIN_INT64 - delta
            ):
                raise CorruptMessage("a timestamp exceeds 64 bits")
            self.timestamp = self.base_timestamp + delta
        delta = self.varint(32)
        if delta < 0 or delta > self.last_offset_delta:
            raise CorruptMessage(f"offset delta {delta} exceeds the batch's {self.last_offset_delta + 1} offsets")
        self.offset = self.base_offset + delta
        self.key_length = self.skip_bytes()
        self.key_at = self.at - max(self.key_length, 0)
        self.value_length = self.skip_bytes()
        self.value_at = self.at - max(self.value_length, 0)
        self.header_count = self.varint(32)
        if self.header_count < 0 or self.header_count > self.record_end - self.at:
            raise CorruptMessage(f"{self.header_count} headers do not fit into their record")
        if self.header_count == 0:
            self.finish_record()
        return 0

    def finish_record(self) -> cython.int:
        if self.at != self.record_end:
            raise CorruptMessage("a record's length does not match its contents")
        self.next_at = self.at
        self.records_left -= 1
        return 0

    def finish(self) -> cython.int:
        if self.next_at != self.end:
            raise CorruptMessage(f"{self.end - self.next_at} bytes after the last record of a batch")
        return 0

    def cut(self, at: cython.Py_ssize_t, length: cython.Py_ssize_t) -> bytes | None:
        if length < 0:
            return None
        if cython.compiled:
            return PyBytes_FromStringAndSize(cython.cast(cython.p_char, self.data + at), length)
        else:
            return bytes(self.data[at : at + length])

    def text(self, at: cython.Py_ssize_t, length: cython.Py_ssize_t) -> str:
        try:
            if cython.compiled:
                return PyUnicode_DecodeUTF8(cython.cast(cython.p_char, self.data + at), length, cython.NULL)
            else:
                return str(self.data[at : at + length], "utf-8")
        except UnicodeDecodeError:
            raise CorruptMessage("a header's name is not UTF-8") from None

    def header(self) -> tuple[str, bytes | None]:
        """Read one header of the current record."""
        length: cython.Py_ssize_t = self.skip_name()
        name = self.text(self.at - length, length)
        length = self.skip_bytes()
        return name, self.cut(self.at - max(length, 0), length)


def open_batch(source: memoryview, header: BatchHeader, at: int, max_bytes: int) -> Payload:
    """The records of the batch at `at`, decompressed."""
    return Payload(header, decompress(header.compression, source[at + HEADER_BYTES : at + header.size], max_bytes))
