"""The header of a record batch: read, validate, assign offsets. Records stay unread.

Message format v2 starts with 61 big-endian bytes:

     0 base_offset  8 batch_length  12 leader_epoch  16 magic  17 crc  21 attributes  23 last_offset_delta
    27 base_timestamp  35 max_timestamp  43 producer_id  51 producer_epoch 53 base_sequence 57 record_count

`batch_length` counts from byte 12. The checksum covers byte 21 to the end, so the base offset and leader epoch
are set without a new checksum.

Compiled by Cython if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

import struct

from ottla.core.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    UnsupportedCompressionType,
    UnsupportedForMessageFormat,
)
from ottla.records.checksum import crc32c

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.cpython.buffer import (
        Py_buffer,
        PyBUF_READ,
        PyBUF_SIMPLE,
        PyBUF_WRITABLE,
        PyBuffer_Release,
        PyObject_GetBuffer,
    )
    from cython.cimports.cpython.memoryview import PyMemoryView_FromMemory
    from cython.cimports.ottla.records.big_endian import get_int16, get_int32, get_int64, get_uint32, put_uint32
else:
    from ottla.records.uncompiled import flat, int32, int64

HEADER_BYTES = 61
LENGTH_STARTS_AT = 12
CHECKSUM_STARTS_AT = 21
MAGIC = 2

TRANSACTIONAL = 0x10
CONTROL = 0x20

# The same as C integers, for code that runs once per batch.
_HEADER_BYTES = cython.declare(cython.longlong, 61)
_LENGTH_AT = cython.declare(cython.longlong, 12)
_CHECKSUM_AT = cython.declare(cython.longlong, 21)
_COMPRESSION_MASK = cython.declare(cython.int, 0x07)
_LOG_APPEND_TIME = cython.declare(cython.int, 0x08)
_TRANSACTIONAL = cython.declare(cython.int, 0x10)
_CONTROL = cython.declare(cython.int, 0x20)
_MAGIC = cython.declare(cython.int, 2)
_NO_SEQUENCE = cython.declare(cython.int, -1)
_LZ4 = cython.declare(cython.int, 3)
_HIGHEST_COMPRESSION = cython.declare(cython.int, 4)
_SMALLEST_RECORD_BYTES = cython.declare(cython.longlong, 7)
_HIGHEST_BASE_OFFSET = cython.declare(cython.longlong, 0x7FFFFFFF00000000)

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LZ4_FRAME = b"\x04\x22\x4d\x18"
_LZ4_FLAGS_AT = 4
_LZ4_INDEPENDENT_BLOCKS = 0x20


@cython.final
@cython.cclass
class BatchHeader:
    """One batch's header, as on the wire and on disk."""

    base_offset = cython.declare(cython.longlong, visibility="readonly")
    batch_length = cython.declare(cython.int, visibility="readonly")
    leader_epoch = cython.declare(cython.int, visibility="readonly")
    crc = cython.declare(cython.uint, visibility="readonly")
    attributes = cython.declare(cython.int, visibility="readonly")
    last_offset_delta = cython.declare(cython.int, visibility="readonly")
    base_timestamp = cython.declare(cython.longlong, visibility="readonly")
    max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    producer_id = cython.declare(cython.longlong, visibility="readonly")
    producer_epoch = cython.declare(cython.int, visibility="readonly")
    base_sequence = cython.declare(cython.int, visibility="readonly")
    record_count = cython.declare(cython.int, visibility="readonly")

    @property
    def size(self) -> int:
        """The size of the whole batch."""
        return _LENGTH_AT + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        return self.attributes & _COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & _LOG_APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & _TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & _CONTROL != 0

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, -1 without; wraps around to 0 after the maximum."""
        if self.base_sequence == _NO_SEQUENCE:
            return _NO_SEQUENCE
        last: cython.longlong = self.base_sequence
        return (last + self.last_offset_delta) & 0x7FFFFFFF

    def __repr__(self) -> str:
        return (
            f"<batch {self.base_offset}..{self.last_offset}, {self.record_count} records, {self.size} bytes, "
            f"producer {self.producer_id}/{self.producer_epoch} at {self.base_sequence}>"
        )


@cython.cfunc
def _parse(data: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> BatchHeader:
    """Read the header at `at`; the batch may extend past `size`."""
    header: BatchHeader = BatchHeader.__new__(BatchHeader)
    _fill(header, data, at, size)
    return header


@cython.cfunc
@cython.exceptval(-1)
def _fill(
    header: BatchHeader, data: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.int:
    magic: cython.int
    if size - at < _HEADER_BYTES:
        if size - at > 16 and data[at + 16] < _MAGIC:
            raise UnsupportedForMessageFormat(f"message format v{data[at + 16]} is not supported, only v2")
        raise CorruptMessage(f"a batch header takes {_HEADER_BYTES} bytes, only {max(size - at, 0)} are left")
    if cython.compiled:
        header.base_offset = get_int64(data, at)
        header.batch_length = get_int32(data, at + 8)
        header.leader_epoch = get_int32(data, at + 12)
        magic = data[at + 16]
        header.crc = get_uint32(data, at + 17)
        header.attributes = get_int16(data, at + 21)
        header.last_offset_delta = get_int32(data, at + 23)
        header.base_timestamp = get_int64(data, at + 27)
        header.max_timestamp = get_int64(data, at + 35)
        header.producer_id = get_int64(data, at + 43)
        header.producer_epoch = get_int16(data, at + 51)
        header.base_sequence = get_int32(data, at + 53)
        header.record_count = get_int32(data, at + 57)
    else:
        (
            header.base_offset,
            header.batch_length,
            header.leader_epoch,
            magic,
            header.crc,
            header.attributes,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.record_count,
        ) = _HEADER.unpack_from(data, at)
        magic &= 0xFF
    if magic != _MAGIC:
        if magic < _MAGIC:
            raise UnsupportedForMessageFormat(f"message format v{magic} is not supported, only v2")
        raise CorruptMessage(f"unknown message format {magic}")
    if header.batch_length < _HEADER_BYTES - _LENGTH_AT:
        raise CorruptMessage(f"invalid batch length {header.batch_length}")
    # Low enough that no offset in the batch can overflow.
    if not 0 <= header.base_offset <= _HIGHEST_BASE_OFFSET:
        raise CorruptMessage(f"invalid base offset {header.base_offset}")
    if header.last_offset_delta < 0 or header.record_count < 0:
        raise CorruptMessage(
            f"invalid record count {header.record_count} with last offset delta {header.last_offset_delta}"
        )
    return 0


def read_header(source: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at `position`. Its fields are plausible; the checksum is not verified."""
    if position < 0:
        raise ValueError("position cannot be negative")
    if cython.compiled:
        view = cython.declare(Py_buffer)
        PyObject_GetBuffer(source, cython.address(view), PyBUF_SIMPLE)
        try:
            # Past the end means the end, which fits a C integer.
            at: cython.Py_ssize_t = view.len if position > view.len else position  # noqa: FURB136
            return _parse(cython.cast(cython.p_const_uchar, view.buf), at, view.len)
        finally:
            PyBuffer_Release(cython.address(view))
    else:
        data = flat(source)
        return _parse(data, min(position, len(data)), len(data))


def whole_batch(source: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header of the complete batch at `position`, like `check_batch` without verifying the checksum."""
    header: BatchHeader = read_header(source, position)
    left = memoryview(source).nbytes - position
    if header.size > left:
        raise CorruptMessage(f"a batch of {header.size} bytes is truncated to {left}")
    return header


@cython.cfunc
@cython.exceptval(-1)
def _check(
    header: BatchHeader, data: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.int:
    """Read the header at `at` of a batch that must be complete and intact."""
    _fill(header, data, at, size)
    length: cython.longlong = header.batch_length
    if length > size - at - _LENGTH_AT:
        raise CorruptMessage(f"a batch of {header.size} bytes is truncated to {size - at}")
    if cython.compiled:
        covered = PyMemoryView_FromMemory(
            cython.cast(cython.p_char, data + at + _CHECKSUM_AT), length + _LENGTH_AT - _CHECKSUM_AT, PyBUF_READ
        )
    else:
        covered = data[at + _CHECKSUM_AT : at + _LENGTH_AT + length]
    found: cython.uint = crc32c(covered)
    if found != header.crc:
        raise CorruptMessage(f"checksum mismatch: computed {found:#010x}, stored {header.crc:#010x}")
    return 0


def check_batch(source: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header of the complete, intact batch at `position`; otherwise CorruptMessage."""
    if position < 0:
        raise ValueError("position cannot be negative")
    header: BatchHeader = BatchHeader.__new__(BatchHeader)
    if cython.compiled:
        view = cython.declare(Py_buffer)
        PyObject_GetBuffer(source, cython.address(view), PyBUF_SIMPLE)
        try:
            at: cython.Py_ssize_t = view.len if position > view.len else position  # noqa: FURB136
            _check(header, cython.cast(cython.p_const_uchar, view.buf), at, view.len)
        finally:
            PyBuffer_Release(cython.address(view))
    else:
        data = flat(source)
        _check(header, data, min(position, len(data)), len(data))
    return header


@cython.cfunc
def _intact(data: cython.p_const_uchar, size: cython.Py_ssize_t, floor: cython.longlong) -> tuple[int, int]:
    at: cython.Py_ssize_t = 0
    next_offset: cython.longlong = floor
    header: BatchHeader = BatchHeader.__new__(BatchHeader)
    while at < size:
        try:
            _check(header, data, at, size)
        except (CorruptMessage, UnsupportedForMessageFormat):
            break
        if header.base_offset < next_offset:
            break
        next_offset = header.base_offset + header.last_offset_delta + 1
        at += _LENGTH_AT + header.batch_length
    return at, next_offset


def count_intact(source: bytes | bytearray | memoryview, floor: int) -> tuple[int, int]:
    """The number of bytes that are intact batches with ascending offsets from `floor` on, and the offset after."""
    if cython.compiled:
        view = cython.declare(Py_buffer)
        PyObject_GetBuffer(source, cython.address(view), PyBUF_SIMPLE)
        try:
            return _intact(cython.cast(cython.p_const_uchar, view.buf), view.len, floor)
        finally:
            PyBuffer_Release(cython.address(view))
    else:
        data = flat(source)
        return _intact(data, len(data), int64(floor))


def check_produced(source: bytes | bytearray | memoryview) -> BatchHeader:
    """The header of a batch that a producer may append: a single, intact one with valid attributes."""
    header: BatchHeader = check_batch(source)
    if _LENGTH_AT + header.batch_length != len(source):
        raise InvalidRecord("a produce request carries exactly one batch per partition")
    if header.record_count == 0 or header.last_offset_delta != header.record_count - 1:
        raise InvalidRecord(
            f"record count {header.record_count} does not match last offset delta {header.last_offset_delta}"
        )
    if header.attributes & _CONTROL:
        raise InvalidRecord("clients must not write control batches")
    if header.attributes & _LOG_APPEND_TIME:
        raise InvalidTimestamp("clients must not set the LogAppendTime attribute")
    if header.attributes & _COMPRESSION_MASK > _HIGHEST_COMPRESSION:
        raise UnsupportedCompressionType(f"unknown compression type {header.attributes & _COMPRESSION_MASK}")
    if not header.attributes & _COMPRESSION_MASK and header.record_count > (
        (header.batch_length + _LENGTH_AT - _HEADER_BYTES) // _SMALLEST_RECORD_BYTES
    ):
        raise InvalidRecord(f"{header.record_count} records do not fit into {header.size} bytes")
    if header.attributes & _COMPRESSION_MASK == _LZ4 and _has_linked_blocks(source):
        raise CorruptMessage("dependent LZ4 blocks, which Kafka's Java clients cannot read")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise InvalidRecord("a batch with a producer id needs an epoch and a sequence number")
    if header.producer_id < 0 and header.attributes & _TRANSACTIONAL:
        raise InvalidRecord("a transactional batch needs a producer id")
    return header


@cython.cfunc
def _has_linked_blocks(source: bytes | bytearray | memoryview) -> cython.bint:
    """From the flags of the LZ4 frame, without decompressing."""
    frame = memoryview(source).cast("B")[HEADER_BYTES : HEADER_BYTES + _LZ4_FLAGS_AT + 1]
    return (
        len(frame) > _LZ4_FLAGS_AT
        and frame[:_LZ4_FLAGS_AT] == _LZ4_FRAME
        and not frame[_LZ4_FLAGS_AT] & _LZ4_INDEPENDENT_BLOCKS
    )


def place(target: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write a batch's base offset and leader epoch into it; the checksum covers neither."""
    if cython.compiled:
        view = cython.declare(Py_buffer)
        # Converted before the buffer is acquired and anything is written: each may raise.
        offset: cython.longlong = base_offset
        epoch: cython.int = leader_epoch
        PyObject_GetBuffer(target, cython.address(view), PyBUF_WRITABLE)
        try:
            if position < 0 or position > view.len - _HEADER_BYTES:
                raise ValueError("no batch at this position")
            at: cython.p_uchar = cython.cast(cython.p_uchar, view.buf) + cython.cast(cython.Py_ssize_t, position)
            put_uint32(at, 0, cython.cast(cython.uint, (offset >> 32) & 0xFFFFFFFF))
            put_uint32(at, 4, cython.cast(cython.uint, offset & 0xFFFFFFFF))
            put_uint32(at, 12, cython.cast(cython.uint, epoch))
        finally:
            PyBuffer_Release(cython.address(view))
    else:
        header = struct.pack(">q", int64(base_offset)), struct.pack(">i", int32(leader_epoch))
        data = flat(target, is_writable=True)
        if position < 0 or position > len(data) - _HEADER_BYTES:
            raise ValueError("no batch at this position")
        data[position : position + 8], data[position + 12 : position + 16] = header


def set_log_append_time(target: bytearray | memoryview, timestamp: int) -> BatchHeader:
    """Set LogAppendTime and `timestamp`, and update the checksum."""
    header: BatchHeader = read_header(target)
    batch = memoryview(target).cast("B")
    if len(batch) < header.size:
        raise CorruptMessage(f"a batch of {header.size} bytes is truncated to {len(batch)}")
    max_timestamp = struct.pack(">q", timestamp)
    struct.pack_into(">h", batch, 21, header.attributes | _LOG_APPEND_TIME)
    batch[35:43] = max_timestamp
    struct.pack_into(">I", batch, 17, crc32c(batch[_CHECKSUM_AT : header.size]))
    return read_header(target)
