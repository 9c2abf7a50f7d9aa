"""Which segments have expired (pure rules), and deleting them.

`now_ms` should come from a clock that does not jump: a wall clock set a year ahead by mistake must not delete
recent data (`ottla.core.clock.SteadyClock`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.storage.files import PASSING_ERRORS, storage_errors, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ottla.storage.config import LogConfig
    from ottla.storage.partition_log import PartitionLog
    from ottla.storage.segment_files.segment import Segment


def delete_expired(log: PartitionLog, now_ms: int, committed: int | None = None) -> list[Path]:
    """Delete expired segments; the caller removes their renamed files later.

    Segments with records at or above `committed`, which other replicas may not have yet, are kept.
    """
    if log.is_offline:
        return []
    with storage_errors(f"{log.folder.name}: deleting old segments"):
        segments = log.segments
        doomed = expired(segments.all, log.config, now_ms, log.start_offset)
        if committed is not None:
            doomed = min(doomed, segments.number_of(committed))
        if doomed == 0:
            return []
        if doomed == len(segments):
            doomed -= not _can_roll(log)
        removed = [path for segment in segments[:doomed] for path in segment.rename_deleted()]
        segments.drop_first(doomed)
        log.unsynced.keep_only(segments.all)
        log.raise_start(max(log.start_offset, segments.bases[0]))
        log.keep_needed_snapshots()
        sync_folder(log.folder)
    return removed


def _can_roll(log: PartitionLog) -> bool:
    try:
        log.roll()
    except OSError as refused:
        if refused.errno not in PASSING_ERRORS:
            raise
        return False
    return True


def expired(segments: Sequence[Segment], config: LogConfig, now_ms: int, start_offset: int) -> int:
    """The number of oldest segments to delete; all of them only if the last has records."""
    doomed = _below_start(segments, start_offset)
    if "delete" in config.cleanup_policy:
        doomed = max(doomed, _too_old(segments, config, now_ms), _too_much(segments, config))
    return doomed


def _below_start(segments: Sequence[Segment], start_offset: int) -> int:
    count = 0
    while count + 1 < len(segments) and segments[count + 1].base_offset <= start_offset:
        count += 1
    return count


def _too_old(segments: Sequence[Segment], config: LogConfig, now_ms: int) -> int:
    if config.retention_ms < 0:
        return 0
    return _count_while(segments, lambda segment: now_ms - _last_used_ms(segment) > config.retention_ms)


def _last_used_ms(segment: Segment) -> int:
    """The largest timestamp, or the modification time without timestamps."""
    newest = segment.newest_timestamp
    return newest if newest >= 0 else segment.path.stat().st_mtime_ns // 1_000_000


def _too_much(segments: Sequence[Segment], config: LogConfig) -> int:
    if config.retention_bytes < 0:
        return 0
    surplus = sum(segment.size for segment in segments) - config.retention_bytes

    def is_surplus(segment: Segment) -> bool:
        nonlocal surplus
        surplus -= segment.size
        return surplus >= 0

    return _count_while(segments, is_surplus)


def _count_while(segments: Sequence[Segment], is_doomed: Callable[[Segment], bool]) -> int:
    count = 0
    # The last segment only if it has records; an empty one before it was left by compaction.
    end = len(segments) if segments[-1].size > 0 else len(segments) - 1
    while count < end and is_doomed(segments[count]):
        count += 1
    return count
