"""Finds records of a segment by time.

A time index found on disk is verified: a wrong old timestamp would delete the segment, and a missing entry would hide
records.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ottla.records.compression import MAX_DECOMPRESSED_BYTES, DecompressedTooLarge
from ottla.records.reader import RecordReader
from ottla.storage.segment_files.scan import NO_LIMIT, FoundBatch

if TYPE_CHECKING:
    from ottla.storage.segment_files.segment import Segment
    from ottla.storage.segment_files.segment_indexes import TimeEntry


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class Unfinished(NamedTuple):
    """A search to be continued at this offset later."""

    next_offset: int
    large: FoundBatch | None = None
    """The batch at this offset, if it must be decompressed elsewhere first. Its data is a copy."""


class Effort:
    """The budget of a search step."""

    __slots__ = ("batches_left", "max_bytes")

    def __init__(self, batches: int, max_bytes: int) -> None:
        self.batches_left = batches
        self.max_bytes = max_bytes


def find_timestamp(
    segment: Segment, timestamp: int, from_offset: int, end_offset: int = NO_LIMIT, effort: Effort | None = None
) -> TimestampOffset | Unfinished | None:
    """The first record from `from_offset` on at or after this timestamp; corrupt ranges are skipped.

    As in Kafka, control records of end markers count: they have offsets and timestamps as well.
    """
    place = segment.place_before(max(_offset_before(segment, timestamp), from_offset))
    for batch in segment.walk(*place, end_offset):
        if (
            isinstance(batch, FoundBatch)
            and batch.header.max_timestamp >= timestamp
            and batch.header.last_offset >= from_offset
        ):
            found = _looked_into(batch, timestamp, from_offset, effort)
            if found is not None:
                return found
    return None


def _looked_into(
    batch: FoundBatch, timestamp: int, from_offset: int, effort: Effort | None
) -> TimestampOffset | Unfinished | None:
    if effort is None:
        return first_since(batch, timestamp, from_offset)
    # A header may claim a timestamp that none of its records has, in every batch of a log.
    effort.batches_left -= 1
    if effort.batches_left < 0:
        return Unfinished(batch.header.base_offset)
    try:
        return first_since(batch, timestamp, from_offset, effort.max_bytes)
    except DecompressedTooLarge:
        return Unfinished(batch.header.base_offset, batch._replace(data=memoryview(bytes(batch.data))))


def first_since(
    batch: FoundBatch, timestamp: int, from_offset: int, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> TimestampOffset | None:
    """The first record of the batch at or after this timestamp. Raises DecompressedTooLarge."""
    for record in RecordReader(batch.data, from_offset, max_bytes, with_control=True):
        if record.timestamp >= timestamp:
            return TimestampOffset(record.timestamp, record.offset, batch.header.leader_epoch)
    return None


def newest_from(segment: Segment, from_offset: int, max_bytes: int) -> int:
    """The largest timestamp of records from `from_offset` on, unlike the time index, which also covers those below.

    The records of a batch that starts below it are read, unless they decompress to more than `max_bytes`.
    """
    newest = -1
    for batch in segment.walk(*segment.place_before(from_offset)):
        if not isinstance(batch, FoundBatch) or batch.header.last_offset < from_offset:
            continue
        if batch.header.base_offset >= from_offset:
            newest = max(newest, batch.header.max_timestamp)
            continue
        with suppress(DecompressedTooLarge):
            records = RecordReader(batch.data, from_offset, max_bytes, with_control=True)
            newest = max([newest, *(record.timestamp for record in records)])
    return newest


def _offset_before(segment: Segment, timestamp: int) -> int:
    """The highest indexed offset below which no record has this timestamp or a later one."""
    entry = segment.indexes.at_or_before_time(timestamp)
    if entry is not None and segment.indexes.is_found and not _is_about_a_batch(segment, entry):
        segment.rebuild_indexes()
        entry = segment.indexes.at_or_before_time(timestamp)
    return segment.base_offset if entry is None else entry.last_offset


def is_newest_right(segment: Segment) -> bool:
    """Whether the last entry of the time index matches a batch, and no batch at the segment's end is newer.

    Batches before the last offset entry were checked when it was made, and are not all read again.
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
