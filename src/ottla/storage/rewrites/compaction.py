"""Log compaction: only the last record of each key is kept, at its offset.

As in Kafka: the keys appended since the last compaction are collected, and everything up to there is rewritten
without superseded records. Tombstones are kept for `delete.retention.ms` after they were first seen, then
removed. Aborted transactions are removed, and markers without remaining records. Unlike in Kafka, tombstones and
markers are kept while a replica is not in sync.
"""

from __future__ import annotations

from itertools import pairwise
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import ApiError, StorageError
from ottla.records.compaction import TombstoneRule, compacted, delete_horizon, emptied, note_batch, with_horizon
from ottla.records.key_offsets import KeyOffsets
from ottla.storage.rewrites.rewriting import Rewrite, walk_batches
from ottla.storage.segment_files.open_files import OpenFiles
from ottla.storage.segment_files.segments import reaching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.records.batch import BatchHeader
    from ottla.storage.cipher import BatchCipher
    from ottla.storage.partition_log import PartitionLog
    from ottla.storage.segment_files.scan import FoundBatch
    from ottla.storage.segment_files.segment import Segment
    from ottla.storage.segment_files.txn_index import AbortedTransaction

_FILES_NEEDED: Final = 8
_MOST_RELATIVE_OFFSET: Final = (1 << 31) - 1
_WORK_S: Final = 200e-6
_REST_S: Final = 50e-6
_LONGEST_SLEEP_S: Final = 0.05


class CompactionRule(NamedTuple):
    """The compaction settings of a topic."""

    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int
    delete_retention_ms: int


class Budget(NamedTuple):
    """Resource limits of compaction."""

    memory_bytes: int
    bytes_per_s: float = float("inf")


class Dirty(NamedTuple):
    """The dirty part of a log: the offsets from `first` to below `until`."""

    first: int
    until: int
    ratio: float
    """The dirty ratio."""
    is_overdue: bool

    def is_due(self, rule: CompactionRule) -> bool:
        return self.first < self.until and (self.ratio >= rule.min_dirty_ratio or self.is_overdue)


def find_dirty(log: PartitionLog, compacted_until: int, stable_until: int, rule: CompactionRule, now_ms: int) -> Dirty:
    """The dirty part, without the active segment, records that are too young, and records that may be aborted or
    truncated.
    """
    segments = log.segments
    first = (
        compacted_until if segments[0].base_offset <= compacted_until <= log.next_offset else segments[0].base_offset
    )
    until = first
    clean_bytes = dirty_bytes = 0
    is_overdue = False
    for segment, following in pairwise(segments):
        is_young = rule.min_lag_ms > 0 and segment.newest_timestamp > now_ms - rule.min_lag_ms
        if is_young or following.base_offset > stable_until:
            break
        if following.base_offset <= first:
            clean_bytes += segment.size
            continue
        dirty_bytes += segment.size
        until = following.base_offset
        is_overdue = is_overdue or 0 <= segment.first_timestamp < now_ms - rule.max_lag_ms
    return Dirty(first, until, dirty_bytes / max(clean_bytes + dirty_bytes, 1), is_overdue)


class _Last(NamedTuple):
    """Producer state that a log must keep."""

    epoch: int
    data_offset: int | None


class Compaction:
    """One compaction pass. The log's owner starts it and installs the results; the slow parts run in any thread."""

    def __init__(self, log: PartitionLog, dirty: Dirty, tombstones: TombstoneRule, budget: Budget) -> None:
        self.until = dirty.until
        """The offset below which records are compacted when the pass is complete."""
        self.error: OSError | ApiError | None = None
        self.may_remove_tombstones = tombstones.may_remove
        self._segments = [segment for segment in log.segments[:-1] if segment.base_offset < dirty.until]
        self._segment_bytes = log.config.segment_bytes
        self._cipher = log.cipher
        self._first_dirty = dirty.first
        self._keys = KeyOffsets(budget.memory_bytes)
        self._pace = CompactionThrottle(budget.bytes_per_s)
        aborted = log.aborted_transactions(self._segments[0].base_offset, dirty.until)
        lasts = {
            producer_id: _Last(producer.epoch, producer.batches[-1].last_offset if producer.batches else None)
            for producer_id, producer in log.producers.producers.items()
        }
        self._batch_filter = BatchFilter(self._keys, tombstones, aborted, lasts)

    def note_keys(self) -> None:
        """Read the dirty part, as far as there is memory for its keys. Never raises; failures are stored in `error`."""
        files = OpenFiles(_FILES_NEEDED)
        dirty = reaching(self._segments, self._first_dirty)
        noted_until = self._first_dirty
        try:
            for batch in walk_batches(dirty, [segment.size for segment in dirty], files):
                header = batch.header
                self._pace.after(header.size)
                if header.last_offset < self._first_dirty or not self._batch_filter.counts(header):
                    continue
                if not note_batch(self._keys, batch.data, header):
                    self.until = noted_until
                    break
                noted_until = header.last_offset + 1
            if self.until <= self._first_dirty:
                raise StorageError("broker.compaction_memory_bytes is too small for the keys of a single batch")
        except (OSError, ApiError) as failed:
            self.error = failed
        finally:
            files.close()

    def give_up(self) -> None:
        """Make the compaction abort soon, with an error."""
        self._pace.is_given_up = True

    def rewrites(self) -> Iterator[Rewrite]:
        """The steps to run and install, in order."""
        group: list[Segment] = []
        for segment in self._segments:
            if segment.base_offset >= self.until:
                break
            is_too_far = group and segment.base_offset - group[0].base_offset > _MOST_RELATIVE_OFFSET // 2
            if group and (sum(one.size for one in group) + segment.size > self._segment_bytes or is_too_far):
                yield CompactedRewrite(group, self._cipher, self._batch_filter, self._pace)
                group = []
            group.append(segment)
        if group:
            yield CompactedRewrite(group, self._cipher, self._batch_filter, self._pace)


class CompactedRewrite(Rewrite):
    def __init__(
        self, segments: list[Segment], cipher: BatchCipher | None, batch_filter: BatchFilter, pace: CompactionThrottle
    ) -> None:
        super().__init__(segments, cipher)
        self._batch_filter = batch_filter
        self._pace = pace

    def _kept(self, batch: FoundBatch) -> bytes | bytearray | memoryview | None:
        self._pace.after(batch.header.size)
        kept = self._batch_filter.sift(batch)
        self.removed_until = self._batch_filter.removed_until
        return kept

    def _keeps_noting(self, aborted: AbortedTransaction) -> bool:
        return aborted.last_offset in self._batch_filter.kept_markers


class BatchFilter:
    """Filters batches: returns the remaining part of each, in order."""

    def __init__(
        self,
        keys: KeyOffsets,
        tombstones: TombstoneRule,
        aborted: list[AbortedTransaction],
        lasts: dict[int, _Last],
    ) -> None:
        self.kept_markers: set[int] = set()
        self.removed_until = 0
        """The offset after the last batch from which tombstones, or a marker, were removed."""
        self._keys = keys
        self._tombstones = tombstones
        self._lasts = lasts
        self._aborted: dict[int, list[AbortedTransaction]] = {}
        for one in aborted:
            self._aborted.setdefault(one.producer_id, []).append(one)
        # Producers with remaining records of an open transaction.
        self._has_left: set[int] = set()

    def counts(self, header: BatchHeader) -> bool:
        """Whether the batch has records that supersede earlier ones."""
        return not header.is_control and not self._is_aborted(header)

    def sift(self, batch: FoundBatch) -> bytes | bytearray | memoryview | None:
        """The remaining part of this batch; None if nothing remains."""
        header = batch.header
        if header.is_control:
            return self._marker(batch)
        is_aborted = self._is_aborted(header)
        if self._tombstones.is_over(delete_horizon(header)):
            self.removed_until = header.last_offset + 1
        kept = None if is_aborted else compacted(batch.data, header, self._keys, self._tombstones)
        if kept is None:
            last = self._lasts.get(header.producer_id)
            is_last = last is not None and last.data_offset == header.last_offset
            return emptied(batch.data) if is_last else None
        if header.is_transactional:
            self._has_left.add(header.producer_id)
        return kept

    def _is_aborted(self, header: BatchHeader) -> bool:
        return header.is_transactional and any(
            one.first_offset <= header.base_offset <= one.last_offset
            for one in self._aborted.get(header.producer_id, ())
        )

    def _marker(self, batch: FoundBatch) -> bytes | bytearray | memoryview | None:
        header = batch.header
        is_needed = header.producer_id in self._has_left
        self._has_left.discard(header.producer_id)
        last = self._lasts.get(header.producer_id)
        is_last = last is not None and last.data_offset is None and last.epoch == header.producer_epoch
        horizon = delete_horizon(header)
        if not is_needed and not is_last and self._tombstones.is_over(horizon):
            self.removed_until = header.last_offset + 1
            return None
        self.kept_markers.add(header.base_offset)
        return batch.data if is_needed or horizon is not None else with_horizon(batch.data, header, self._tombstones)


class CompactionThrottle:
    """Throttles compaction: respects the rate limit, and sleeps to release the GIL.

    When this thread sleeps, a waiting thread gets the GIL at once, and otherwise after five milliseconds.
    """

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._rested_at = self._began_at = perf_counter()
        self._bytes = 0
        self.is_given_up = False

    def after(self, size: int) -> None:
        """Record progress, and sleep if necessary."""
        self._bytes += size
        now = perf_counter()
        if now - self._rested_at < _WORK_S and not self.is_given_up:
            return
        go_on_at = max(self._began_at + self._bytes / self._bytes_per_s, now + _REST_S)
        while not self.is_given_up and (left_s := go_on_at - perf_counter()) > 0:
            sleep(min(left_s, _LONGEST_SLEEP_S))
        if self.is_given_up:
            raise StorageError("compaction was aborted")
        self._rested_at = perf_counter()
