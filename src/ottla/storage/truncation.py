"""Removes the end of a log: a follower that diverges from its leader truncates to the last common record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import ApiError
from ottla.storage.files import storage_errors, sync_folder
from ottla.storage.flushing import sync_all
from ottla.storage.folder.checkpoints import LEADER_EPOCHS, write_epochs
from ottla.storage.producers.replay import load_producers
from ottla.storage.producers.state import ProducerStates
from ottla.storage.segment_files.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.partition_log import PartitionLog


def truncate_to(log: PartitionLog, offset: int) -> None:
    """Truncate to `offset`; a batch is removed as a whole."""
    if offset >= log.next_offset:
        return
    log.check_online()
    number = log.segments.number_of(offset)
    last = log.segments[number]
    with storage_errors(f"{log.folder.name}: truncating to {offset}"):
        cut = next(last.headers(offset), None)
    if log.before_truncation is not None:
        log.before_truncation(cut[1].base_offset if cut else last.base_offset)
    try:
        _truncate(log, offset, number + 1, last.size if cut is None else cut[0])
    except (OSError, ApiError) as failed:
        raise log.go_offline(f"could not truncate the log: {failed}") from failed


def _truncate(log: PartitionLog, offset: int, keep: int, position: int) -> None:
    log.snapshot_at = None
    end = log.segments.truncate(offset, keep, position)
    log.next_offset = end
    log.snapshots.keep_only([at for at in log.snapshots.offsets() if at <= end])
    # New records will replace the truncated ones: a power failure must not bring back the old ones, or a mixture.
    sync_all(log.segments.active.fsync_targets())
    sync_folder(log.folder)
    log.unsynced.truncated(log.segments.all, end)
    log.start_offset = min(log.start_offset, end)
    if log.epochs.drop_from(end):
        write_epochs(log.folder / LEADER_EPOCHS, log.epochs.entries, is_durable=True)
    _, log.producers = load_producers(log.segments.all, log.snapshots, end, end)


def restart_at(log: PartitionLog, offset: int) -> None:
    """Delete everything and start at `offset`: the logs of the leader and this follower have no record in common."""
    log.check_online()
    if log.before_truncation is not None:
        log.before_truncation(0)
    try:
        log.snapshot_at = None
        for segment in reversed(log.segments):
            segment.unlink()
        log.snapshots.keep_only(())
        log.epochs.entries.clear()
        write_epochs(log.folder / LEADER_EPOCHS, (), is_durable=True)
        begun = Segment.create(log.folder, offset, log.config, log.files, log.cipher)
        sync_folder(log.folder)
    except OSError as failed:
        raise log.go_offline(f"could not reset the log: {failed}") from failed
    log.segments.restart(begun)
    log.producers = ProducerStates()
    log.next_offset = log.start_offset = offset
    log.unsynced.restarted(begun, offset)
