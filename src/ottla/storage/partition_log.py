"""The log of one partition: appends, from the start offset to the next offset, and removal.

It belongs to one thread. Slow steps (fsync, removing files) are returned to be
run elsewhere.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.core.errors import ApiError, CorruptMessage, OffsetOutOfRange, StorageError
from ottla.records.batch import check_batch, check_produced, place, read_header, set_log_append_time
from ottla.records.control import build_end_marker, read_end_marker
from ottla.storage import retention
from ottla.storage.admission import check_keys, check_size, check_timestamp
from ottla.storage.files import storage_errors, sync_folder
from ottla.storage.flushing import Flush, sync_all
from ottla.storage.folder.checkpoints import LEADER_EPOCHS, write_epochs
from ottla.storage.producers.replay import load_producers
from ottla.storage.producers.state import ProducerStates
from ottla.storage.rewrites.swap_files import discard_cleaned, swap_in
from ottla.storage.segment_files.segment import Segment
from ottla.storage.segment_files.segments import Segments
from ottla.storage.segmented_log import PASSING_ERRORS, SegmentedLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ottla.core.clock import Clock
    from ottla.records.batch import BatchHeader
    from ottla.records.control import EndMarker
    from ottla.storage.config import LogConfig
    from ottla.storage.recovery import LogParts
    from ottla.storage.rewrites.rewriting import Rewrite
    from ottla.storage.segment_files.open_files import OpenFiles
    from ottla.storage.segment_files.txn_index import AbortedTransaction

NO_TIMESTAMP: Final = -1


class Appended(msgspec.Struct, frozen=True, gc=False):
    """The offsets of an appended batch. A duplicate has the offsets of the original."""

    base_offset: int
    last_offset: int
    log_append_time: int
    is_duplicate: bool


class PartitionLog(SegmentedLog):
    def __init__(self, folder: Path, config: LogConfig, clock: Clock, files: OpenFiles, parts: LogParts) -> None:
        super().__init__(folder, config, clock, files, parts)
        self.producers = parts.producers
        self.epochs = parts.epochs
        self._snapshots = parts.snapshots
        self._as_left_at = parts.next_offset if parts.is_as_left else None
        self.before_truncation: Callable[[int], None] | None = None
        """Called with the offset that the log will be truncated to, so that no checkpoint is beyond it."""

    @property
    def last_stable_offset(self) -> int:
        """The last stable offset."""
        unstable = self.producers.first_unstable_offset
        return self.next_offset if unstable is None else max(unstable, self.start_offset)

    # Appending

    def append(
        self,
        batch: bytearray | memoryview,
        leader_epoch: int = 0,
        *,
        has_keys: bool = False,
        is_checked: bool = False,
    ) -> Appended:
        """Validate a producer's batch, assign its offsets, and write it. The log takes ownership of the buffer.

        `has_keys`: skip the check for records without a key, which a compacted log rejects. `is_checked`: the batch was
        valid before records were removed from it.
        """
        # Before duplicates are recognised: the original may not have been synced.
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
            self._begin_epoch(leader_epoch, self.next_offset)
        last_offset = base_offset + header.last_offset_delta
        self.write(batch, last_offset, header.max_timestamp)
        if header.producer_id >= 0:
            self.producers.appended(header, base_offset)
        # Published last: a reader of the new end may read everything below it.
        self.next_offset = last_offset + 1
        return Appended(base_offset, last_offset, log_append_time, False)  # noqa: FBT003

    def append_of_coordinator(self, batch: bytearray, leader_epoch: int = 0) -> Appended:
        """Write a coordinator's batch within a producer's transaction: it has no sequence numbers."""
        if self._offline is not None:
            raise self._offline_error()
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
        if self._offline is not None:
            raise self._offline_error()
        self.producers.check_end(producer_id, producer_epoch, marker)
        batch = build_end_marker(marker, producer_id, producer_epoch, self._clock.now_ms())
        header = read_header(batch)
        offset = self._put(batch, header, leader_epoch)
        aborted = self.producers.ended(header, offset, marker)
        if aborted is not None:
            self._note_aborted(aborted)
        self.next_offset = offset + 1
        return Appended(offset, offset, NO_TIMESTAMP, is_duplicate=False)

    def _put(self, batch: bytearray, header: BatchHeader, leader_epoch: int) -> int:
        """Write it at the end, which does not advance yet; returns its base offset."""
        base_offset = self.next_offset
        place(batch, 0, base_offset, leader_epoch)
        if leader_epoch > self.epochs.latest:
            self._begin_epoch(leader_epoch, base_offset)
        self.write(batch, base_offset + header.last_offset_delta, header.max_timestamp)
        return base_offset

    def append_as_follower(self, batch: memoryview) -> BatchHeader:
        """Write a batch of the leader, with its offsets and leader epoch. There may be a gap before it."""
        if self._offline is not None:
            raise self._offline_error()
        header = check_batch(batch)
        if header.base_offset < self.next_offset:
            raise CorruptMessage(f"batch at offset {header.base_offset}, expected {self.next_offset} or higher")
        marker = read_end_marker(batch) if header.is_control else None
        if header.leader_epoch > self.epochs.latest:
            self._begin_epoch(header.leader_epoch, header.base_offset)
        self.write(batch, header.last_offset, header.max_timestamp)
        if marker is not None:
            aborted = self.producers.ended(header, header.base_offset, marker)
            if aborted is not None:
                self._note_aborted(aborted)
        elif header.producer_id >= 0 and not header.is_control:
            self.producers.appended(header, header.base_offset)
        self.next_offset = header.next_offset
        return header

    def _note_aborted(self, aborted: AbortedTransaction) -> None:
        self._unsynced.has_new_files = True
        try:
            self._segments.active.txn_index.append(aborted)
        except OSError as refused:
            # The marker is in the log, so the index entry must follow, or readers would see its records as committed.
            self._go_offline(f"could not write the transaction index: {refused.strerror or refused}")
            raise self._offline_error() from refused

    def _begin_epoch(self, epoch: int, offset: int) -> None:
        with storage_errors(f"{self.folder.name}: leader epoch {epoch}"):
            known = list(self.epochs.entries)
            self.epochs.begin(epoch, offset)
            try:
                write_epochs(self.folder / LEADER_EPOCHS, self.epochs.entries)
            except OSError:
                self.epochs.entries = known
                raise

    def roll(self) -> bool:
        if not super().roll():
            return False
        self._as_left_at = None
        # It only saves time after a crash.
        with suppress(OSError):
            self._snapshots.write(self.next_offset, self.producers)
        return True

    # Removing

    def truncate_to(self, offset: int) -> None:
        """Truncate to `offset`; a batch is removed as a whole."""
        if offset >= self.next_offset:
            return
        if self._offline is not None:
            raise self._offline_error()
        number = self._segments.number_of(offset)
        last = self._segments.all[number]
        with storage_errors(f"{self.folder.name}: truncating to {offset}"):
            cut = next(last.headers(offset), None)
        if self.before_truncation is not None:
            self.before_truncation(cut[1].base_offset if cut else last.base_offset)
        try:
            self._truncate(offset, number + 1, last.size if cut is None else cut[0])
        except (OSError, ApiError) as failed:
            self._go_offline(f"could not truncate the log: {failed}")
            raise self._offline_error() from failed

    def _truncate(self, offset: int, keep: int, position: int) -> None:
        self._as_left_at = None
        # From the end, so that a crash leaves no gap.
        for segment in reversed(self._segments.all[keep:]):
            segment.unlink()
        self._segments.active.close()
        self._segments.keep_first(keep)
        active = self._segments.active
        active.truncate(position, offset)
        self.next_offset = active.open_for_append(offset)
        self._first_timestamp = active.first_timestamp
        self._snapshots.keep_only([at for at in self._snapshots.offsets() if at <= self.next_offset])
        # New records will replace the truncated ones: a power failure must not bring those back, or a mixture.
        sync_all(active.fsync_targets())
        sync_folder(self.folder)
        self._unsynced.truncated(self._segments.all, self.next_offset)
        self.start_offset = min(self.start_offset, self.next_offset)
        if self.epochs.drop_from(self.next_offset):
            write_epochs(self.folder / LEADER_EPOCHS, self.epochs.entries, is_durable=True)
        _, self.producers = load_producers(self._segments.all, self._snapshots, self.next_offset, self.next_offset)

    def restart_at(self, offset: int) -> None:
        """Delete everything and start at `offset`: the leader has no common records."""
        if self._offline is not None:
            raise self._offline_error()
        if self.before_truncation is not None:
            self.before_truncation(0)
        try:
            self._as_left_at = None
            for segment in reversed(self._segments.all):
                segment.unlink()
            self._snapshots.keep_only(())
            self.epochs.entries.clear()
            write_epochs(self.folder / LEADER_EPOCHS, (), is_durable=True)
            begun = Segment.create(self.folder, offset, self.config, self._files, self.cipher)
            sync_folder(self.folder)
        except OSError as failed:
            self._go_offline(f"could not reset the log: {failed}")
            raise self._offline_error() from failed
        self._segments = Segments([begun])
        self.producers = ProducerStates()
        self.next_offset = self.start_offset = offset
        self._unsynced.restarted(begun, offset)
        self._first_timestamp = begun.first_timestamp

    def raise_start(self, offset: int) -> None:
        """Raise the log start offset: records below are no longer served.

        It survives a crash once the record at `offset` is synced and `DataDir.checkpoint` has been called.
        """
        if not self.start_offset <= offset <= self.next_offset:
            raise OffsetOutOfRange(f"offset {offset} is out of range {self.start_offset}..{self.next_offset}")
        self.start_offset = offset
        if self.epochs.drop_before(offset):
            # Old lines in the file are harmless, and on a full disk this frees space.
            with suppress(OSError):
                write_epochs(self.folder / LEADER_EPOCHS, self.epochs.entries)

    def put_in_place(self, rewrite: Rewrite) -> bool:
        """Replace the old segments by rewritten ones; returns whether they were unchanged meanwhile."""
        base_offset = rewrite.base_offset
        if rewrite.error or self._offline or self._is_abandoned or not rewrite.is_of(self._segments.all[:-1]):
            with storage_errors(self.folder.name):
                discard_cleaned(self.folder, base_offset)
            return False
        try:
            for old in rewrite.segments:
                old.close()
            swap_in(self.folder, base_offset, [old.base_offset for old in rewrite.segments])
            new = Segment.open(self.folder, base_offset, self.config, self._files, self.cipher)
        except OSError as failed:
            self._go_offline(f"could not replace a segment: {failed.strerror or failed}")
            raise self._offline_error() from failed
        self._segments.replace(rewrite.segments, new)
        self._unsynced.keep_only(self._segments.all)
        self._snapshots.keep_only({*self._segments.bases, self.next_offset})
        return True

    def delete_expired(self, now_ms: int, committed: int | None = None) -> list[Path]:
        """Delete segments by retention; the caller removes their renamed files later.

        Never segments with records from `committed` on, which other replicas may not have yet.
        """
        if self._offline is not None:
            return []
        with storage_errors(f"{self.folder.name}: deleting old segments"):
            segments = self._segments
            doomed = retention.expired(segments.all, self.config, now_ms, self.start_offset)
            if committed is not None:
                doomed = min(doomed, segments.number_of(committed))
            if doomed == 0:
                return []
            if doomed == len(segments.all):
                doomed -= not self._can_roll()
            removed = [path for segment in segments.all[:doomed] for path in segment.rename_deleted()]
            segments.drop_first(doomed)
            self._unsynced.keep_only(segments.all)
            self.raise_start(max(self.start_offset, segments.bases[0]))
            self._snapshots.keep_only({*segments.bases, self.next_offset})
            sync_folder(self.folder)
        return removed

    def _can_roll(self) -> bool:
        try:
            self.roll()
        except OSError as refused:
            if refused.errno not in PASSING_ERRORS:
                raise
            return False
        return True

    def expire_producers(self, now_ms: int) -> None:
        self.producers.expire(now_ms, self.config.producer_id_expiration_ms)

    # Closing

    def close(self) -> None:
        """Write everything a clean start needs, sync it, and close the files."""
        flush = self.begin_close()
        flush.run()
        self.finish_close(flush)

    def begin_close(self) -> Flush:
        """The same in steps: run the result in any thread, and pass it to `finish_close`."""
        try:
            with storage_errors(f"{self.folder.name}: closing"):
                return self._write_out()
        except StorageError:
            self.abandon()
            raise

    def finish_close(self, flush: Flush) -> None:
        try:
            self.finish_flush(flush)
        finally:
            self.abandon()

    def _write_out(self) -> Flush:
        if self._offline is not None:
            raise self._offline_error()
        if self.next_offset == 0:
            # There is nothing to lose: missing files are created again.
            self._unsynced.has_new_files = False
            return Flush(0, [])
        if not self._unsynced.fits_one_flush:
            self.flush()
        new_snapshots = []
        try:
            self._segments.active.seal()
            if self._as_left_at != self.next_offset:
                new_snapshots.append(self._snapshots.write(self.next_offset, self.producers))
                self._unsynced.has_new_files = True
            self._snapshots.keep_only({*self._segments.bases, self.next_offset})
        except OSError:
            # Even without space for them, appended records must become durable.
            self.flush()
            raise
        return self._unsynced.begin_flush(self.next_offset, new_snapshots)
