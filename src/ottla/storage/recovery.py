"""Opens a partition's folder in any state.

After a clean shutdown the files are trusted and the data is not read. Otherwise every batch after the last
known flush is verified; the log is truncated at the first torn or corrupt batch, and the truncated part is kept
aside. Missing or invalid indexes, producer state and leader epochs are rebuilt from the batches.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import StorageError
from ottla.storage.files import (
    CORRUPT,
    DELETED,
    ENCRYPTED_LOG,
    LOG,
    OFFSET_INDEX,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    offset_in_name,
    storage_errors,
)
from ottla.storage.folder.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    BadCheckpoint,
    is_lacking,
    note_lacking,
    read_epochs,
    write_epochs,
    write_missing,
)
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.partition_log import PartitionLog
from ottla.storage.producers.replay import load_producers
from ottla.storage.producers.snapshot import Snapshots
from ottla.storage.rewrites.rewriting import REWRITING, remove_rewriting
from ottla.storage.rewrites.swap_files import CLEANED, complete_swaps
from ottla.storage.segment_files.cut_off import cut_segment, set_aside
from ottla.storage.segment_files.index_recovery import are_indexes_sane, rewind_indexes
from ottla.storage.segment_files.scan import MAX_OFFSETS_IN_A_FILE, NO_LIMIT, Damage
from ottla.storage.segment_files.segment import Segment
from ottla.storage.segment_files.segments import reaching

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ottla.core.clock import Clock
    from ottla.storage.cipher import BatchCipher
    from ottla.storage.config import LogConfig
    from ottla.storage.producers.state import ProducerStates
    from ottla.storage.segment_files.open_files import OpenFiles
    from ottla.storage.segment_files.scan import FoundBatch

_logger: Final = logging.getLogger(__name__)

_NOWHERE: Final = -1


class LastKnown(NamedTuple):
    """The checkpoint entries of a partition."""

    is_clean: bool = False
    recovery_point: int = 0
    start_offset: int = 0
    aborted: Mapping[int, int] = MappingProxyType({})
    """The minimum number of aborted transactions in a segment, by its base offset."""


class LogParts(NamedTuple):
    """The parts of a log after its folder was read."""

    segments: list[Segment]
    next_offset: int
    start_offset: int
    recovery_point: int
    unsynced: list[Segment]
    producers: ProducerStates
    snapshots: Snapshots
    epochs: LeaderEpochs
    is_as_left: bool
    """Whether the files are unchanged since a clean shutdown."""
    cipher: BatchCipher | None = None
    lacks_records: bool = False
    """Whether more than an incomplete last write was truncated, or synced records are missing."""


def open_log(
    folder: Path,
    config: LogConfig,
    clock: Clock,
    files: OpenFiles,
    known: LastKnown | None = None,
    cipher: BatchCipher | None = None,
) -> PartitionLog:
    """The log in this folder, created if it does not exist. With a `cipher`, new data is encrypted."""
    with storage_errors(f"opening {folder.name}"):
        folder.mkdir(parents=True, exist_ok=True)
        return _Opening(folder, config, files, known or LastKnown(), cipher).open(clock)


class _Checked(NamedTuple):
    """The intact part of a segment: end position and offset, and the damage behind it, if any."""

    end: int
    next_offset: int
    damage: Damage | None


class _Opening:
    def __init__(
        self, folder: Path, config: LogConfig, files: OpenFiles, known: LastKnown, cipher: BatchCipher | None
    ) -> None:
        self._folder = folder
        self._config = config
        self._files = files
        self._known = known
        self._cipher = cipher
        self._snapshots = Snapshots(folder)
        # Producer state is replayed at least from here on, because later snapshots may be missing.
        self._doubtful_from: int | None = None
        self._epochs_found: list[tuple[int, int]] = []
        self._lacks_records = is_lacking(folder)

    def open(self, clock: Clock) -> PartitionLog:
        complete_swaps(self._folder)
        self._remove_leftovers()
        segments = self._find_segments()
        try:
            return PartitionLog(self._folder, self._config, clock, self._files, self._load(segments))
        except BaseException:
            for segment in segments:
                segment.close()
            raise

    def _load(self, segments: list[Segment]) -> LogParts:
        known = self._known
        is_found = bool(segments)
        next_offset = self._recover(segments) if segments else known.start_offset
        if not segments or (self._cipher is not None and segments[-1].cipher is None):
            is_found = False
            self._begin_segment(segments, next_offset)
        # Remove a snapshot beyond the end: it would be mistaken for one of new records at these offsets.
        self._snapshots.keep_only([at for at in self._snapshots.offsets() if at <= next_offset])
        recovery_point = next_offset if known.is_clean else min(known.recovery_point, next_offset)
        trusted = next_offset if self._doubtful_from is None else self._doubtful_from
        start_offset = min(max(known.start_offset, segments[0].base_offset), next_offset)
        if is_found and next_offset < known.recovery_point:
            self._note_missing(next_offset)
        taken_at, producers = load_producers(segments, self._snapshots, next_offset, trusted)
        return LogParts(
            segments=segments,
            next_offset=next_offset,
            start_offset=start_offset,
            recovery_point=recovery_point,
            unsynced=reaching(segments, recovery_point) if recovery_point < next_offset else segments[-1:],
            producers=producers,
            snapshots=self._snapshots,
            epochs=self._load_epochs(segments, start_offset, next_offset),
            # Snapshots after the first verified or rebuilt batch are not trusted.
            is_as_left=is_found and known.is_clean and taken_at == next_offset,
            cipher=self._cipher,
            lacks_records=self._lacks_records,
        )

    def _note_missing(self, next_offset: int) -> None:
        """Record missing records: more was synced once, and the end of the file was damaged, truncated or replaced
        since.
        """
        end = self._known.recovery_point
        self._lacks_records = note_lacking(self._folder, lacks=True)
        _logger.error("%s: synced records are missing: offsets %d to %d", self._folder.name, next_offset, end - 1)
        with suppress(OSError):
            write_missing(self._folder, next_offset, end)

    def _remove_leftovers(self) -> None:
        names = {path.name for path in self._folder.iterdir()}
        for name in names:
            path = self._folder / name
            is_index = path.suffix in (OFFSET_INDEX, TIME_INDEX, TXN_INDEX)
            if path.is_dir() and (is_index or path.suffix == SNAPSHOT or name in (LEADER_EPOCHS, PARTITION_METADATA)):
                _logger.warning("%s: %s is a folder; moving it aside", self._folder.name, name)
                path.rename(path.with_name(name + CORRUPT))
            elif path.name == REWRITING:
                remove_rewriting(path)
            elif name.endswith((DELETED, ".tmp", CLEANED)) or (is_index and not _logs_of(path.stem) & names):
                path.unlink()

    def _find_segments(self) -> list[Segment]:
        plain, encrypted = self._bases(LOG), self._bases(ENCRYPTED_LOG)
        for base_offset in plain & encrypted:
            self._drop_empty(base_offset)
            plain.discard(base_offset)
        if encrypted and self._cipher is None:
            raise StorageError(f"{self._folder.name} is encrypted, but no keys are configured")
        if plain and self._cipher is not None and not self._cipher.allows_plain:
            name = file_name(min(plain), LOG)
            raise StorageError(f"{self._folder.name}/{name} is not encrypted, but must be")
        return [
            Segment.open(
                self._folder, base_offset, self._config, self._files, self._cipher if base_offset in encrypted else None
            )
            for base_offset in sorted(plain | encrypted)
        ]

    def _bases(self, suffix: str) -> set[int]:
        bases = (offset_in_name(path.name, suffix) for path in self._folder.iterdir())
        return {base for base in bases if base is not None}

    def _drop_empty(self, base_offset: int) -> None:
        """Of two segments with the same base offset, drop the unencrypted one that `_begin_segment` did not remove."""
        path = self._folder / file_name(base_offset, LOG)
        if path.stat().st_size:
            raise StorageError(
                f"{self._folder.name} has both an unencrypted and an encrypted segment at offset {base_offset}"
            )
        path.unlink()

    def _begin_segment(self, segments: list[Segment], next_offset: int) -> None:
        """Create the first segment of the log, or its first encrypted one."""
        last = segments[-1] if segments else None
        if last is not None:
            last.seal()
        segment = Segment.create(self._folder, next_offset, self._config, self._files, self._cipher)
        if last is not None and last.base_offset == next_offset:
            segments.pop()
            last.path.unlink()
        segments.append(segment)

    def _recover(self, segments: list[Segment]) -> int:
        """Recover the segments; returns the log end offset."""
        known = self._known
        doubtful = [] if known.is_clean else reaching(segments, known.recovery_point)
        ended_at = known.recovery_point if known.is_clean and known.recovery_point else NO_LIMIT
        for number, segment in enumerate(segments):
            end_offset = segments[number + 1].base_offset if number + 1 < len(segments) else None
            if segment in doubtful:
                checked = self._check(segment, known.recovery_point, end_offset or self._last_limit(segment))
                reason = self._reason_to_end(checked, end_offset)
                if reason is not None:
                    self._end_log(segments, number, checked, reason)
            elif not are_indexes_sane(segment):
                self._check(segment, segment.base_offset, end_offset or ended_at)
            elif not self._is_txn_index_sane(segment, end_offset or NO_LIMIT):
                self._drop_txn_index(segment)
        next_offset = segments[-1].open_for_append(ended_at)
        segments[-1].txn_index.drop_from(next_offset)
        return next_offset

    def _last_limit(self, segment: Segment) -> int:
        """The limit for the end of the last segment's last batch, if it does not follow the one before it.

        Nothing behind confirms such a gap, which only compaction creates, here or at the source of a copy.
        """
        return segment.base_offset + MAX_OFFSETS_IN_A_FILE if "compact" in self._config.cleanup_policy else _NOWHERE

    def _check(self, segment: Segment, from_offset: int, end_offset: int) -> _Checked:
        """Verify and reindex the batches from `from_offset` on, as far as the log continues here.

        A corrupt batch below the recovery point does not truncate the log: it was intact once, others follow it, and
        reading it fails.
        """
        if not self._known.is_clean:
            _drop_cached(self._files.get(segment.path))
        end, next_offset = rewind_indexes(segment, from_offset)
        self._doubt(next_offset)
        damage = None
        for batch in segment.walk(end, next_offset, end_offset):
            if isinstance(batch, Damage):
                damage = batch
                if damage.offset >= self._known.recovery_point and not self._known.is_clean:
                    self._lacks_records |= note_lacking(self._folder, lacks=_is_more_than_torn(segment, damage))
                    break
                _logger.error("%s: corrupt batch at position %d: %s", segment.path, damage.position, damage.reason)
                continue
            damage = None
            self._note(segment, batch)
            next_offset = batch.header.next_offset
            end = batch.position + batch.header.size
        if not self._is_txn_index_sane(segment, NO_LIMIT):
            self._drop_txn_index(segment)
        # Without disk space, indexes can stay in memory.
        with suppress(OSError):
            segment.indexes.write_out(is_final=True)
        return _Checked(end, next_offset, damage)

    def _note(self, segment: Segment, batch: FoundBatch) -> None:
        segment.index(batch.position, batch.header)
        epoch = batch.header.leader_epoch
        if not self._epochs_found or epoch > self._epochs_found[-1][0]:
            self._epochs_found.append((epoch, batch.header.base_offset))

    def _reason_to_end(self, checked: _Checked, end_offset: int | None) -> str | None:
        """Why the log cannot continue after this segment; None if it can."""
        if checked.damage is not None:
            is_torn = checked.damage.offset >= self._known.recovery_point
            return checked.damage.reason if is_torn or end_offset is None else None
        if end_offset is None or checked.next_offset < self._known.recovery_point:
            return None
        # A power failure may lose the end of a segment but keep the next one. The only other cause of such a gap is
        # compaction.
        is_gap = checked.next_offset < end_offset and "compact" not in self._config.cleanup_policy
        if is_gap or checked.next_offset > end_offset:
            return f"it ends before offset {checked.next_offset}, but the next segment starts at {end_offset}"
        return None

    def _end_log(self, segments: list[Segment], number: int, checked: _Checked, reason: str) -> None:
        # In this order, and from the end: after an interruption, the next start completes it.
        cut = segments[number + 1 :]
        self._lacks_records |= note_lacking(self._folder, lacks=any(segment.size for segment in cut))
        set_aside(cut)
        del segments[number + 1 :]
        cut_segment(segments[number], checked.end, reason)

    def _is_txn_index_sane(self, segment: Segment, end_offset: int) -> bool:
        # There are also fewer than recorded after a truncation, and then the index is rebuilt unnecessarily.
        is_all_there = len(segment.txn_index) >= self._known.aborted.get(segment.base_offset, 0)
        return is_all_there and segment.txn_index.is_sane(segment.base_offset, end_offset)

    def _drop_txn_index(self, segment: Segment) -> None:
        _logger.warning("%s: invalid transaction index; rebuilding it", segment.txn_index.path)
        segment.txn_index.clear()
        self._doubt(segment.base_offset)

    def _doubt(self, offset: int) -> None:
        self._doubtful_from = offset if self._doubtful_from is None else min(self._doubtful_from, offset)

    def _load_epochs(self, segments: list[Segment], start_offset: int, next_offset: int) -> LeaderEpochs:
        path = self._folder / LEADER_EPOCHS
        try:
            epochs = LeaderEpochs(read_epochs(path))
            is_current = self._known.is_clean or not epochs.drop_from(next_offset)
        except BadCheckpoint as bad:
            _logger.warning("%s: rebuilding leader epochs from the log: %s", self._folder.name, bad)
            epochs, is_current = LeaderEpochs(), False
        found = self._epochs_found
        if found and epochs.epoch_at(max(found[0][1], start_offset)) != found[0][0]:
            # A power failure has lost the newest lines. This epoch may have started before the verified part.
            epochs = LeaderEpochs()
        if not epochs.entries and next_offset > segments[0].base_offset:
            self._epochs_found = [
                (header.leader_epoch, header.base_offset)
                for segment in segments
                for _, header in segment.headers(segment.base_offset)
            ]
        news = [epochs.begin(epoch, base_offset) for epoch, base_offset in self._epochs_found]
        if any(news):
            epochs.drop_before(start_offset)
        if any(news) or not is_current:
            with suppress(OSError):  # disk full: it can be rebuilt after the next start
                write_epochs(path, epochs.entries)
        return epochs


def _logs_of(stem: str) -> set[str]:
    return {stem + LOG, stem + ENCRYPTED_LOG}


def _is_more_than_torn(segment: Segment, damage: Damage) -> bool:
    """Whether this is more than an incomplete last write, of which a prefix is there."""
    if segment.has_whole_batch(damage.position):
        return True
    later = segment.walk(damage.position, damage.offset, segment.base_offset + MAX_OFFSETS_IN_A_FILE)
    return any(not isinstance(each, Damage) for each in later)


def _drop_cached(fd: int) -> None:
    """Drop the file from the page cache: after a failed fsync the cache may have data that was never written."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
