"""Reads without copies: batches of a segment as a range of its file, for `sendfile`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.file_range import CAN_SEND, FileRange
from ottla.storage.segment_files.cold_read import Bounds

try:
    from ottla.storage.segment_files.batch_ends import find_end

    _CAN_FIND: Final = CAN_SEND
except ImportError:  # no C compiler: finding the end takes as long as reading
    _CAN_FIND = False  # type: ignore[misc]

if TYPE_CHECKING:
    from ottla.storage.partition_log import PartitionLog
    from ottla.storage.segment_files.segment import Segment

_LEAST_BYTES: Final = 32 * 1024
"""Smaller reads are copied: `sendfile` takes more system calls."""
_MOST: Final = 128
"""The limit of ranges that exist at the same time. Each has a descriptor until a slow client has received it."""


class Found(NamedTuple):
    """Batches from `from_offset` to below `next_offset`, which begins at `end` in the segment."""

    batches: FileRange
    segment: Segment
    from_offset: int
    next_offset: int
    end: int

    def take(self) -> FileRange:
        """The batches; the reader will continue after them."""
        self.segment.read_ends.pop(self.from_offset, None)
        self.segment.read_ends.remember(self.next_offset, self.end)
        return self.batches


def find_range(log: PartitionLog, offset: int, max_bytes: int, until_offset: int) -> Found | None:
    """The batches that `log.read` would return; None if they are few, or must be read to be checked or decrypted."""
    limit = min(until_offset, log.next_offset)
    if log.is_offline or log.cipher is not None or not log.start_offset <= offset < limit:
        return None
    if not _CAN_FIND or FileRange.count >= _MOST:
        return None
    segment = log.segments[log.segments.number_of(offset)]
    try:
        return _find(segment, Bounds(offset, limit, max_bytes))
    except OSError:  # no descriptor left, or reading will raise it again
        return None


def _find(segment: Segment, bounds: Bounds) -> Found | None:
    offset = bounds.from_offset
    position = 0 if offset == segment.base_offset else segment.read_ends.get(offset)
    if position is None or min(bounds.max_bytes, segment.size - position) < _LEAST_BYTES:
        return None
    fd = segment.read_fd()
    found = find_end(fd, position, segment.size, *bounds)
    if found is None or found[0] - position < _LEAST_BYTES or segment.unverified.covers(position, found[0]):
        return None
    end, next_offset = found
    return Found(FileRange(fd, position, end - position), segment, offset, next_offset, end)
