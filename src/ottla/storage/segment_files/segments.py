"""The segments of a log in order: when to roll, finding offsets, and reading across segments."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, overload

from ottla.core.sealing import SEAL_BYTES
from ottla.storage.segment_files.timestamps import Effort, Unfinished, find_timestamp, newest_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.core.clock import Clock
    from ottla.storage.segment_files.cold_read import Bounds
    from ottla.storage.segment_files.segment import Segment
    from ottla.storage.segment_files.timestamps import TimestampOffset
    from ottla.storage.segment_files.txn_index import AbortedTransaction

_MAX_RELATIVE_OFFSET: Final = (1 << 31) - 1


class Segments:
    """A sequence of at least one segment. `next_offset` is the log end offset."""

    def __init__(self, segments: list[Segment], clock: Clock) -> None:
        self.all = segments
        self.active = segments[-1]
        """The last segment, which is appended to."""
        self.bases = [segment.base_offset for segment in segments]
        self._clock = clock
        self._first_timestamp = self.active.first_timestamp
        self._began_ms = clock.now_ms()

    def __len__(self) -> int:
        return len(self.all)

    @overload
    def __getitem__(self, index: int) -> Segment: ...
    @overload
    def __getitem__(self, index: slice) -> list[Segment]: ...
    def __getitem__(self, index: int | slice) -> Segment | list[Segment]:
        return self.all[index]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.all)

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.all)

    # Changing

    def must_roll(self, size: int, last_offset: int, max_timestamp: int) -> bool:
        """Whether a batch of this size belongs into a new segment."""
        active, began = self.active, self._first_timestamp
        if not active.size:
            return False
        config = active.config
        # The age is determined by the records' timestamps, or without timestamps by the clock.
        age_ms = max_timestamp - began if began >= 0 else self._clock.now_ms() - self._began_ms
        return (
            active.size + size + (SEAL_BYTES if active.cipher is not None else 0) > config.segment_bytes
            or age_ms > config.segment_ms
            or last_offset - active.base_offset > _MAX_RELATIVE_OFFSET
            or active.indexes.is_full
        )

    def begin_active(self, max_timestamp: int) -> None:
        """Count the age of the active segment from its first batch, which has this timestamp."""
        self._first_timestamp = max_timestamp
        self._began_ms = self._clock.now_ms()

    def add(self, segment: Segment) -> None:
        self.all.append(segment)
        self.bases.append(segment.base_offset)
        self.active = segment

    def replace(self, old: list[Segment], new: Segment) -> None:
        """Replace consecutive inactive segments by one."""
        number = self.all.index(old[0])
        self.all[number : number + len(old)] = [new]
        self.bases[number : number + len(old)] = [new.base_offset]

    def drop_first(self, count: int) -> None:
        """Remove the first segments, but not all."""
        del self.all[:count], self.bases[:count]

    def truncate(self, offset: int, keep: int, position: int) -> int:
        """Keep the first `keep` segments, the last of them up to `position`; returns the log end offset."""
        # Starting at the end, so that a crash leaves no gap.
        for segment in reversed(self.all[keep:]):
            segment.unlink()
        self.active.close()
        del self.all[keep:], self.bases[keep:]
        self.active = self.all[-1]
        self.active.truncate(position, offset)
        next_offset = self.active.open_for_append(offset)
        self._first_timestamp = self.active.first_timestamp
        return next_offset

    def restart(self, segment: Segment) -> None:
        """Replace all segments by this empty one."""
        self.all, self.bases, self.active = [segment], [segment.base_offset], segment
        self._first_timestamp = segment.first_timestamp

    # Reading

    def number_of(self, offset: int) -> int:
        """The index of the segment with this offset; the first if the offset is below all."""
        return max(bisect_right(self.bases, offset) - 1, 0)

    def read(self, bounds: Bounds, next_offset: int) -> memoryview:
        """Complete batches from the one with `from_offset` on; empty if there are none."""
        offset, until_offset, _ = bounds
        number = self.number_of(offset)
        while offset < until_offset and number < len(self.all):
            end_offset = self.bases[number + 1] if number + 1 < len(self.bases) else next_offset
            found = self.all[number].read(bounds, end_offset)
            if found:
                return found
            # Compaction may have removed a segment's last offsets.
            number += 1
        return memoryview(b"")

    def size_between(self, offset: int, until_offset: int) -> int:
        """The size of the batches from the one with `offset` on, up to the one with `until_offset`."""
        if offset >= until_offset:
            return 0
        first, last = self.number_of(offset), self.number_of(until_offset)
        before = sum(segment.size for segment in self.all[first:last])
        return before + self.all[last].position_of(until_offset) - self.all[first].position_of(offset)

    def find_timestamp(
        self, timestamp: int, from_offset: int, next_offset: int, effort: Effort | None = None
    ) -> TimestampOffset | Unfinished | None:
        """The first record from `from_offset` on at or after this timestamp."""
        for segment, end_offset in self._with_ends(next_offset):
            if segment.newest_timestamp >= timestamp:
                found = find_timestamp(segment, timestamp, from_offset, end_offset, effort)
                if found is not None:
                    return found
        return None

    def newest_timestamp(self, from_offset: int) -> int:
        """The largest timestamp; possibly of a record below `from_offset` in the same segment."""
        return max(segment.newest_timestamp for segment in reaching(self.all, from_offset))

    def newest_left(self, from_offset: int, max_bytes: int) -> int:
        """The largest timestamp without the records below `from_offset`, for which their segment is read."""
        first, *others = reaching(self.all, from_offset)
        return max([newest_from(first, from_offset, max_bytes), *(segment.newest_timestamp for segment in others)])

    def aborted_transactions(self, from_offset: int, until_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records between these offsets, by first offset."""
        found = []
        for segment in self.all[self.number_of(from_offset) :]:
            found += segment.txn_index.overlapping(from_offset, until_offset)
        return sorted(found, key=lambda aborted: aborted.first_offset)

    def _with_ends(self, next_offset: int) -> Iterator[tuple[Segment, int]]:
        """Each segment with its end offset."""
        return zip(self.all, [*self.bases[1:], next_offset], strict=True)


def reaching(segments: list[Segment], offset: int) -> list[Segment]:
    """The segments with records at `offset` or above; at least the last."""
    return [
        segment
        for segment, following in zip(segments, [*segments[1:], None], strict=True)
        if following is None or following.base_offset > offset
    ]
