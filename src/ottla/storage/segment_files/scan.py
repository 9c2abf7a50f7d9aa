"""Scans a segment file batch by batch."""

from __future__ import annotations

import os
import re
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import ApiError, CorruptMessage
from ottla.records.batch import (
    CHECKSUM_STARTS_AT,
    HEADER_BYTES,
    LENGTH_STARTS_AT,
    MAGIC,
    BatchHeader,
    check_batch,
    read_header,
)
from ottla.records.checksum import crc32c

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Read = Callable[[int, int], bytes]
    Decrypt = Callable[[memoryview], memoryview]

NO_LIMIT: Final = 1 << 62
_CHUNK_BYTES: Final = 1 << 20
_MAGIC_AT: Final = 16
MAX_OFFSETS_IN_A_FILE: Final = 1 << 31
_LENGTH_AT: Final = 8
_LENGTH_MAGIC_CHECKSUM: Final = struct.Struct(">I4xBI")
_LARGEST_BATCH_BYTES: Final = 1 << 27
"""Larger batches exceed the maximum size of a request."""


class FoundBatch(NamedTuple):
    position: int
    header: BatchHeader
    """The stored header: an encrypted batch is larger than its data."""
    data: memoryview


class Damage(NamedTuple):
    """A corrupt range up to the next intact batch; its first offset is `offset` or higher."""

    position: int
    offset: int
    reason: str


class Stretch(NamedTuple):
    """A range of a file, and the offsets that can occur in it: from `offset` to below `end_offset`.

    `read` takes a position and a size. A scan can be resumed, so it holds no descriptor. `decrypt`
    decrypts a stored batch, or raises CorruptMessage.
    """

    read: Read
    position: int
    end: int
    offset: int
    end_offset: int = NO_LIMIT
    decrypt: Decrypt | None = None


def scan_headers(fd: int, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """The position and header of each batch; checksums are not verified."""
    while position < end:
        chunk = os.pread(fd, min(_CHUNK_BYTES, end - position), position)
        at = 0
        while len(chunk) - at >= HEADER_BYTES:
            header = read_header(chunk, at)
            if position + at + header.size > end:
                raise CorruptMessage(f"the batch at {position + at} exceeds the end of the file")
            yield position + at, header
            at += header.size
        if at == 0:
            raise CorruptMessage(f"incomplete batch header of {end - position} bytes at {position}")
        position += at


def scan_batches(fd: int, position: int, end: int, decrypt: Decrypt | None = None) -> Iterator[FoundBatch]:
    """Each intact batch; raises CorruptMessage at the first corrupt one."""
    window = _Window(Stretch(lambda at, size: os.pread(fd, size, at), position, end, 0, decrypt=decrypt))
    while position < end:
        batch = window.batch_at(position)
        yield batch
        position += batch.header.size


def walk(stretch: Stretch, read_ahead: int = _CHUNK_BYTES) -> Iterator[FoundBatch | Damage]:
    """Each intact batch, and the corrupt ranges between them: the scan resumes at the next complete batch.

    A checksum covers neither the base offset nor directly the length. A wrong length makes the checksum wrong. A
    base offset is compared with its neighbours: it is valid if the batch before ends there, and may be higher, as
    after compaction, if the following one is higher still.
    """
    _, position, end, offset, end_offset, _ = stretch
    window = _Window(stretch, read_ahead)
    while position < end:
        try:
            batch = window.batch_at(position)
        except ApiError as damaged:
            yield Damage(position, offset, str(damaged))
            position = _next_intact(stretch._replace(position=position + 1, offset=offset))
            continue
        problem = _misplaced(window, batch, offset, end_offset)
        if problem:
            yield Damage(position, offset, problem)
            offset += batch.header.last_offset_delta + 1
        else:
            yield batch
            offset = batch.header.next_offset
        position += batch.header.size


def has_whole_batch(stretch: Stretch) -> bool:
    """Whether all bytes of a batch are at its position, intact or not: more than a prefix of one.

    The checksum covers neither the length nor the magic. So if one of them is damaged, the checksum still shows that
    all other bytes are there: those up to the end of the file, or up to a length that differs in one bit.
    """
    read, position, end, *_ = stretch
    room = end - position
    if room < HEADER_BYTES:
        return False
    length, magic, checksum = _LENGTH_MAGIC_CHECKSUM.unpack_from(read(position, HEADER_BYTES), _LENGTH_AT)
    size = LENGTH_STARTS_AT + length
    if magic == MAGIC and HEADER_BYTES <= size <= room:
        return True
    sizes = {size}
    if magic == MAGIC:
        sizes = {room, *(LENGTH_STARTS_AT + (length ^ (1 << bit)) for bit in range(32))}
    possible = [each for each in sizes if HEADER_BYTES <= each <= min(room, _LARGEST_BATCH_BYTES)]
    data = memoryview(read(position, max(possible, default=0)))
    return any(crc32c(data[CHECKSUM_STARTS_AT:each]) == checksum for each in possible)


def _misplaced(window: _Window, batch: FoundBatch, expected: int, end_offset: int) -> str | None:
    header = batch.header
    if header.base_offset == expected:
        return None
    if header.base_offset < expected:
        return f"it starts at offset {header.base_offset}, expected at least {expected}"
    try:
        limit = window.header_at(batch.position + header.size).base_offset
    except ApiError:
        limit = end_offset
    limit = min(limit, expected + MAX_OFFSETS_IN_A_FILE)
    if header.next_offset > limit:
        return f"it ends before offset {header.next_offset}, but the next batch starts at {limit}"
    return None


def _next_intact(stretch: Stretch) -> int:
    """The position of the first complete batch with plausible offsets; the end if there is none."""
    read, position, end, offset, end_offset, _ = stretch
    limit = min(end_offset if end_offset > offset else NO_LIMIT, offset + MAX_OFFSETS_IN_A_FILE)
    # Possible base offsets share their first bytes, which makes the search fast.
    differing_bytes = ((offset ^ limit).bit_length() + 7) // 8
    prefix = offset.to_bytes(8, "big")[: 8 - differing_bytes]
    candidate = re.compile(b"(?=%b.{%d}\x02)" % (re.escape(prefix), _MAGIC_AT - len(prefix)), re.DOTALL)
    window = _Window(stretch)
    while position < end:
        chunk = read(position, min(_CHUNK_BYTES, end - position))
        for match in candidate.finditer(chunk):
            try:
                header = window.batch_at(position + match.start()).header
            except ApiError:
                continue
            if header.base_offset >= offset and header.next_offset <= limit:
                return position + match.start()
        if len(chunk) <= _MAGIC_AT:
            break
        position += len(chunk) - _MAGIC_AT
    return end


class _Window:
    """The part of a file that was read last."""

    def __init__(self, stretch: Stretch, read_ahead: int = _CHUNK_BYTES) -> None:
        self._read = stretch.read
        self._end = stretch.end
        self._decrypt = stretch.decrypt
        self._read_ahead = read_ahead
        self._start = 0
        self._chunk = memoryview(b"")

    def header_at(self, position: int) -> BatchHeader:
        at = position - self._start
        if at < 0 or len(self._chunk) - at < HEADER_BYTES:
            self._load(position, max(self._read_ahead, HEADER_BYTES))
            at = 0
        return read_header(self._chunk, at)

    def batch_at(self, position: int) -> FoundBatch:
        """The batch at this position, verified."""
        size = self.header_at(position).size
        if size > self._end - position:
            raise CorruptMessage(f"a batch of {size} bytes is truncated to {self._end - position}")
        at = position - self._start
        if len(self._chunk) - at < size:
            self._load(position, max(self._read_ahead, size))
            at = 0
        header, data = check_batch(self._chunk, at), self._chunk[at : at + size]
        return FoundBatch(position, header, data if self._decrypt is None else self._decrypt(data))

    def _load(self, position: int, size: int) -> None:
        self._chunk = memoryview(self._read(position, max(min(size, self._end - position), 0)))
        self._start = position
