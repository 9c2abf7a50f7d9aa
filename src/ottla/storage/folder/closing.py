"""Closes logs cleanly, with the fsyncs of many logs in parallel."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ottla.core.errors import StorageError
from ottla.storage.files import storage_errors
from ottla.storage.flushing import Flush

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ottla.core.ids import TopicPartition
    from ottla.storage.partition_log import PartitionLog

    RunAll = Callable[[Callable[[Flush], None], Iterable[Flush]], Iterable[None]]

_logger: Final = logging.getLogger(__name__)


def close_logs(logs: list[tuple[TopicPartition, PartitionLog]], run_all: RunAll) -> list[TopicPartition]:
    """Close these logs; returns those that could not be closed."""
    failed: list[TopicPartition] = []

    @contextmanager
    def closing(at: TopicPartition) -> Iterator[None]:
        try:
            yield
        except StorageError as refused:
            failed.append(at)
            _logger.error("%s: could not close the log cleanly: %s", at, refused)

    flushes: list[tuple[TopicPartition, PartitionLog, Flush]] = []
    for at, log in logs:
        with closing(at):
            flushes.append((at, log, begin_close(log)))
    for _ in run_all(Flush.run, [flush for _, _, flush in flushes]):
        pass
    for at, log, flush in flushes:
        with closing(at):
            finish_close(log, flush)
    return failed


def close_log(log: PartitionLog) -> None:
    """Write everything that a clean start needs, sync it, and close the files."""
    flush = begin_close(log)
    flush.run()
    finish_close(log, flush)


def begin_close(log: PartitionLog) -> Flush:
    """Begin to close a log in steps: run the result in any thread, then pass it to `finish_close`."""
    try:
        with storage_errors(f"{log.folder.name}: closing"):
            return _write_out(log)
    except StorageError:
        log.abandon()
        raise


def finish_close(log: PartitionLog, flush: Flush) -> None:
    try:
        log.finish_flush(flush)
    finally:
        log.abandon()


def _write_out(log: PartitionLog) -> Flush:
    log.check_online()
    unsynced = log.unsynced
    if log.next_offset == 0:
        # No data is lost: missing files are created again.
        unsynced.has_new_files = False
        return Flush(0, [])
    if not unsynced.fits_one_flush:
        log.flush()
    new_snapshots = []
    try:
        log.segments.active.seal()
        if log.snapshot_at != log.next_offset:
            new_snapshots.append(log.snapshots.write(log.next_offset, log.producers))
            unsynced.has_new_files = True
        log.keep_needed_snapshots()
    except OSError:
        # Even without disk space for these files, appended records must become durable.
        log.flush()
        raise
    return unsynced.begin_flush(log.next_offset, new_snapshots)
