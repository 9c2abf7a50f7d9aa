"""Batches from records: one at a time with a running size, or from whole columns.

Compiled by Cython with the C types in encode.pxd if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ottla.core.errors import MessageTooLarge
from ottla.records.batch import (
    CHECKSUM_STARTS_AT,
    CONTROL,
    HEADER_BYTES,
    LENGTH_STARTS_AT,
    MAGIC,
    TRANSACTIONAL,
)
from ottla.records.checksum import crc32c
from ottla.records.compression import compress

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.cpython.bytearray import (
        PyByteArray_AS_STRING,
        PyByteArray_FromStringAndSize,
        PyByteArray_Resize,
    )
    from cython.cimports.cpython.number import PyNumber_Index as int64
    from cython.cimports.libc.string import memcpy
else:
    from ottla.records.uncompiled import int64

if TYPE_CHECKING:
    from typing import SupportsIndex

_MAX_INT64 = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
_MIN_INT64 = cython.declare(cython.longlong, -1 - _MAX_INT64)
_MAX_BATCH_BYTES = cython.declare(cython.longlong, 0x7FFFFFFF - 4096)
_FIRST_ROOM = 1024

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_CRC_AT = 17
_PRODUCER = struct.Struct(">qhi")
_PRODUCER_AT = 43

Headers = tuple[tuple[str, bytes | None], ...] | list[tuple[str, bytes | None]]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint_size(value: cython.longlong) -> cython.int:
    size: cython.int = 1
    raw: cython.ulonglong
    if cython.compiled:
        raw = (cython.cast(cython.ulonglong, value) << 1) ^ cython.cast(cython.ulonglong, value >> 63)
    else:
        raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_varint(target: cython.p_uchar, at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    """Write a zigzag varint at `at`; return its end."""
    raw: cython.ulonglong
    if cython.compiled:
        raw = (cython.cast(cython.ulonglong, value) << 1) ^ cython.cast(cython.ulonglong, value >> 63)
    else:
        raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        target[at] = (raw & 0x7F) | 0x80
        raw >>= 7
        at += 1
    target[at] = raw
    return at + 1


@cython.cfunc
def _put_bytes(
    target: cython.p_uchar, at: cython.Py_ssize_t, data: cython.p_const_uchar, length: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    at = _put_varint(target, at, length)
    if length > 0:
        if cython.compiled:
            memcpy(target + at, data, length)
        else:
            target[at : at + length] = data[:length]
        at += length
    return at


@cython.cfunc
def _as_bytes(data: object) -> bytes:
    if type(data) is bytes:
        return data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"keys and values must be bytes or None, not {type(data).__name__}")


def encode_headers(headers: Headers) -> bytes:
    target = bytearray()
    for name, value in headers:
        if not isinstance(name, str):
            raise TypeError(f"header names must be str, not {type(name).__name__}")
        encoded = name.encode()
        target += _varint(len(encoded)) + encoded
        if value is None:
            target += _varint(-1)
        else:
            encoded = _as_bytes(value)
            target += _varint(len(encoded)) + encoded
    return bytes(target)


@cython.cfunc
def _varint(value: cython.longlong) -> bytes:
    target = bytearray(10)
    if cython.compiled:
        end = _put_varint(cython.cast(cython.p_uchar, PyByteArray_AS_STRING(target)), 0, value)
    else:
        end = _put_varint(memoryview(target), 0, value)
    return bytes(target[:end])


@cython.cfunc
def _new_buffer(size: cython.Py_ssize_t) -> bytearray:
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, size)  # uninitialized; fully overwritten later
    else:
        return bytearray(size)


class BatchBuilder:
    """Collects records into one batch.

    `size` is the uncompressed size of the batch. A record that would exceed `max_bytes` is not
    added, except the first, so that a batch is never empty. Not thread-safe.
    """

    def __init__(
        self,
        compression: int = 0,
        max_bytes: int = 0x7FFFFFFF,
        compression_level: int | None = None,
        expected_bytes: int = _FIRST_ROOM,
    ) -> None:
        """`expected_bytes` is the initial capacity; it grows as needed."""
        if not 0 <= compression <= 4:
            raise ValueError(f"unknown compression type {compression}")
        self.compression = compression
        self.compression_level = compression_level
        self.max_bytes = max(0, min(max_bytes, _MAX_BATCH_BYTES))
        self.size = HEADER_BYTES
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self._buffer: bytearray | None = _new_buffer(max(_FIRST_ROOM, min(expected_bytes, self.max_bytes)))

    def append(
        self,
        timestamp: SupportsIndex,
        key: bytes | bytearray | memoryview | None,
        value: bytes | bytearray | memoryview | None,
        headers: Headers = (),
    ) -> bool:
        """Add a record; False, and nothing changed, if it would exceed `max_bytes`."""
        if not (cython.compiled and type(timestamp) is int):
            timestamp = int64(timestamp)  # C would silently truncate a float
        return self.put(timestamp, key, value, headers)

    def put(self, timestamp: cython.longlong, key: object, value: object, headers: Headers) -> cython.bint:
        """`append` for compiled callers."""
        key_bytes: bytes = b"" if key is None else _as_bytes(key)
        value_bytes: bytes = b"" if value is None else _as_bytes(value)
        key_length: cython.Py_ssize_t = -1 if key is None else len(key_bytes)
        value_length: cython.Py_ssize_t = -1 if value is None else len(value_bytes)
        header_bytes: bytes = b""
        header_count: cython.int = 0
        if headers:
            pairs = tuple(headers)
            header_bytes = encode_headers(pairs)
            header_count = len(pairs)
        return self.write(timestamp, key_bytes, key_length, value_bytes, value_length, header_bytes, header_count)

    def write(  # noqa: PLR0913
        self,
        timestamp: cython.longlong,
        key: cython.p_const_uchar,
        key_length: cython.Py_ssize_t,
        value: cython.p_const_uchar,
        value_length: cython.Py_ssize_t,
        header_bytes: bytes,
        header_count: cython.int,
    ) -> cython.bint:
        at: cython.Py_ssize_t
        length: cython.Py_ssize_t
        target: cython.p_uchar
        buffer = self._buffer
        if buffer is None:
            raise RuntimeError("the batch is already built; create a new builder")
        delta: cython.longlong = self._timestamp_delta(timestamp)
        length = 1 + _varint_size(delta) + _varint_size(self.count)
        length += _varint_size(key_length) + max(key_length, 0)
        length += _varint_size(value_length) + max(value_length, 0)
        length += _varint_size(header_count) + len(header_bytes)
        if not self._make_room(buffer, length):
            return False
        at = self.size
        if cython.compiled:
            target = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
        else:
            target = memoryview(buffer)
        at = _put_varint(target, at, length)
        target[at] = 0
        at = _put_varint(target, at + 1, delta)
        at = _put_varint(target, at, self.count)
        at = _put_bytes(target, at, key, key_length)
        at = _put_bytes(target, at, value, value_length)
        at = _put_varint(target, at, header_count)
        if header_count:
            if cython.compiled:
                memcpy(target + at, cython.cast(cython.p_const_uchar, header_bytes), len(header_bytes))
            else:
                target[at : at + len(header_bytes)] = header_bytes
            at += len(header_bytes)
        self.size = at
        if self.count == 0:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.count += 1
        return True

    def _timestamp_delta(self, timestamp: cython.longlong) -> cython.longlong:
        if self.count == 0:
            return 0
        if (self.base_timestamp < 0 and timestamp > _MAX_INT64 + self.base_timestamp) or (
            self.base_timestamp > 0 and timestamp < _MIN_INT64 + self.base_timestamp
        ):
            raise OverflowError(f"timestamps {self.base_timestamp} and {timestamp} are too far apart")
        return timestamp - self.base_timestamp

    def _make_room(self, buffer: bytearray, length: cython.longlong) -> cython.bint:
        needed: cython.longlong = self.size + length + _varint_size(length)
        if needed > self.max_bytes and self.count > 0:
            return False
        if needed > _MAX_BATCH_BYTES:
            raise MessageTooLarge(f"a record of {length} bytes does not fit into a batch")
        if needed > len(buffer):
            new_room: cython.longlong = min(2 * needed, _MAX_BATCH_BYTES)
            if cython.compiled:
                PyByteArray_Resize(buffer, new_room)
            else:
                buffer.extend(bytes(new_room - len(buffer)))
        return True

    def build(  # noqa: PLR0913
        self,
        *,
        base_offset: int = 0,
        leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
    ) -> bytearray:
        """The finished batch. The builder cannot be used any more."""
        batch = self._buffer
        if batch is None:
            raise RuntimeError("the batch is already built; create a new builder")
        if self.count == 0:
            raise ValueError("cannot build a batch without records")
        attributes = self.compression
        attributes |= (TRANSACTIONAL if is_transactional else 0) | (CONTROL if is_control else 0)
        header = _HEADER.pack(
            base_offset,
            0,
            leader_epoch,
            MAGIC,
            0,
            attributes,
            self.count - 1,
            self.base_timestamp,
            self.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            self.count,
        )
        # Nothing can fail from here on, and other threads must not add to the batch while it is compressed.
        self._buffer = None
        if self.compression:
            batch = bytearray(header) + compress(
                self.compression, memoryview(batch)[HEADER_BYTES : self.size], self.compression_level
            )
        else:
            del batch[self.size :]
            batch[:HEADER_BYTES] = header
        _LENGTH.pack_into(batch, LENGTH_STARTS_AT - 4, len(batch) - LENGTH_STARTS_AT)
        _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[CHECKSUM_STARTS_AT:]))
        return batch


def restamped(batch: bytearray, producer_id: int, producer_epoch: int, base_sequence: int) -> bytearray:
    """The same records with another producer id, epoch and sequence number."""
    copy = bytearray(batch)
    _PRODUCER.pack_into(copy, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    _CRC.pack_into(copy, _CRC_AT, crc32c(memoryview(copy)[CHECKSUM_STARTS_AT:]))
    return copy
