"""Validates the indexes of a segment when its log is opened, and drops entries that cannot be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.storage.segment_files.segment import Segment


def are_indexes_sane(segment: Segment) -> bool:
    """Whether the indexes exist, are complete, and match their last batch."""
    indexes = segment.indexes
    if not indexes.is_whole():
        return False
    entry = indexes.last
    if entry is not None and not segment.matches(entry):
        return False
    return indexes.last_time is not None or segment.size == 0 or segment.first_timestamp < 0


def rewind_indexes(segment: Segment, from_offset: int) -> tuple[int, int]:
    """Drop the index entries from `from_offset` on, and possibly some before.

    Returns the position from which to reindex, and the lowest offset that can follow there.
    """
    segment.read_ends.clear()
    indexes = segment.indexes
    entry = None
    if are_indexes_sane(segment):
        # A power failure may keep offset entries and lose time entries; offset entries behind the last time entry
        # are not trusted.
        last_time = indexes.last_time
        entry = indexes.at_or_before(min(from_offset, last_time.last_offset if last_time else segment.base_offset))
    if entry is None or not segment.matches(entry):
        indexes.reset()
        return 0, segment.base_offset
    base_offset = segment.header_at(entry.position).base_offset
    indexes.drop_from(entry.position, base_offset)
    return entry.position, base_offset
