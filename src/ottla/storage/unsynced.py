"""The unsynced part of a log, and its flushes in progress."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ottla.storage.files import open_folder
from ottla.storage.flushing import Flush, all_or_none

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from ottla.storage.recovery import LogParts
    from ottla.storage.segment_files.open_files import OpenFiles
    from ottla.storage.segment_files.segment import Segment

_SYNCED_AT_ONCE: Final = 32


class Unsynced:
    def __init__(self, folder: Path, files: OpenFiles, parts: LogParts) -> None:
        self.recovery_point = parts.recovery_point
        """The recovery point: every record below this is on disk."""
        self.has_new_files = not parts.is_as_left
        """Whether the folder has to be synced as well."""
        self._folder = folder
        self._files = files
        # The last segment is the active one.
        self._segments = parts.unsynced
        self._flushes: list[Flush] = []

    @property
    def has_full_segments(self) -> bool:
        return len(self._segments) > 1

    @property
    def fits_one_flush(self) -> bool:
        return len(self._segments) <= _SYNCED_AT_ONCE

    def add(self, segment: Segment) -> None:
        """Make this the active segment."""
        self._segments.append(segment)
        self.has_new_files = True

    def begin_flush(self, next_offset: int, also: Iterable[Path] = ()) -> Flush:
        """The files to sync for more of the appended data, and the offset below which data is then durable.

        Includes all appended data, unless there are many segments, as after a crash: each takes descriptors until it is
        synced.
        """
        segments, later = self._segments[:_SYNCED_AT_ONCE], self._segments[_SYNCED_AT_ONCE:]
        fds = self._files.with_room(lambda: all_or_none(self._fsync_targets(segments, also)))
        flush = Flush(later[0].base_offset if later else next_offset, fds)
        self._flushes.append(flush)
        self._segments = later or segments[-1:]
        self.has_new_files = bool(later)
        return flush

    def _fsync_targets(self, segments: list[Segment], also: Iterable[Path]) -> Iterator[int]:
        for segment in segments:
            yield from segment.fsync_targets()
        for path in also:
            yield os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if self.has_new_files:
            yield open_folder(self._folder)

    def finish_flush(self, flush: Flush) -> None:
        """Record a successful flush."""
        flush.is_finished = True
        # In start order: each flush covers only what earlier ones did not.
        while self._flushes and self._flushes[0].is_finished:
            until_offset = self._flushes.pop(0).until_offset
            self.recovery_point = max(self.recovery_point, until_offset)

    def keep_only(self, segments: Collection[Segment]) -> None:
        """Forget the other segments, which have been deleted."""
        self._segments = [segment for segment in self._segments if segment in segments]

    def truncated(self, segments: list[Segment], next_offset: int) -> None:
        """Handle a truncation: these segments are left, without records from this offset on; the last one may be new
        here.
        """
        self.keep_only(segments[:-1])
        self._segments.append(segments[-1])
        for flush in self._flushes:
            flush.until_offset = min(flush.until_offset, next_offset)
        self.recovery_point = min(self.recovery_point, next_offset)

    def restarted(self, segment: Segment, offset: int) -> None:
        """Handle a restart: only this empty segment, which starts at `offset`, is left."""
        for flush in self._flushes:
            flush.until_offset = 0
        self._segments = [segment]
        self.recovery_point = offset
