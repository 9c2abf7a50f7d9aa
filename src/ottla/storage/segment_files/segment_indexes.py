"""A segment's offset index and time index: which batches get an entry, and which entries to trust.

The rules are Kafka's. A batch gets an entry if the batches since the last one sum to more than the interval. An
offset entry is the batch's last offset and its position; a time entry is the largest timestamp so far in the
segment and the last offset of its batch.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.storage.files import OFFSET_INDEX, TIME_INDEX
from ottla.storage.segment_files.index_file import OFFSET_ENTRY, TIME_ENTRY, IndexFile

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.config import LogConfig
    from ottla.storage.segment_files.open_files import OpenFiles

NO_TIMESTAMP: Final = -1

_ENTRY_IS_DUE: Final = 1 << 62
_WRITTEN_TOGETHER: Final = 1024
_ROOM_WHEN_EMPTY: Final = 1024 // TIME_ENTRY.size - 1
"""The room for entries with the smallest segment.index.bytes."""


class OffsetEntry(NamedTuple):
    last_offset: int
    position: int


class TimeEntry(NamedTuple):
    timestamp: int
    last_offset: int


class SegmentIndexes:
    def __init__(self, log_path: Path, base_offset: int, files: OpenFiles, *, is_new: bool) -> None:
        self.offset_path = log_path.with_suffix(OFFSET_INDEX)
        self.time_path = log_path.with_suffix(TIME_INDEX)
        self.room = 1
        """The minimum number of further entries that fit. Unknown after a start until the next entry, which always
        fits, is added.
        """
        # Entries found on disk are trusted only if their batches confirm them.
        self.is_found = not is_new
        self._base_offset = base_offset
        self._files = files
        self._offsets: IndexFile | None = None
        self._times: IndexFile | None = None
        self._bytes_since_entry = 0
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset
        if is_new:
            self.reset()

    @property
    def offsets(self) -> IndexFile:
        if self._offsets is None:
            self._offsets = IndexFile(self.offset_path, OFFSET_ENTRY, self._files, is_new=False)
        return self._offsets

    @property
    def times(self) -> IndexFile:
        if self._times is None:
            self._times = IndexFile(self.time_path, TIME_ENTRY, self._files, is_new=False)
        return self._times

    def add(self, position: int, size: int, last_offset: int, max_timestamp: int, config: LogConfig) -> None:
        """Account for the next batch, and add entries if they are due."""
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if self._bytes_since_entry > config.index_interval_bytes:
            self.add_entry(position, last_offset, config)
            self._bytes_since_entry = 0
        self._bytes_since_entry += size

    def add_entry(self, position: int, last_offset: int, config: LogConfig) -> None:
        """Add the entries of a batch whose timestamp was already recorded."""
        offsets, room = self.offsets, config.segment_index_bytes
        offsets.append(last_offset - self._base_offset, position)
        self._add_time()
        # One time entry is reserved for closing the segment.
        self.room = min((room - offsets.size) // OFFSET_ENTRY.size, (room - self.times.size) // TIME_ENTRY.size - 1)
        if offsets.unwritten % _WRITTEN_TOGETHER == 0:
            # The batch has been written: a full disk must not fail it afterwards. The entries stay in memory until
            # there is space.
            with suppress(OSError):
                self.write_out(is_final=False)

    @property
    def is_full(self) -> bool:
        return self.room < 1

    def _add_time(self) -> None:
        last = self.times.last
        if self._max_timestamp > (last[0] if last else NO_TIMESTAMP):
            self.times.append(self._max_timestamp, self._max_timestamp_offset - self._base_offset)

    @property
    def newest_timestamp(self) -> int:
        last = self.times.last
        return max(self._max_timestamp, last[0] if last else NO_TIMESTAMP)

    @property
    def last(self) -> OffsetEntry | None:
        return self._offset_entry(self.offsets.last)

    @property
    def last_time(self) -> TimeEntry | None:
        return self._time_entry(self.times.last)

    def at_or_before(self, offset: int) -> OffsetEntry | None:
        """The last entry for a batch that ends at or before `offset`."""
        return self._offset_entry(self.offsets.find(offset - self._base_offset))

    def at_or_before_time(self, timestamp: int) -> TimeEntry | None:
        """The last entry with at most this timestamp: no earlier batch has a later one."""
        return self._time_entry(self.times.find(timestamp))

    def is_whole(self) -> bool:
        """Whether both files exist and are plausible."""
        for path, layout in ((self.offset_path, OFFSET_ENTRY), (self.time_path, TIME_ENTRY)):
            if not path.exists() or path.stat().st_size % layout.size:
                return False
        return True

    def reset(self) -> None:
        """Clear both indexes; the files are replaced when they are next written."""
        self._files.forget(self.offset_path)
        self._files.forget(self.time_path)
        self._offsets = IndexFile(self.offset_path, OFFSET_ENTRY, self._files, is_new=True)
        self._times = IndexFile(self.time_path, TIME_ENTRY, self._files, is_new=True)
        self.is_found = False
        self.room = _ROOM_WHEN_EMPTY
        self._begin_at(0, NO_TIMESTAMP, self._base_offset)

    def drop_from(self, position: int, offset: int) -> None:
        """Drop the batches from this position and offset on; `add` continues from there.

        Earlier batches without an entry are dropped as well, unless there was an entry for this position.
        """
        first = self.offsets.drop_from(position)
        self.times.drop_from(offset - self._base_offset)
        self.room = 1
        last = self.times.last
        had_entry = first is not None and first[1] == position
        self._begin_at(
            _ENTRY_IS_DUE if had_entry else 0,
            *((last[0], self._base_offset + last[1]) if last else (NO_TIMESTAMP, self._base_offset)),
        )

    def _begin_at(self, bytes_since_entry: int, max_timestamp: int, max_timestamp_offset: int) -> None:
        self._bytes_since_entry = bytes_since_entry
        self._max_timestamp = max_timestamp
        self._max_timestamp_offset = max_timestamp_offset

    def write_out(self, *, is_final: bool) -> None:
        """Write the files; a final time entry has the segment's largest timestamp."""
        if is_final:
            self._add_time()
        # Time index first, and always both: an offset entry in the file implies that the time entries before it exist.
        self.times.write_out()
        self.offsets.write_out()

    def _offset_entry(self, entry: tuple[int, int] | None) -> OffsetEntry | None:
        return OffsetEntry(self._base_offset + entry[0], entry[1]) if entry else None

    def _time_entry(self, entry: tuple[int, int] | None) -> TimeEntry | None:
        return TimeEntry(entry[0], self._base_offset + entry[1]) if entry else None
