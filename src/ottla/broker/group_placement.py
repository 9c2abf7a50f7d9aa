"""Which groups this node of a cluster keeps: those whose partition of __consumer_offsets it leads.

What it comes to lead it reads before it answers for it; what another leads it forgets.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.topics import CONSUMER_OFFSETS
from ottla.core.errors import ApiError, ErrorCode
from ottla.groups.records import partition_for

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.cluster.state import Cluster, ViewChange

_logger: Final = logging.getLogger(__name__)

_TRY_AGAIN_S: Final = 1.0


class GroupPlacement:
    def __init__(self, broker: Broker, cluster: Cluster) -> None:
        self._broker = broker
        self._cluster = cluster
        self._loaded: dict[int, int] = {}
        """The leader epoch in which a partition was read."""
        self._loading: dict[int, asyncio.Task[None]] = {}
        self._again: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._cluster.listen(self._changed)
        self._settle()

    def stop(self) -> None:
        for task in self._loading.values():
            task.cancel()
        if self._again is not None:
            self._again.cancel()

    def error_for(self, group_id: str) -> ErrorCode:
        """Why this node cannot answer for the group; NONE if it can."""
        state = self._broker.topics.by_name.get(CONSUMER_OFFSETS)
        if state is None or self._cluster.is_fenced:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        index = partition_for(group_id, len(state.partitions))
        if index in self._loaded:
            return ErrorCode.NONE
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if index in self._loading else ErrorCode.NOT_COORDINATOR

    def _changed(self, change: ViewChange) -> None:
        state = self._broker.topics.by_name.get(CONSUMER_OFFSETS)
        if state is None or any(key.topic_id == state.entry.id for key in change.partitions):
            self._settle()

    def _settle(self) -> None:
        led = self._led()
        for index in [each for each in (*self._loaded, *self._loading) if each not in led]:
            self._unload(index)
        for index, epoch in led.items():
            if self._loaded.get(index, -1) < epoch and index not in self._loading:
                self._unload(index)
                self._loading[index] = asyncio.get_running_loop().create_task(self._load(index, epoch))

    def _led(self) -> dict[int, int]:
        """The partitions that this node leads, and in which epoch."""
        state = self._broker.topics.by_name.get(CONSUMER_OFFSETS)
        if state is None:
            return {}
        known = (self._cluster.view.partition(state.entry.id, index) for index in range(len(state.partitions)))
        return {each.partition: each.leader_epoch for each in known if each and each.leader == self._cluster.node_id}

    async def _load(self, index: int, epoch: int) -> None:
        try:
            partition = self._broker.topics.partition(CONSUMER_OFFSETS, index)
            await self._broker.groups.load(partition)
            self._loaded[index] = epoch
        except ApiError as refused:
            _logger.error("the groups of %s-%d cannot be read: %s", CONSUMER_OFFSETS, index, refused)
            self._again = asyncio.get_running_loop().call_later(_TRY_AGAIN_S, self._settle)
            return
        finally:
            del self._loading[index]
        # It may have been led in a later epoch meanwhile, or by another.
        self._settle()

    def _unload(self, index: int) -> None:
        if (loading := self._loading.get(index)) is not None:
            loading.cancel()
        if self._loaded.pop(index, None) is not None or loading is not None:
            self._broker.groups.unload(index)
