"""The groups or transactions that this cluster node coordinates: those whose internal topic partition it leads.

A node loads a partition when it becomes its leader, and answers requests about it only then. It unloads partitions that
another node leads.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ottla.broker.roles import NO_NODE
from ottla.core.errors import ApiError, CorruptMessage, ErrorCode, NotLeaderOrFollower
from ottla.wire.internal_records import partition_for

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.cluster.state import BrokerInfo, Cluster, ViewChange

_logger: Final = logging.getLogger(__name__)

_TRY_AGAIN_S: Final = 1.0
_MOST_BACKOFF_S: Final = 30.0
_MOST_DOUBLINGS: Final = 8


class _Failure(NamedTuple):
    attempts: int
    why: str


class Kept(Protocol):
    """The coordinator that keeps the state of the topic's partitions."""

    async def load(self, partition: Partition) -> None:
        """Load the state of a partition. May be cancelled; `unload` is called then."""

    def unload(self, index: int) -> None:
        """Unload the state of a partition."""


class CoordinatorPlacement:
    def __init__(self, broker: Broker, cluster: Cluster, topic: str, kept: Kept) -> None:
        self._broker = broker
        self._cluster = cluster
        self._topic = topic
        self._kept = kept
        self._loaded: dict[int, int] = {}
        """The leader epoch in which each partition was loaded."""
        self._loading: dict[int, asyncio.Task[None]] = {}
        self._failures: dict[int, _Failure] = {}
        """Failures of partitions that this node leads but could not load."""
        self._again: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._cluster.listen(self._changed)
        self._settle()

    def stop(self) -> None:
        for task in self._loading.values():
            task.cancel()
        if self._again is not None:
            self._again.cancel()

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def error_for(self, name: str) -> ErrorCode:
        """Why this node cannot coordinate the group or transactional id; NONE if it can."""
        state = self._broker.topics.by_name.get(self._topic)
        if state is None or self._cluster.is_fenced:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        index = partition_for(name, len(state.partitions))
        if index in self._loaded:
            return ErrorCode.NONE
        if index in self._failures:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if index in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        known = self._cluster.view.partition(state.entry.id, index)
        is_led = known is None or known.leader != NO_NODE
        return ErrorCode.NOT_COORDINATOR if is_led else ErrorCode.COORDINATOR_NOT_AVAILABLE

    def _changed(self, change: ViewChange) -> None:
        state = self._broker.topics.by_name.get(self._topic)
        if state is None or any(key.topic_id == state.entry.id for key in change.partitions):
            self._settle()

    def _settle(self) -> None:
        led = self._led()
        for index in [each for each in self._failures if each not in led]:
            del self._failures[index]
        for index in [each for each in (*self._loaded, *self._loading) if each not in led]:
            self._unload(index)
        for index, epoch in led.items():
            if self._loaded.get(index, -1) < epoch and index not in self._loading:
                self._unload(index)
                self._loading[index] = asyncio.get_running_loop().create_task(self._load(index, epoch))

    def _led(self) -> dict[int, int]:
        """The partitions that this node leads, with their leader epochs."""
        state = self._broker.topics.by_name.get(self._topic)
        if state is None:
            return {}
        known = (self._cluster.view.partition(state.entry.id, index) for index in range(len(state.partitions)))
        return {each.partition: each.leader_epoch for each in known if each and each.leader == self._cluster.node_id}

    async def _load(self, index: int, epoch: int) -> None:
        try:
            partition = self._broker.topics.partition(self._topic, index)
            await self._kept.load(partition)
            self._loaded[index] = epoch
            self._failures.pop(index, None)
        except ApiError as refused:
            self._kept.unload(index)
            self._failed(index, refused)
            return
        finally:
            if self._loading.get(index) is asyncio.current_task():
                del self._loading[index]
        # Meanwhile this node may lead it in a later epoch, or another node may lead it.
        self._settle()

    def _failed(self, index: int, refused: ApiError) -> None:
        partition = self._broker.topics.by_name[self._topic].partitions[index]
        if isinstance(refused, NotLeaderOrFollower):
            # The view at the start may still name this node as leader of partitions that it led before, although it
            # does not lead them yet.
            _logger.info("%s: not loaded yet: %s", partition.at, refused)
            self._try_again(_TRY_AGAIN_S)
            return
        known = self._failures.get(index)
        attempts = 1 if known is None else known.attempts + 1
        self._failures[index] = _Failure(attempts, str(refused))
        if known is None or known.why != str(refused):  # logged once, not with every attempt
            _logger.error(
                "%s: could not be loaded, its contents are not available: %s. If it is damaged and another replica is "
                "in sync, stop this broker, delete the folder %s and start it again; otherwise restore the folder from "
                "a backup or run: ottla log repair %s",
                *(partition.at, refused, partition.at, partition.at),
            )
        if isinstance(refused, CorruptMessage) and partition.is_open:
            # This replica leaves the ISR, so that another replica becomes leader if there is one.
            partition.log.take_offline(f"damaged: {refused}")
        self._try_again(min(_TRY_AGAIN_S * (1 << min(attempts, _MOST_DOUBLINGS)), _MOST_BACKOFF_S))

    def _try_again(self, after_s: float) -> None:
        if self._again is not None:
            self._again.cancel()
        self._again = asyncio.get_running_loop().call_later(after_s, self._settle)

    def _unload(self, index: int) -> None:
        loading = self._loading.pop(index, None)
        if loading is not None:
            loading.cancel()
        if self._loaded.pop(index, None) is not None or loading is not None:
            self._kept.unload(index)


def placed(broker: Broker, topic: str, kept: Kept) -> CoordinatorPlacement | None:
    """None for a standalone broker, which coordinates everything."""
    return None if broker.cluster is None else CoordinatorPlacement(broker, broker.cluster, topic, kept)


def coordinator_in(broker: Broker, cluster: Cluster, topic: str, name: str) -> BrokerInfo | None:
    """The leader of the internal topic's partition that has the state of `name`."""
    state = broker.topics.by_name.get(topic)
    if state is None:
        return None
    known = cluster.view.partition(state.entry.id, partition_for(name, len(state.partitions)))
    return None if known is None else cluster.view.brokers.get(known.leader)
