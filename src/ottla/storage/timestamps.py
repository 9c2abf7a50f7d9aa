"""Finding records of a segment by time.

A time index that was found on disk is not taken at its word: what seems too old is deleted, and what it misses is not
found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.records.reader import RecordReader
from ottla.storage.scan import NO_LIMIT, FoundBatch

if TYPE_CHECKING:
    from ottla.storage.segment import Segment
    from ottla.storage.segment_indexes import TimeEntry


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def find_timestamp(
    segment: Segment, timestamp: int, from_offset: int, end_offset: int = NO_LIMIT
) -> TimestampOffset | None:
    """The first record from `from_offset` on with this timestamp or a later one; what is damaged has none.

    As in Kafka the control records of end markers count: they have offsets and timestamps, too.
    """
    place = segment.place_before(max(_offset_before(segment, timestamp), from_offset))
    for batch in segment.walk(*place, end_offset):
        if (
            isinstance(batch, FoundBatch)
            and batch.header.max_timestamp >= timestamp
            and batch.header.last_offset >= from_offset
        ):
            for record in RecordReader(batch.data, from_offset, with_control=True):
                if record.timestamp >= timestamp:
                    return TimestampOffset(record.timestamp, record.offset, batch.header.leader_epoch)
    return None


def newest_from(segment: Segment, from_offset: int) -> int:
    """The highest timestamp of the records from `from_offset` on, which the time index does not tell."""
    newest = -1
    for batch in segment.walk(*segment.place_before(from_offset)):
        if isinstance(batch, FoundBatch) and batch.header.last_offset >= from_offset:
            if batch.header.base_offset >= from_offset:
                newest = max(newest, batch.header.max_timestamp)
            else:
                records = RecordReader(batch.data, from_offset, with_control=True)
                newest = max([newest, *(record.timestamp for record in records)])
    return newest


def _offset_before(segment: Segment, timestamp: int) -> int:
    """An offset below which no record has this timestamp or a later one, as high as the index knows."""
    entry = segment.indexes.at_or_before_time(timestamp)
    if entry is not None and segment.indexes.is_found and not _is_about_a_batch(segment, entry):
        segment.rebuild_indexes()
        entry = segment.indexes.at_or_before_time(timestamp)
    return segment.base_offset if entry is None else entry.last_offset


def is_newest_right(segment: Segment) -> bool:
    """Whether the last entry of the time index is about a batch, and no batch at the segment's end is newer.

    Those before the last offset entry had theirs looked at when it was made, and are not all read again.
    """
    indexes = segment.indexes
    last_time = indexes.last_time
    if last_time is not None and not _is_about_a_batch(segment, last_time):
        return False
    newest = indexes.newest_timestamp
    last = indexes.last
    at_the_end = segment.headers(segment.base_offset if last is None else last.last_offset)
    return all(header.max_timestamp <= newest for _, header in at_the_end)


def _is_about_a_batch(segment: Segment, entry: TimeEntry) -> bool:
    _, header = next(segment.headers(entry.last_offset), (0, None))
    return header is not None and (header.max_timestamp, header.last_offset) == entry
