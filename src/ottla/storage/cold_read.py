"""Reading what this process did not write itself, and so cannot vouch for.

What was appended by this process was checked when it came. What was found on disk is checked when it is first read,
since the disk may have damaged it meanwhile: a reader gets the batches before the damage, then an error, and
everything behind it by its own offset.

A batch's checksum covers neither its base offset nor its length, so these are held against its neighbours and the
index. (The leader epoch is not covered either; on one node a wrong one harms nobody.)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ottla.core.errors import ApiError, CorruptMessage
from ottla.records.batch import check_batch
from ottla.storage.scan import scan_headers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.records.batch import BatchHeader
    from ottla.storage.segment_indexes import OffsetEntry


class Bounds(NamedTuple):
    from_offset: int
    until_offset: int
    max_bytes: int


class Region(NamedTuple):
    """A file, up to where it counts, and the offsets that may occur in it."""

    fd: int
    size: int
    base_offset: int
    end_offset: int


class Found(NamedTuple):
    start: int
    end: int
    next_offset: int


class Unverified:
    """How much of a file nobody has checked yet. It is checked from the front on, as readers go through it."""

    def __init__(self, size: int) -> None:
        self._until = size
        self._checked = 0

    def covers(self, position: int) -> bool:
        return self._checked <= position < self._until

    def checked(self, start: int, end: int) -> None:
        if start <= self._checked:
            self._checked = max(self._checked, end)

    def truncate(self, size: int) -> None:
        self._until = min(self._until, size)


def find_checked(region: Region, entry: OffsetEntry | None, bounds: Bounds) -> Found | None:
    """Where the wanted batches lie, every one of them checked; None if there are none from `from_offset` on.

    CorruptMessage if the very first of them is damaged.
    """
    found = None
    floor = region.base_offset
    indexed_offset = None if entry is None else entry.last_offset
    for position, header, offset_behind in _with_followers(region, entry.position if entry else 0):
        end = position + header.size
        if offset_behind > bounds.from_offset:
            problem = _problem(region, position, header, (floor, offset_behind), indexed_offset)
            if problem and found is None:
                raise CorruptMessage(f"the batch at {position} {problem}")
            start = found.start if found else position
            is_too_much = found is not None and end - start > bounds.max_bytes
            if problem or is_too_much or header.base_offset >= bounds.until_offset:
                break
            if header.last_offset >= bounds.from_offset:
                found = Found(start, end, header.next_offset)
        floor = header.next_offset
        indexed_offset = None
    return found


def _problem(
    region: Region,
    position: int,
    header: BatchHeader,
    limits: tuple[int, int],
    indexed_offset: int | None,
) -> str | None:
    """What is wrong with this batch, which lies at `position` between these offsets."""
    floor, offset_behind = limits
    if indexed_offset not in (None, header.last_offset):
        return f"ends with offset {header.last_offset}, in the index with {indexed_offset}"
    if header.base_offset < floor:
        return f"begins at offset {header.base_offset}, behind one that ends before {floor}"
    if header.next_offset > offset_behind:
        return f"ends before offset {header.next_offset}, but {offset_behind} comes behind it"
    try:
        check_batch(os.pread(region.fd, header.size, position))
    except ApiError as damaged:
        return f"is damaged: {damaged}"
    return None


def _with_followers(region: Region, position: int) -> Iterator[tuple[int, BatchHeader, int]]:
    """Each batch's position, its header, and the offset with which the batch behind it begins."""
    batches = scan_headers(region.fd, position, region.size)
    current = next(batches, None)
    while current is not None:
        try:
            following = next(batches, None)
        except ApiError:
            yield *current, region.end_offset
            raise
        yield *current, following[1].base_offset if following else region.end_offset
        current = following
