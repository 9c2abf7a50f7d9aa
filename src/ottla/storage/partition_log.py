"""The log of one partition: its offsets, segments, producers and leader epochs.

It belongs to one thread. Slow steps (fsync, removing files) are returned to be run elsewhere. Rare operations are
functions of other modules: `truncation`, `retention`, `rewrites.rewriting`, `key_version`, `folder.closing`.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.core.errors import CorruptMessage, DataDirError, OffsetOutOfRange, StorageError
from ottla.records.batch import check_batch, check_produced, place, read_header, set_log_append_time
from ottla.records.control import build_end_marker, read_end_marker
from ottla.storage.admission import check_keys, check_size, check_timestamp
from ottla.storage.appended import Appended
from ottla.storage.files import PASSING_ERRORS, storage_errors
from ottla.storage.flushing import is_flush_due
from ottla.storage.folder.checkpoints import LEADER_EPOCHS, begin_epoch, forget_lacking, write_epochs
from ottla.storage.key_version import use_key_version
from ottla.storage.removed_tombstones import RemovedTombstones
from ottla.storage.segment_files.cold_read import Bounds
from ottla.storage.segment_files.segment import Segment
from ottla.storage.segment_files.segment_indexes import NO_TIMESTAMP
from ottla.storage.segment_files.segments import Segments
from ottla.storage.unsynced import Unsynced

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ottla.core.clock import Clock
    from ottla.records.batch import BatchHeader
    from ottla.records.control import EndMarker
    from ottla.storage.config import LogConfig
    from ottla.storage.flushing import Flush
    from ottla.storage.recovery import LogParts
    from ottla.storage.segment_files.open_files import OpenFiles
    from ottla.storage.segment_files.timestamps import Effort, TimestampOffset, Unfinished
    from ottla.storage.segment_files.txn_index import AbortedTransaction

_logger: Final = logging.getLogger(__name__)


class PartitionLog:
    def __init__(self, folder: Path, config: LogConfig, clock: Clock, files: OpenFiles, parts: LogParts) -> None:
        self.folder = folder
        self.config = config
        self.next_offset = parts.next_offset
        self.start_offset = parts.start_offset
        self.segments = Segments(parts.segments, clock)
        self.unsynced = Unsynced(folder, files, parts)
        self.producers = parts.producers
        self.snapshots = parts.snapshots
        self.epochs = parts.epochs
        self.cipher = parts.cipher
        self.removed_tombstones = RemovedTombstones(folder, parts.next_offset)
        self._clock = clock
        self.files = files
        self.snapshot_at = parts.next_offset if parts.is_as_left else None
        """The offset of a snapshot on disk that is known to be correct."""
        self.lacks_records = parts.lacks_records
        """Whether records were lost to damage that recovery found: more than an incomplete last write."""
        self._offline: str | None = None
        self.is_damaged = False
        """Whether it went offline because its contents are damaged, so that opening it again does not help."""
        self.is_abandoned = False
        self.when_offline: Callable[[str], None] | None = None
        """Called with the reason when the log goes offline."""
        self.before_truncation: Callable[[int], None] | None = None
        """Called with the offset that the log will be truncated to, so that no checkpoint is beyond it."""

    def __repr__(self) -> str:
        return f"<log {self.folder.name} {self.start_offset}..{self.next_offset}>"

    @property
    def size(self) -> int:
        return self.segments.size

    @property
    def last_stable_offset(self) -> int:
        unstable = self.producers.first_unstable_offset
        return self.next_offset if unstable is None else max(unstable, self.start_offset)

    @property
    def recovery_point(self) -> int:
        """The recovery point: every record below it is on disk."""
        return self.unsynced.recovery_point

    @property
    def is_start_synced(self) -> bool:
        """Whether the record at the start is synced: otherwise a power failure could keep a checkpointed start offset,
        and lose the records to keep.
        """
        return self.start_offset < self.recovery_point or self.recovery_point >= self.next_offset

    def forget_lack(self) -> None:
        """Record that no ISR relies on its missing records any more."""
        self.lacks_records = False
        forget_lacking(self.folder)

    def use_config(self, config: LogConfig) -> None:
        self.config = config
        for segment in self.segments.all:
            segment.config = config
        try:
            use_key_version(self)
        except (StorageError, DataDirError) as failed:
            _logger.error("%s: could not change the key, using the current one: %s", self, failed)

    # Appending

    def append(
        self, batch: bytearray | memoryview, leader_epoch: int = 0, *, has_keys: bool = False, is_checked: bool = False
    ) -> Appended:
        """Validate a producer's batch, assign its offsets, and write it. The log takes ownership of the buffer.

        With `has_keys`, the check for records without a key, which a compacted log rejects, is skipped. With
        `is_checked`, the batch was valid before records were removed from it.
        """
        # Checked before duplicates are recognised: the original may not have been synced.
        if self._offline is not None:
            raise self._offline_error()
        header = read_header(batch) if is_checked else check_produced(batch)
        config = self.config
        check_size(len(batch), config)
        if not has_keys and config.cleanup_policy != "delete":
            check_keys(batch, header)
        log_append_time = NO_TIMESTAMP
        now_ms = self._clock.now_ms()
        if config.message_timestamp_type == "LogAppendTime":
            log_append_time = now_ms
            header = set_log_append_time(batch, log_append_time)
        else:
            check_timestamp(header, config, now_ms)
        if header.producer_id >= 0:
            known = self.producers.check(header)
            if known is not None:
                log_append_time = known.timestamp if header.is_log_append_time else NO_TIMESTAMP
                return Appended(known.base_offset, known.last_offset, log_append_time, True)  # noqa: FBT003
        base_offset = self.next_offset
        place(batch, 0, base_offset, leader_epoch)
        if leader_epoch > self.epochs.latest:
            begin_epoch(self.folder, self.epochs, leader_epoch, base_offset)
        last_offset = base_offset + header.last_offset_delta
        self.write(batch, last_offset, header.max_timestamp)
        if header.producer_id >= 0:
            self.producers.appended(header, base_offset)
        # Published last: a reader of the new end may read everything below it.
        self.next_offset = last_offset + 1
        return Appended(base_offset, last_offset, log_append_time, False)  # noqa: FBT003

    def append_of_coordinator(self, batch: bytearray, leader_epoch: int = 0) -> Appended:
        """Write a coordinator's batch within a producer's transaction: it has no sequence numbers."""
        self.check_online()
        header = read_header(batch)
        check_size(len(batch), self.config)
        self.producers.check_epoch(header.producer_id, header.producer_epoch)
        base_offset = self._put(batch, header, leader_epoch)
        self.producers.appended(header, base_offset)
        last_offset = base_offset + header.last_offset_delta
        self.next_offset = last_offset + 1
        return Appended(base_offset, last_offset, NO_TIMESTAMP, is_duplicate=False)

    def append_end_marker(
        self, producer_id: int, producer_epoch: int, marker: EndMarker, leader_epoch: int = 0
    ) -> Appended:
        """Write the end marker of a producer's transaction."""
        self.check_online()
        self.producers.check_end(producer_id, producer_epoch, marker)
        batch = build_end_marker(marker, producer_id, producer_epoch, self._clock.now_ms())
        header = read_header(batch)
        offset = self._put(batch, header, leader_epoch)
        self._end_transaction(header, offset, marker)
        self.next_offset = offset + 1
        return Appended(offset, offset, NO_TIMESTAMP, is_duplicate=False)

    def _put(self, batch: bytearray, header: BatchHeader, leader_epoch: int) -> int:
        """Write a batch at the end, without advancing the log end offset yet; returns its base offset."""
        base_offset = self.next_offset
        place(batch, 0, base_offset, leader_epoch)
        if leader_epoch > self.epochs.latest:
            begin_epoch(self.folder, self.epochs, leader_epoch, base_offset)
        self.write(batch, base_offset + header.last_offset_delta, header.max_timestamp)
        return base_offset

    def append_as_follower(self, batch: memoryview) -> BatchHeader:
        """Write a batch of the leader, with its offsets and leader epoch. There may be a gap before it."""
        self.check_online()
        header = check_batch(batch)
        if header.base_offset < self.next_offset:
            raise CorruptMessage(f"batch at offset {header.base_offset}, expected {self.next_offset} or higher")
        marker = read_end_marker(batch) if header.is_control else None
        if header.leader_epoch > self.epochs.latest:
            begin_epoch(self.folder, self.epochs, header.leader_epoch, header.base_offset)
        self.write(batch, header.last_offset, header.max_timestamp)
        if marker is not None:
            self._end_transaction(header, header.base_offset, marker)
        elif header.producer_id >= 0 and not header.is_control:
            self.producers.appended(header, header.base_offset)
        self.next_offset = header.next_offset
        return header

    def _end_transaction(self, header: BatchHeader, offset: int, marker: EndMarker) -> None:
        aborted = self.producers.ended(header, offset, marker)
        if aborted is None:
            return
        self.unsynced.has_new_files = True
        try:
            self.segments.active.txn_index.append(aborted)
        except OSError as refused:
            # The marker is in the log, so the index entry must follow, or readers would see its records as committed.
            raise self.go_offline(f"could not write the transaction index: {refused.strerror or refused}") from refused

    def write(self, batch: bytearray | memoryview, last_offset: int, max_timestamp: int) -> None:
        """Append a validated batch with assigned offsets; the log end does not advance yet."""
        segments = self.segments
        try:
            if segments.must_roll(len(batch), last_offset, max_timestamp):
                self.roll()
            active = segments.active
            if not active.size:
                segments.begin_active(max_timestamp)
            active.append(batch, last_offset, max_timestamp)
        except OSError as refused:
            self.refuse_append(refused)

    def refuse_append(self, refused: OSError) -> None:
        """Handle a failed write: raises StorageError. Unless the disk is full, the log goes offline."""
        self.files.on_refused_write(refused)
        if refused.errno not in PASSING_ERRORS:
            self.go_offline(f"write failed: {refused.strerror or refused}")
        try:
            self.segments.active.forget_torn_tail()
        except OSError as failed:
            self.go_offline(f"could not undo a failed write: {failed.strerror or failed}")
        raise StorageError(f"{self.folder.name}: {refused.strerror or refused}") from refused

    def roll(self) -> bool:
        """Roll to a new segment unless the current one is empty; returns whether it rolled."""
        active = self.segments.active
        if active.size == 0:
            return False
        segment = self.files.with_room(self._create_next)
        active.release()
        self.segments.add(segment)
        self.unsynced.add(segment)
        self.snapshot_at = None
        # The snapshot only saves time after a crash.
        with suppress(OSError):
            self.snapshots.write(self.next_offset, self.producers)
        return True

    def _create_next(self) -> Segment:
        # Its file is created last: if anything fails, for example for lack of space, the active segment can still be
        # appended to, and there is no file that would be mistaken for its successor.
        self.segments.active.complete()
        return Segment.create(self.folder, self.next_offset, self.config, self.files, self.cipher)

    # Removing

    def raise_start(self, offset: int) -> None:
        """Raise the log start offset: records below it are no longer served.

        It survives a crash once the record at `offset` is synced and `FolderCheckpoints.write` has been called.
        """
        if not self.start_offset <= offset <= self.next_offset:
            raise OffsetOutOfRange(f"offset {offset} is out of range {self.start_offset}..{self.next_offset}")
        self.start_offset = offset
        if self.epochs.drop_before(offset):
            # Old lines in the file are harmless, and raising the start on a full disk frees space.
            with suppress(OSError):
                write_epochs(self.folder / LEADER_EPOCHS, self.epochs.entries)

    def keep_needed_snapshots(self) -> None:
        self.snapshots.keep_only({*self.segments.bases, self.next_offset})

    # Reading

    def read(self, offset: int, max_bytes: int, until_offset: int | None = None) -> memoryview:
        """Complete batches from the one that contains `offset` on: the first regardless of its size, more while they
        fit.
        """
        if self._offline is not None:
            raise self._offline_error()
        limit = self.next_offset if until_offset is None else min(until_offset, self.next_offset)
        if not self.start_offset <= offset <= self.next_offset:
            raise OffsetOutOfRange(f"offset {offset} is out of range {self.start_offset}..{self.next_offset}")
        try:
            return self.segments.read(Bounds(offset, limit, max_bytes), self.next_offset)
        except OSError as failed:
            raise StorageError(f"{self.folder.name}: {failed.strerror or failed}") from failed

    def size_between(self, offset: int, until_offset: int) -> int:
        """The size of the batches from the one with `offset` on, up to the one with `until_offset`."""
        self.check_online()
        return self.segments.size_between(max(offset, self.start_offset), min(until_offset, self.next_offset))

    def search_timestamp(self, timestamp: int, from_offset: int, effort: Effort) -> TimestampOffset | Unfinished | None:
        """The first record from this offset on at or after this timestamp, within a budget."""
        with storage_errors(self.folder.name):
            start = max(self.start_offset, from_offset)
            return self.segments.find_timestamp(timestamp, start, self.next_offset, effort)

    def newest_timestamp(self) -> int:
        """The largest timestamp; -1 if there is none. After DeleteRecords it may be that of a deleted record."""
        with storage_errors(self.folder.name):
            return self.segments.newest_timestamp(self.start_offset)

    def newest_timestamp_left(self, max_bytes: int) -> int:
        """The largest timestamp of records that are not deleted."""
        with storage_errors(self.folder.name):
            return self.segments.newest_left(self.start_offset, max_bytes)

    def aborted_transactions(self, from_offset: int, until_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records between these offsets, by first offset."""
        with storage_errors(self.folder.name):
            return self.segments.aborted_transactions(from_offset, until_offset)

    # Flushing

    @property
    def acknowledged_offset(self) -> int:
        """The offset below which appends may be acknowledged: they are durable according to the flush policy."""
        return self.recovery_point if self.config.flush == "ack" else self.next_offset

    @property
    def is_dirty(self) -> bool:
        return self.recovery_point < self.next_offset or self.unsynced.has_new_files

    def is_flush_due(self, now_s: float, last_flush_s: float) -> bool:
        """Whether the flush policy requires a flush now, `last_flush_s` being the start of the last one."""
        if self._offline is not None or not self.is_dirty:
            return False
        return is_flush_due(self.config, now_s - last_flush_s, has_full_segments=self.unsynced.has_full_segments)

    def begin_flush(self) -> Flush | None:
        """A flush of more of the appended data; None if there is nothing to sync."""
        if not self.is_dirty:
            return None
        # For example no descriptors are left: nothing was synced, and the flush can be retried.
        with storage_errors(self.folder.name):
            return self.unsynced.begin_flush(self.next_offset)

    def finish_flush(self, flush: Flush) -> None:
        """Finish a flush. A failed one takes the partition offline, and is not retried."""
        if flush.error is not None:
            self.go_offline(f"fsync failed: {flush.error.strerror or flush.error}")
        if self._offline is not None:
            # Later flushes are not trusted either: the kernel reports an error once, possibly for the same pages.
            raise self._offline_error() from flush.error
        self.unsynced.finish_flush(flush)

    def flush(self) -> None:
        """Sync everything appended so far."""
        self.check_online()
        flush = self.begin_flush()
        while flush is not None:
            flush.run()
            self.finish_flush(flush)
            # An unfinished concurrent flush keeps the log dirty.
            flush = self.begin_flush() if self.unsynced.has_new_files else None

    # Going offline, and closing

    @property
    def is_offline(self) -> bool:
        """Whether a disk error took this log offline; it serves nothing until it is opened again."""
        return self._offline is not None

    def check_online(self) -> None:
        if self._offline is not None:
            raise self._offline_error()

    def go_offline(self, reason: str) -> StorageError:
        """Reject reads and appends until the log is opened again; returns their error."""
        if self._offline is None:
            self._offline = reason
            _logger.critical("%s: the log is offline, on a single broker until a restart: %s", self.folder.name, reason)
            if self.when_offline is not None:
                self.when_offline(reason)
        return self._offline_error()

    def take_offline(self, reason: str) -> None:
        """Take the log offline because its contents are damaged."""
        self.is_damaged = True
        self.go_offline(reason)

    def _offline_error(self) -> StorageError:
        return StorageError(f"{self.folder.name} is offline: {self._offline}")

    def abandon(self) -> None:
        """Close the files without writing, as in a crash."""
        self.is_abandoned = True
        for segment in self.segments.all:
            segment.close()
