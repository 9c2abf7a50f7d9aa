"""The files of a log: batches in segments that are rolled, written, read and synced.

It belongs to one thread. Slow steps (fsync) are returned to be run elsewhere. Validation
of batches is done by `PartitionLog`.
"""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Final

from ottla.core.errors import DataDirError, OffsetOutOfRange, StorageError
from ottla.core.sealing import SEAL_BYTES
from ottla.storage.files import storage_errors
from ottla.storage.folder.own_keys import FIRST_OWN_KEY_ID
from ottla.storage.segment_files.cold_read import Bounds
from ottla.storage.segment_files.segment import Segment
from ottla.storage.segment_files.segments import Segments
from ottla.storage.segment_files.timestamps import Unfinished
from ottla.storage.unsynced import Unsynced

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ottla.core.clock import Clock
    from ottla.storage.config import LogConfig
    from ottla.storage.flushing import Flush
    from ottla.storage.recovery import LogParts
    from ottla.storage.segment_files.open_files import OpenFiles
    from ottla.storage.segment_files.timestamps import Effort, TimestampOffset
    from ottla.storage.segment_files.txn_index import AbortedTransaction

_logger: Final = logging.getLogger(__name__)

_MAX_RELATIVE_OFFSET: Final = (1 << 31) - 1
# There may be space again later; any other write error means that the disk cannot be trusted.
PASSING_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE})


class SegmentedLog:
    def __init__(self, folder: Path, config: LogConfig, clock: Clock, files: OpenFiles, parts: LogParts) -> None:
        self.folder = folder
        self.config = config
        self.next_offset = parts.next_offset
        self.start_offset = parts.start_offset
        self.cipher = parts.cipher
        self._clock = clock
        self._files = files
        self._segments = Segments(parts.segments)
        self._unsynced = Unsynced(folder, files, parts)
        self._offline: str | None = None
        self.when_offline: Callable[[str], None] | None = None
        """Called with the reason when the log goes offline."""
        self.lacks_records = parts.lacks_records
        """Whether records were lost to damage that recovery found: more than an incomplete last write."""
        self.is_damaged = False
        """Whether it went offline because of its contents: opening it again would not help."""
        self._is_abandoned = False
        self._first_timestamp = self._segments.active.first_timestamp
        self._segment_began_ms = clock.now_ms()

    def __repr__(self) -> str:
        return f"<log {self.folder.name} {self.start_offset}..{self.next_offset}>"

    @property
    def size(self) -> int:
        return self._segments.size

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self._segments.all)

    @property
    def recovery_point(self) -> int:
        """The recovery point: every record below this is on disk."""
        return self._unsynced.recovery_point

    @property
    def is_start_synced(self) -> bool:
        """Whether a start offset checkpointed now cannot survive, in a power failure, the records to keep."""
        return self.start_offset < self.recovery_point or self.recovery_point >= self.next_offset

    @property
    def is_offline(self) -> bool:
        """Whether the disk failed this log, which then serves nothing until it is opened again."""
        return self._offline is not None

    def use_config(self, config: LogConfig) -> None:
        self.config = config
        for segment in self._segments.all:
            segment.config = config
        try:
            self.use_key_version()
        except (StorageError, DataDirError) as failed:
            _logger.error("%s goes on with the key it has: %s", self, failed)

    def use_key_version(self) -> None:
        """Encrypt with the key that the config names, which is created if necessary."""
        version, cipher = self.config.encryption_key_version, self.cipher
        if cipher is None:
            if version:
                raise StorageError(f"{self.folder.name} has encryption.key.version, but encryption is off")
            return
        with storage_errors(f"the keys of {self.folder.name}"):
            own_keys = cipher.find_own_keys(self.folder, must_exist=not version)
            if own_keys is None or self.is_offline:
                return
            active = self._segments.active
            # A segment has keys of one kind, so that its first batch tells whether it must be re-encrypted.
            if active.size and (active.oldest_key_id >= FIRST_OWN_KEY_ID) != bool(version):
                self.roll()
            key_id = FIRST_OWN_KEY_ID + version
            if not own_keys.has(version) and any(each.oldest_key_id == key_id for each in self._segments.all):
                # A new key of this version would take the place of one that may be restored from a backup.
                raise StorageError(f"{self.folder.name}: own-keys.json lacks key {version}, which data needs")
            own_keys.use(version)

    def refresh_own_keys(self) -> None:
        """Encrypt the keys of this partition with the newest one of the folder."""
        if self.cipher is not None and self.cipher.own_keys is not None:
            with storage_errors(f"the keys of {self.folder.name}"):
                self.cipher.own_keys.refresh()

    # Writing

    def write(self, batch: bytearray | memoryview, last_offset: int, max_timestamp: int) -> None:
        """Append a validated batch with assigned offsets; the log end does not advance yet."""
        active = self._segments.active
        try:
            if active.size and self._must_roll(active, len(batch), last_offset, max_timestamp):
                self.roll()
                active = self._segments.active
            if not active.size:
                self._first_timestamp = max_timestamp
                self._segment_began_ms = self._clock.now_ms()
            active.append(batch, last_offset, max_timestamp)
        except OSError as refused:
            self.refuse_append(refused)

    def _must_roll(self, active: Segment, size: int, last_offset: int, max_timestamp: int) -> bool:
        config, began = self.config, self._first_timestamp
        # The age is by its records' timestamps, or otherwise by the clock.
        age_ms = max_timestamp - began if began >= 0 else self._clock.now_ms() - self._segment_began_ms
        return (
            active.size + size + (SEAL_BYTES if active.cipher is not None else 0) > config.segment_bytes
            or age_ms > config.segment_ms
            or last_offset - active.base_offset > _MAX_RELATIVE_OFFSET
            or active.indexes.is_full
        )

    def refuse_append(self, refused: OSError) -> None:
        """A write has failed: StorageError. Unless the disk is full, the log goes offline."""
        if refused.errno not in PASSING_ERRORS:
            self._go_offline(f"write failed: {refused.strerror or refused}")
        try:
            self._segments.active.forget_torn_tail()
        except OSError as failed:
            self._go_offline(f"could not undo a failed write: {failed.strerror or failed}")
        raise StorageError(f"{self.folder.name}: {refused.strerror or refused}") from refused

    def roll(self) -> bool:
        """Roll to a new segment, if the current one is not empty; returns whether it was not."""
        if self._segments.active.size == 0:
            return False
        segment = self._files.with_room(self._create_next)
        self._segments.active.release()
        self._segments.add(segment)
        self._unsynced.add(segment)
        return True

    def _create_next(self) -> Segment:
        # Its file is created last: if anything fails, e.g. for lack of space, the active segment can still be
        # appended to, and there is no file on disk that would be taken for its successor.
        self._segments.active.complete()
        return Segment.create(self.folder, self.next_offset, self.config, self._files, self.cipher)

    # Reading

    def read(self, offset: int, max_bytes: int, until_offset: int | None = None) -> memoryview:
        """Complete batches from the one with `offset` on: the first regardless of its size, more while they fit."""
        if self._offline is not None:
            raise self._offline_error()
        limit = self.next_offset if until_offset is None else min(until_offset, self.next_offset)
        if not self.start_offset <= offset <= self.next_offset:
            raise OffsetOutOfRange(f"offset {offset} is out of range {self.start_offset}..{self.next_offset}")
        try:
            return self._segments.read(Bounds(offset, limit, max_bytes), self.next_offset)
        except OSError as failed:
            raise StorageError(f"{self.folder.name}: {failed.strerror or failed}") from failed

    def size_between(self, offset: int, until_offset: int) -> int:
        """The size of the batches from the one with `offset` on, up to the one with `until_offset`."""
        if self._offline is not None:
            raise self._offline_error()
        return self._segments.size_between(max(offset, self.start_offset), min(until_offset, self.next_offset))

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or after this timestamp, regardless of the cost."""
        with storage_errors(self.folder.name):
            found = self._segments.find_timestamp(timestamp, self.start_offset, self.next_offset)
        return None if isinstance(found, Unfinished) else found

    def search_timestamp(self, timestamp: int, from_offset: int, effort: Effort) -> TimestampOffset | Unfinished | None:
        """The same from this offset on, within a budget."""
        with storage_errors(self.folder.name):
            start = max(self.start_offset, from_offset)
            return self._segments.find_timestamp(timestamp, start, self.next_offset, effort)

    def newest_timestamp(self) -> int:
        """The largest timestamp; -1 if there is none. After DeleteRecords it may be that of a deleted record."""
        with storage_errors(self.folder.name):
            return self._segments.newest_timestamp(self.start_offset)

    def newest_timestamp_left(self, max_bytes: int) -> int:
        """The largest timestamp of records that are not deleted."""
        with storage_errors(self.folder.name):
            return self._segments.newest_left(self.start_offset, max_bytes)

    def aborted_transactions(self, from_offset: int, until_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records between these offsets, by first offset."""
        with storage_errors(self.folder.name):
            return self._segments.aborted_transactions(from_offset, until_offset)

    # Flushing

    @property
    def acknowledged_offset(self) -> int:
        """Appends below this may be acknowledged: they are durable according to the flush policy."""
        return self.recovery_point if self.config.flush == "ack" else self.next_offset

    def is_flush_due(self, now_s: float, last_flush_s: float) -> bool:
        """Whether the flush policy requires a flush now, `last_flush_s` being the start of the last one."""
        if self._offline is not None or not self.is_dirty:
            return False
        match self.config.flush:
            case "ack":
                return True
            case "interval":
                return (now_s - last_flush_s) * 1000 >= self.config.flush_interval_ms
            case "os":
                # Only rolled segments, so that a start after a crash need not recover every segment.
                return self._unsynced.has_full_segments

    @property
    def is_dirty(self) -> bool:
        return self.recovery_point < self.next_offset or self._unsynced.has_new_files

    def begin_flush(self) -> Flush | None:
        """A flush of more of the appended data; None if there is nothing to sync."""
        if not self.is_dirty:
            return None
        # E.g. for lack of descriptors: nothing was synced, and it can be retried.
        with storage_errors(self.folder.name):
            return self._unsynced.begin_flush(self.next_offset)

    def finish_flush(self, flush: Flush) -> None:
        """Finish a flush. A failed one takes the partition offline, and is not retried."""
        if flush.error is not None:
            self._go_offline(f"fsync failed: {flush.error.strerror or flush.error}")
        if self._offline is not None:
            # Later ones are not trusted either: the kernel reports an error once, possibly for the same pages.
            raise self._offline_error() from flush.error
        self._unsynced.finish_flush(flush)

    def flush(self) -> None:
        """Sync everything appended so far."""
        if self._offline is not None:
            raise self._offline_error()
        flush = self.begin_flush()
        while flush is not None:
            flush.run()
            self.finish_flush(flush)
            # An unfinished concurrent flush keeps the log dirty.
            flush = self.begin_flush() if self._unsynced.has_new_files else None

    # Closing

    def take_offline(self, reason: str) -> None:
        """Refuse reads and appends until a restart: its contents are damaged."""
        self.is_damaged = True
        self._go_offline(reason)

    def _go_offline(self, reason: str) -> None:
        if self._offline is None:
            self._offline = reason
            _logger.critical("%s: the log is offline, on a single broker until a restart: %s", self.folder.name, reason)
            if self.when_offline is not None:
                self.when_offline(reason)

    def _offline_error(self) -> StorageError:
        return StorageError(f"{self.folder.name} is offline: {self._offline}")

    def abandon(self) -> None:
        """Close the files without writing, as in a crash."""
        self._is_abandoned = True
        for segment in self._segments.all:
            segment.close()
