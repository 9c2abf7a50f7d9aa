"""The last offset of every key in a range of a log, and the records that remain: used by compaction.

The record scans release the GIL, so that requests do not have to wait for them.

Compiled by Cython with the C types in key_offsets.pxd if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ottla.core.errors import CorruptMessage
from ottla.records.batch import HEADER_BYTES

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.cpython.buffer import PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
    from cython.cimports.libc.stdlib import calloc, free, malloc
    from cython.cimports.libc.string import memcmp, memcpy
    from cython.cimports.ottla.records.siphash import siphash
else:
    from ottla.records.uncompiled import flat

_NONE = cython.declare(cython.longlong, -1)
_ENTRY_BYTES = cython.declare(cython.longlong, 16)
_BYTES_PER_SLOT = 32
_FEWEST_SLOTS = 64
_LONGEST_VARINT = cython.declare(cython.int, 10)


class Kept(NamedTuple):
    """The remaining records of a batch, unchanged except possibly for the base of their timestamps.

    Valid until the same keys are used for the next batch.
    """

    batch: memoryview
    """Room for a header, and the records."""
    record_count: int
    max_timestamp_delta: int
    """The base timestamp of the new deltas."""
    has_tombstones: bool

    @property
    def records(self) -> memoryview:
        return self.batch[HEADER_BYTES:]


class KeyOffsets:
    """The last offset of each key, in bounded memory."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.reading = bytearray()
        self.writing = bytearray()
        self.count = 0
        self.used = 0
        if cython.compiled:
            if self.slots != cython.NULL:
                raise RuntimeError("these offsets are already in use")
            slots: cython.ulonglong = _FEWEST_SLOTS
            while slots * 2 * _BYTES_PER_SLOT <= max_bytes:
                slots *= 2
            self.slot_mask = slots - 1
            self.most_keys = slots // 4 * 3
            self.arena_bytes = max(max_bytes - slots * 8, 0)
            self.secret_low = int.from_bytes(os.urandom(8), "big")
            self.secret_high = int.from_bytes(os.urandom(8), "big")
            # Memory is allocated lazily by the system.
            self.slots = cython.cast(cython.pointer(cython.ulonglong), calloc(slots, 8))
            self.arena = cython.cast(cython.p_uchar, malloc(max(self.arena_bytes, 1)))
            if self.slots == cython.NULL or self.arena == cython.NULL:
                raise MemoryError
        else:
            self._by_key: dict[bytes, int] = {}

    def __dealloc__(self) -> None:
        if cython.compiled:
            free(self.slots)
            free(self.arena)

    def __len__(self) -> int:
        return self.count

    def room_to_read(self, size: int) -> bytearray:
        if len(self.reading) < size:
            self.reading = bytearray(1 << size.bit_length())
        return self.reading

    def room_to_write(self, size: int) -> bytearray:
        if len(self.writing) < size:
            self.writing = bytearray(1 << size.bit_length())
        return self.writing

    def offset_of(self, key: bytes) -> int:
        """The last offset of this key, -1 if none."""
        return self.find(key, len(key))

    def find(self, key: cython.p_const_uchar, length: cython.Py_ssize_t) -> cython.longlong:
        if cython.compiled:
            place: cython.ulonglong = self.slots[_slot_of(self, key, length)]
            offset: cython.longlong = _NONE
            if place:
                memcpy(cython.address(offset), self.arena + place - 1, 8)
            return offset
        else:
            return self._by_key.get(bytes(key[:length]), _NONE)

    def put(self, key: cython.p_const_uchar, length: cython.Py_ssize_t, offset: cython.longlong) -> cython.bint:
        """Add the key at this offset; False, without changes, if there is no room."""
        size: cython.longlong = (_ENTRY_BYTES + length + 7) // 8 * 8
        if cython.compiled:
            slot: cython.ulonglong = _slot_of(self, key, length)
            entry: cython.p_uchar
            entry_length: cython.longlong = length
            if not self.slots[slot]:
                if self.used + size > self.arena_bytes or self.count >= self.most_keys:
                    return False
                self.slots[slot] = self.used + 1
                entry = self.arena + self.used
                memcpy(entry + 8, cython.address(entry_length), 8)
                memcpy(entry + 16, key, length)
                self.used += size
                self.count += 1
            memcpy(self.arena + self.slots[slot] - 1, cython.address(offset), 8)
            return True
        else:
            name = bytes(key[:length])
            if name not in self._by_key:
                if self.used + size + _BYTES_PER_SLOT > self.max_bytes:
                    return False
                self.used += size + _BYTES_PER_SLOT
                self.count += 1
            self._by_key[name] = offset
            return True


if cython.compiled:

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _slot_of(keys: KeyOffsets, key: cython.p_const_uchar, length: cython.Py_ssize_t) -> cython.ulonglong:
        """The slot of the key in the table, or where it would be."""
        slot: cython.ulonglong = siphash(keys.secret_low, keys.secret_high, key, length) & keys.slot_mask
        entry: cython.p_uchar
        entry_length: cython.longlong = 0
        while keys.slots[slot]:
            entry = keys.arena + keys.slots[slot] - 1
            memcpy(cython.address(entry_length), entry + 8, 8)
            if entry_length == length and memcmp(entry + 16, key, length) == 0:
                break
            slot = (slot + 1) & keys.slot_mask
        return slot


class RecordWalk:
    """Iterates over the records of a batch as positions; key_offsets.pxd lists its fields."""

    def __init__(self, records: bytes | bytearray | memoryview) -> None:
        if cython.compiled:
            if self.is_held:
                raise RuntimeError("these records are already being iterated")
            PyObject_GetBuffer(records, cython.address(self.view), PyBUF_SIMPLE)
            self.is_held = True
            self.data = cython.cast(cython.p_const_uchar, self.view.buf)
            self.end = self.view.len
        else:
            self.data = flat(records)
            self.end = len(self.data)
        self.at = self.next_at = 0
        self.is_broken = False

    def __dealloc__(self) -> None:
        if cython.compiled and self.is_held:
            PyBuffer_Release(cython.address(self.view))

    def varint(self) -> cython.longlong:
        raw: cython.ulonglong = 0
        byte: cython.ulonglong = 0x80
        shift: cython.int = 0
        while byte & 0x80:
            if self.at >= self.end or shift >= 7 * _LONGEST_VARINT:
                self.is_broken = True
                return 0
            byte = self.data[self.at]
            raw |= (byte & 0x7F) << shift
            self.at += 1
            shift += 7
        if cython.compiled:
            return cython.cast(cython.longlong, raw >> 1) ^ -cython.cast(cython.longlong, raw & 1)
        else:
            return (raw >> 1) ^ -(raw & 1)

    def next(self) -> cython.bint:
        """Read the next record; False at the end, or if `is_broken`."""
        size: cython.longlong
        if self.is_broken or self.next_at >= self.end:
            return False
        self.at = self.next_at
        size = self.varint()
        if size < 1 or size > self.end - self.at:
            self.is_broken = True
            return False
        self.record_at = self.at
        self.record_end = self.next_at = self.at + size
        self.at += 1
        self.timestamp_delta = self.varint()
        self.offset_delta_at = self.at
        self.offset_delta = self.varint()
        self.key_length = self.varint()
        self.key_at = self.at
        if self.key_length > 0:
            if self.key_length > self.end - self.at:
                self.is_broken = True
                return False
            self.at += self.key_length
        self.value_length = self.varint()
        if self.at > self.record_end:
            self.is_broken = True
        return not self.is_broken

    def check(self) -> cython.int:
        if self.is_broken:
            raise CorruptMessage("a record's length does not match its contents")
        return 0


class RecordCopy:
    """Output buffer of the kept records; large enough for all of them."""

    def __init__(self, target: bytearray, at: int) -> None:
        self.data = target
        self.at = at

    def put_varint(self, value: cython.longlong) -> cython.int:
        if cython.compiled:
            raw: cython.ulonglong = (cython.cast(cython.ulonglong, value) << 1) ^ cython.cast(
                cython.ulonglong, value >> 63
            )
        else:
            raw = (value << 1) ^ (value >> 63)
        while raw > 0x7F:
            self.data[self.at] = raw & 0x7F | 0x80
            raw >>= 7
            self.at += 1
        self.data[self.at] = raw
        self.at += 1
        return 0

    def put_bytes(self, source: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        if cython.compiled:
            memcpy(self.data + self.at, source, size)
        else:
            self.data[self.at : self.at + size] = source[:size]
        self.at += size
        return 0


def note_keys(keys: KeyOffsets, records: bytes | bytearray | memoryview, base_offset: cython.longlong) -> bool:
    """Add the offsets of these records' keys; False as soon as there is no room for one."""
    walk: RecordWalk = RecordWalk(records)
    has_room: cython.bint = True
    with cython.nogil:
        while has_room and walk.next():
            if walk.key_length >= 0:
                has_room = keys.put(_at(walk.data, walk.key_at), walk.key_length, base_offset + walk.offset_delta)
    walk.check()
    return has_room


def has_keyless(records: bytes | bytearray | memoryview) -> bool:
    """Whether any of these records has no key."""
    walk: RecordWalk = RecordWalk(records)
    found: cython.bint = False
    with cython.nogil:
        while not found and walk.next():
            found = walk.key_length < 0
    walk.check()
    return found


def keep_latest(
    keys: KeyOffsets | None,
    records: bytes | bytearray | memoryview,
    base_offset: cython.longlong,
    earlier_by: cython.longlong = 0,
    with_tombstones: cython.bint = True,  # noqa: FBT001, FBT002 - a C type
) -> Kept:
    """The records that are not superseded by a later one of their key; without `keys`, all of them.

    `earlier_by` is how much the base timestamp moves back, which is added to the timestamp deltas.
    """
    walk: RecordWalk = RecordWalk(records)
    # A timestamp delta may grow from one byte to ten, in a record of at least seven bytes, and the length by one.
    size = HEADER_BYTES + (walk.end * 3 if earlier_by else walk.end)
    target = bytearray(size) if keys is None else keys.room_to_write(size)
    copy: RecordCopy = RecordCopy(target, HEADER_BYTES)
    known: KeyOffsets = KeyOffsets(0) if keys is None else keys
    keeps_all: cython.bint = keys is None
    count: cython.longlong = 0
    newest: cython.longlong = 0
    has_tombstones: cython.bint = False
    shifted: cython.longlong
    with cython.nogil:
        while walk.next():
            if not keeps_all and not (
                walk.key_length >= 0
                and (with_tombstones or walk.value_length >= 0)
                and known.find(_at(walk.data, walk.key_at), walk.key_length) <= base_offset + walk.offset_delta
            ):
                continue
            shifted = walk.timestamp_delta + earlier_by
            if earlier_by:
                copy.put_varint(
                    1 + _varint_size(shifted) + walk.record_end - walk.offset_delta_at,
                )
                copy.put_bytes(_at(walk.data, walk.record_at), 1)
                copy.put_varint(shifted)
                copy.put_bytes(_at(walk.data, walk.offset_delta_at), walk.record_end - walk.offset_delta_at)
            else:
                copy.put_varint(walk.record_end - walk.record_at)
                copy.put_bytes(_at(walk.data, walk.record_at), walk.record_end - walk.record_at)
            newest = shifted if count == 0 or shifted > newest else newest
            has_tombstones = has_tombstones or walk.value_length < 0
            count += 1
    walk.check()
    return Kept(memoryview(target)[: copy.at], count, newest, has_tombstones)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_size(value: cython.longlong) -> cython.int:
    size: cython.int = 1
    if cython.compiled:
        raw: cython.ulonglong = (cython.cast(cython.ulonglong, value) << 1) ^ cython.cast(cython.ulonglong, value >> 63)
    else:
        raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _at(data: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.p_const_uchar:
    if cython.compiled:
        return data + at
    else:
        return data[at:]
