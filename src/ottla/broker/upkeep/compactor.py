"""Background compaction: one log at a time, the dirtiest first."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ApiError
from ottla.records.compaction import TombstoneRule
from ottla.storage.files import storage_errors
from ottla.storage.rewrites.compaction import Budget, Compaction, CompactionRule, find_dirty
from ottla.storage.rewrites.rewriting import discard, put_in_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.topics import TopicState
    from ottla.storage.rewrites.compaction import Dirty

_logger: Final = logging.getLogger(__name__)


class Compactor:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        config = broker.config
        limit = config.compaction_max_bytes_per_s
        self._budget = Budget(config.compaction_memory_bytes, float("inf") if limit < 0 else limit)
        # Partitions whose compaction failed and would fail again.
        self._given_up: set[Partition] = set()
        self.passes = 0

    async def check(self) -> None:
        """Compact all logs that are due."""
        while await self._compact_most_dirty():
            pass

    async def _compact_most_dirty(self) -> bool:
        """Compact the dirtiest log. Returns whether a log was due."""
        async with self._broker.rewriting:
            due = max(self._due(), key=lambda found: found[2].ratio, default=None)
            if due is None:
                return False
            topic, partition, dirty = due
            try:
                await self._compact(topic, partition, dirty)
            except ApiError as failed:
                # Files of a topic that was deleted meanwhile may be missing.
                if self._is_there(topic):
                    self._given_up.add(partition)
                    _logger.error("%s: compaction failed; disabled until the next start: %s", partition.at, failed)
            return True

    def _is_there(self, topic: TopicState) -> bool:
        return self._broker.topics.by_name.get(topic.name) is topic

    def _due(self) -> Iterator[tuple[TopicState, Partition, Dirty]]:
        now_ms = self._broker.clock.now_ms()
        for topic in self._broker.topics.by_name.values():
            if topic.config.log.cleanup_policy == "delete":
                continue
            rule = _rule(topic)
            for partition in topic.partitions:
                if partition.is_here and partition not in self._given_up and not partition.log.is_offline:
                    compacted_until = self._broker.data_dir.checkpoints.compacted_until(partition.at)
                    dirty = find_dirty(partition.log, compacted_until, partition.last_stable_offset, rule, now_ms)
                    if dirty.is_due(rule):
                        yield topic, partition, dirty

    async def _compact(self, topic: TopicState, partition: Partition, dirty: Dirty) -> None:
        may_remove = partition.is_in_sync_everywhere
        tombstones = TombstoneRule(self._broker.clock.now_ms(), topic.config.delete_retention_ms, may_remove)
        compaction = Compaction(partition.log, dirty, tombstones, self._budget)
        try:
            await self._run(topic, partition, compaction)
        except asyncio.CancelledError:
            compaction.give_up()
            raise

    async def _run(self, topic: TopicState, partition: Partition, compaction: Compaction) -> None:
        loop, log = asyncio.get_running_loop(), partition.log
        await loop.run_in_executor(None, compaction.note_keys)
        with storage_errors(log.folder.name):
            if compaction.error is not None:
                raise compaction.error
            for rewrite in compaction.rewrites():
                await loop.run_in_executor(None, rewrite.run)
                if not self._is_there(topic) or log.is_abandoned:
                    return
                if rewrite.removed_until and rewrite.error is None:
                    await loop.run_in_executor(None, log.removed_tombstones.raise_to, rewrite.removed_until)
                if compaction.may_remove_tombstones and not partition.is_in_sync_everywhere:
                    # A replica may copy this log meanwhile, and have records without their tombstones.
                    discard(log, rewrite)
                    return
                if not put_in_place(log, rewrite):
                    if rewrite.error is not None:
                        raise rewrite.error
                    # Retention or a truncation interfered: retried later.
                    return
            self.passes += 1
            self._broker.data_dir.checkpoints.note_compacted(partition.at, compaction.until)


def _rule(topic: TopicState) -> CompactionRule:
    config = topic.config
    return CompactionRule(
        config.min_cleanable_dirty_ratio,
        config.min_compaction_lag_ms,
        config.max_compaction_lag_ms,
        config.delete_retention_ms,
    )
