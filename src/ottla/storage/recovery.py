"""Opening a partition's folder, whatever state it was left in.

After a clean stop the files are believed and the data is not read. After anything else, every batch behind the last
known flush is checked; the log ends before the first one that is torn or damaged, and what is cut off is kept
aside. Indexes, producer state and leader epochs that are missing or make no sense are rebuilt from the batches.
"""

from __future__ import annotations

import logging
import os
import shutil
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import ApiError, CorruptMessage
from ottla.records.batch import check_batch
from ottla.records.control import read_end_marker
from ottla.storage.checkpoints import LEADER_EPOCHS, BadCheckpoint, read_epochs, write_epochs
from ottla.storage.files import CORRUPT, DELETED, LOG, offset_in_name, storage_errors
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.partition_log import LogParts, PartitionLog
from ottla.storage.producer_snapshot import Snapshots
from ottla.storage.scan import scan_headers
from ottla.storage.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ottla.core.clock import Clock
    from ottla.records.batch import BatchHeader
    from ottla.storage.config import LogConfig
    from ottla.storage.open_files import OpenFiles
    from ottla.storage.producer_state import ProducerStates

_logger: Final = logging.getLogger(__name__)


class LastKnown(NamedTuple):
    """What the checkpoints say of a partition."""

    is_clean: bool = False
    recovery_point: int = 0
    start_offset: int = 0


def open_log(
    folder: Path, config: LogConfig, clock: Clock, files: OpenFiles, known: LastKnown | None = None
) -> PartitionLog:
    """The log in this folder, which is created if it does not exist."""
    with storage_errors(f"opening {folder.name}"):
        folder.mkdir(parents=True, exist_ok=True)
        return _Opening(folder, config, files, known or LastKnown()).open(clock)


class _Opening:
    def __init__(self, folder: Path, config: LogConfig, files: OpenFiles, known: LastKnown) -> None:
        self._folder = folder
        self._config = config
        self._files = files
        self._known = known
        self._snapshots = Snapshots(folder)
        # Producer state is replayed at least from here on, because what was written from it may be missing.
        self._doubtful_from: int | None = None

    def open(self, clock: Clock) -> PartitionLog:
        self._remove_leftovers()
        segments = self._find_segments()
        if segments:
            next_offset = self._recover(segments)
        else:
            next_offset = self._known.start_offset
            segments = [Segment.create(self._folder, next_offset, self._config, self._files)]
        recovery_point = next_offset if self._known.is_clean else min(self._known.recovery_point, next_offset)
        trusted = next_offset if self._doubtful_from is None else self._doubtful_from
        parts = LogParts(
            segments=segments,
            next_offset=next_offset,
            start_offset=min(max(self._known.start_offset, segments[0].base_offset), next_offset),
            recovery_point=recovery_point,
            unsynced=_reaching(segments, recovery_point) if recovery_point < next_offset else segments[-1:],
            producers=load_producers(segments, self._snapshots, next_offset, trusted),
            snapshots=self._snapshots,
            epochs=self._load_epochs(segments, next_offset),
        )
        return PartitionLog(self._folder, self._config, clock, self._files, parts)

    def _remove_leftovers(self) -> None:
        for path in list(self._folder.iterdir()):
            if path.name.endswith((DELETED, ".tmp", ".cleaned")):
                path.unlink()

    def _find_segments(self) -> list[Segment]:
        bases = [offset_in_name(path.name, LOG) for path in self._folder.iterdir()]
        return [
            Segment.open(self._folder, base_offset, self._config, self._files)
            for base_offset in sorted(base for base in bases if base is not None)
        ]

    def _recover(self, segments: list[Segment]) -> int:
        """Make the segments usable; return the offset after the last record."""
        doubtful = [] if self._known.is_clean else _reaching(segments, self._known.recovery_point)
        for number, segment in enumerate(segments):
            is_whole = True
            if segment in doubtful:
                is_whole = self._check(segment, self._known.recovery_point)
            elif not segment.are_indexes_sane():
                is_whole = self._check(segment, segment.base_offset)
            elif not segment.txn_index.is_sane(segment.base_offset):
                segment.txn_index.path.unlink()
                self._doubt(segment.base_offset)
            if not is_whole:
                self._set_aside(segments[number + 1 :])
                del segments[number + 1 :]
        try:
            return segments[-1].open_for_append()
        except ApiError:
            # A clean stop, and yet the end makes no sense: the disk has damaged it since.
            segments[-1].close()
            self._check(segments[-1], segments[-1].base_offset)
            return segments[-1].open_for_append()

    def _check(self, segment: Segment, from_offset: int) -> bool:
        """Check and index anew the batches from `from_offset` on; whether the segment was whole.

        A damaged batch below the recovery point does not end the log: it was whole once, others follow it, and
        whoever reads it is told.
        """
        end, next_offset = segment.rewind_indexes(from_offset)
        self._doubt(next_offset)
        is_whole = True
        try:
            for position, header in scan_headers(self._files.get(segment.path), end, segment.size):
                if header.base_offset < next_offset:
                    raise CorruptMessage(f"offset {header.base_offset} where {next_offset} was expected")
                if header.last_offset >= self._known.recovery_point and not self._known.is_clean:
                    check_batch(segment.read_at(position, header.size))
                segment.index(position, header)
                next_offset = header.next_offset
                end = position + header.size
        except ApiError as damaged:
            self._cut(segment, end, str(damaged))
            is_whole = False
        segment.indexes.write_out(is_final=True)
        return is_whole

    def _doubt(self, offset: int) -> None:
        self._doubtful_from = offset if self._doubtful_from is None else min(self._doubtful_from, offset)

    def _cut(self, segment: Segment, position: int, reason: str) -> None:
        kept_as = segment.path.with_name(f"{segment.path.name}.{position}{CORRUPT}")
        try:
            with segment.path.open("rb") as damaged, kept_as.open("wb") as aside:
                damaged.seek(position)
                shutil.copyfileobj(damaged, aside)
        except OSError as refused:
            # On a full disk there is no room to keep it, and starting matters more than a torn batch.
            kept_as.unlink(missing_ok=True)
            _logger.error("%s: what is cut off could not be kept: %s", self._folder.name, refused)
        _logger.warning(
            "%s: the log ends at byte %d of %s, %d bytes behind it are set aside as %s: %s",
            self._folder.name,
            position,
            segment.path.name,
            segment.size - position,
            kept_as.name,
            reason,
        )
        os.truncate(segment.path, position)
        segment.size = position

    def _set_aside(self, segments: Iterable[Segment]) -> None:
        """Segments behind a damaged one: their records can no longer follow those before them."""
        for segment in segments:
            segment.close()
            segment.path.rename(segment.path.with_name(segment.path.name + CORRUPT))
            for path in segment.paths()[1:]:
                path.unlink(missing_ok=True)
            _logger.warning("%s: %s lies behind the damage and is set aside", self._folder.name, segment.path.name)

    def _load_epochs(self, segments: list[Segment], next_offset: int) -> LeaderEpochs:
        path = self._folder / LEADER_EPOCHS
        try:
            epochs = LeaderEpochs(read_epochs(path))
            is_current = self._known.is_clean or not epochs.drop_from(next_offset)
        except BadCheckpoint as bad:
            _logger.warning("%s: leader epochs are rebuilt from the log: %s", self._folder.name, bad)
            epochs, is_current = LeaderEpochs(), False
        if not is_current or (not epochs.entries and next_offset > segments[0].base_offset):
            for segment in segments:
                for _, header in segment.headers(segment.base_offset):
                    epochs.begin(header.leader_epoch, header.base_offset)
            write_epochs(path, epochs.entries)
        return epochs


def _reaching(segments: list[Segment], offset: int) -> list[Segment]:
    """The segments with records at `offset` or above; at least the last."""
    return [
        segment
        for segment, following in zip(segments, [*segments[1:], None], strict=True)
        if following is None or following.base_offset > offset
    ]


def load_producers(
    segments: list[Segment], snapshots: Snapshots, next_offset: int, trusted_until: int
) -> ProducerStates:
    """The newest snapshot not taken after `trusted_until`, brought up to date with the batches behind it."""
    taken_at, producers = snapshots.newest(trusted_until)
    if taken_at == next_offset:
        return producers
    for segment in segments:
        for position, header in segment.headers(taken_at):
            if header.producer_id >= 0:
                _replay(segment, position, header, producers)
    return producers


def _replay(segment: Segment, position: int, header: BatchHeader, producers: ProducerStates) -> None:
    if not header.is_control:
        producers.appended(header, header.base_offset)
        return
    marker = read_end_marker(segment.read_at(position, header.size))
    if marker is not None:
        aborted = producers.ended(header, header.base_offset, marker)
        if aborted is not None and aborted not in segment.txn_index.overlapping(0, 1 << 63):
            segment.txn_index.append(aborted)
