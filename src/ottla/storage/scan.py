"""Walking a segment file batch by batch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import CorruptMessage
from ottla.records.batch import HEADER_BYTES, BatchHeader, check_batch, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK_BYTES: Final = 1 << 20


class FoundBatch(NamedTuple):
    position: int
    header: BatchHeader
    data: memoryview


def scan_headers(fd: int, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """The position and header of each batch; checksums are not looked at."""
    while position < end:
        chunk = os.pread(fd, min(_CHUNK_BYTES, end - position), position)
        at = 0
        while len(chunk) - at >= HEADER_BYTES:
            header = read_header(chunk, at)
            if position + at + header.size > end:
                raise CorruptMessage(f"the batch at {position + at} reaches past the end of its file")
            yield position + at, header
            at += header.size
        if at == 0:
            raise CorruptMessage(f"{end - position} bytes at {position} are too few for a batch")
        position += at


def scan_batches(fd: int, position: int, end: int) -> Iterator[FoundBatch]:
    """Each batch, intact: CorruptMessage ends the walk at the first one that is not."""
    chunk = memoryview(b"")
    at = 0
    while position < end:
        if len(chunk) - at < HEADER_BYTES or len(chunk) - at < read_header(chunk, at).size:
            chunk, at = _read_ahead(fd, position, end), 0
        header = check_batch(chunk, at)
        yield FoundBatch(position, header, chunk[at : at + header.size])
        position += header.size
        at += header.size


def _read_ahead(fd: int, position: int, end: int) -> memoryview:
    """At least the whole batch at `position`, and what else comes with one read."""
    chunk = os.pread(fd, min(_CHUNK_BYTES, end - position), position)
    size = read_header(chunk).size
    if size > end - position:
        raise CorruptMessage(f"a batch of {size} bytes, of which only {end - position} are here")
    if size > len(chunk):
        chunk = os.pread(fd, size, position)
    return memoryview(chunk)
