"""The share coordinator of a cluster: persists the delivery state of share partitions for their leaders.

A node is responsible for its partitions of `__share_group_state`. The leader of a share partition reads the state here
when it starts, and writes changes. A deposed leader is fenced by its leader epoch, and one that missed a reset of the
group by the state epoch. Requests are answered after replication.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.placement import CoordinatorPlacement
from ottla.broker.interfaces.in_process_requests import Refused
from ottla.broker.share.state_log import StateLog
from ottla.broker.topics import SHARE_GROUP_STATE
from ottla.core.errors import ApiError, ErrorCode, FencedLeaderEpoch, UnknownTopicOrPartition
from ottla.share.records import state_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.share.state_log import Kept
    from ottla.broker.share.writing import Place
    from ottla.cluster.state import Cluster
    from ottla.share.config import ShareConfig
    from ottla.share.fates import Change
    from ottla.share.formats import StateKey

_logger: Final = logging.getLogger(__name__)


class ShareCoordinator:
    def __init__(self, broker: Broker, cluster: Cluster, config: ShareConfig) -> None:
        self.log = StateLog(broker, config)
        self._broker = broker
        self._placement = CoordinatorPlacement(broker, cluster, SHARE_GROUP_STATE, self)

    def start(self) -> None:
        self._placement.start()

    def stop(self) -> None:
        self._placement.stop()

    async def load(self, partition: Partition) -> None:
        for _ in self.log.replayed(partition):
            await asyncio.sleep(0)
        # Records that only this node has may be lost with it.
        await self._all_safe(partition)

    def unload(self, index: int) -> None:
        self.log.unload(index)

    # Requests of leaders and group coordinators

    async def initialize(self, key: StateKey, state_epoch: int, start: int) -> None:
        """A group starts to read a partition, or with a higher epoch starts over; an existing state stays."""
        self._check(key)
        known = self.log.kept.get(key)
        if known is not None and known.state_epoch > state_epoch:
            raise Refused(ErrorCode.FENCED_STATE_EPOCH, f"the group was reset in state epoch {known.state_epoch}")
        if known is None or known.state_epoch < state_epoch:
            self.log.begin(key, start, state_epoch)
        await self._all_safe(self.log.partition_of(key))

    async def read(self, key: StateKey, leader_epoch: int) -> Kept:
        """Read the state for the leader of the partition in this epoch; fences leaders of earlier epochs."""
        kept = self._found(key)
        if leader_epoch < kept.leader_epoch:
            raise FencedLeaderEpoch(f"there is a leader with epoch {kept.leader_epoch}")
        if leader_epoch > kept.leader_epoch:
            self._write(key, kept, leader_epoch, kept.rules.start, ())
        await self._all_safe(self.log.partition_of(key))
        return self._found(key)

    async def write(self, key: StateKey, epochs: tuple[int, int], start: int, changes: Sequence[Change]) -> None:
        """Write changes; `epochs` are the state epoch and the leader epoch."""
        kept = self._found(key)
        state_epoch, leader_epoch = epochs
        if state_epoch != kept.state_epoch:
            raise Refused(ErrorCode.FENCED_STATE_EPOCH, f"the group was reset in state epoch {kept.state_epoch}")
        if leader_epoch < kept.leader_epoch:
            raise FencedLeaderEpoch(f"there is a leader with epoch {kept.leader_epoch}")
        place = self._write(key, kept, leader_epoch, start, changes)
        snapshot = self._snapshot_if_due(key)
        await (snapshot or place).safe()
        if snapshot is not None and key in self.log.kept:
            self.log.prune(place.partition)

    def _write(self, key: StateKey, kept: Kept, leader_epoch: int, start: int, changes: Sequence[Change]) -> Place:
        before, kept.leader_epoch = kept.leader_epoch, leader_epoch
        try:
            place = self.log.change(key, start, changes)
        except ApiError:
            kept.leader_epoch = before
            raise
        kept.rules.replay(start, changes)
        return place

    def _snapshot_if_due(self, key: StateKey) -> Place | None:
        try:
            return self.log.snapshot_if_due(key)
        except ApiError as refused:
            _logger.error("could not write a snapshot of %s: %s", state_name(key), refused)
            return None

    async def summary(self, key: StateKey) -> Kept:
        kept = self._found(key)
        await self._all_safe(self.log.partition_of(key))
        return kept

    async def delete(self, key: StateKey) -> None:
        self._check(key)
        self.log.forget([key])
        await self._all_safe(self.log.partition_of(key))

    def forget_topic(self, topic_id: bytes) -> None:
        self.log.forget([key for key in self.log.kept if key.topic_id == topic_id])

    def _check(self, key: StateKey) -> None:
        """Raises ApiError unless this node is the coordinator of the state."""
        self.log.partition_of(key)
        error = self._placement.error_for(state_name(key))
        if error is not ErrorCode.NONE:
            raise Refused(error, f"this broker is not the coordinator of {state_name(key)}")

    def _found(self, key: StateKey) -> Kept:
        self._check(key)
        kept = self.log.kept.get(key)
        if kept is None:
            raise UnknownTopicOrPartition(f"no state of {state_name(key)}")
        return kept

    async def _all_safe(self, partition: Partition) -> None:
        await partition.until_safe(partition.log.next_offset - 1)
