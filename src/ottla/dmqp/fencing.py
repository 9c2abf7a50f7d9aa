"""Fences the pushes of nodes that served a topic before.

A node's claim to a topic ends with its ZooKeeper session, and the session may end before the node notices. So the
pushes of a serving node carry a producer epoch that no other node uses. The next node takes the next epoch, and writes
an end marker with it to every shard before it reads their ends: from then on, every leader of the shard refuses pushes
with older epochs, since the epoch is in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from ottla.broker.coordinators.end_markers import MarkerDelivery
from ottla.core.errors import NotLeaderOrFollower
from ottla.core.ids import TopicPartition
from ottla.records.control import EndMarker

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ottla.broker.broker import Broker
    from ottla.cluster.exposed_shards import ExposedShards
    from ottla.cluster.node import JoinedCluster

LAST_EPOCH: Final = 0x7FFF
"""Only fences: no push carries it."""
_MISSING: Final = -1


class Producer(NamedTuple):
    """The producer id and epoch of a node's pushes."""

    id: int
    epoch: int


def successor(known: Producer | None, new_id: Callable[[], int]) -> Producer:
    """The producer of the next serving node."""
    if known is None or known.epoch + 1 >= LAST_EPOCH:
        return Producer(new_id(), 0)
    return Producer(known.id, known.epoch + 1)


class PushFence:
    """For one topic. `superseded` is called when another node has taken over."""

    def __init__(
        self, broker: Broker, cluster: JoinedCluster, shards: ExposedShards, topic: str, superseded: Callable[[], None]
    ) -> None:
        self._broker = broker
        self._cluster = cluster
        self._shards = shards
        self._topic = topic
        self._superseded = superseded
        self._known: Producer | None = None
        self._version = _MISSING

    async def take_over(self, shards: Collection[int]) -> Producer:
        """Fence every node that served these shards before. Raises ApiError if that is not certain."""
        node = await self._cluster.work(lambda: self._shards.producer(self._topic))
        self._known = None if node is None else msgspec.json.decode(node.data, type=Producer)
        self._version = _MISSING if node is None else node.version
        return await self._advance(shards)

    async def renew(self, shard: int) -> Producer:
        """Start another epoch in a shard, because the outcome of its last push is unknown. Raises ApiError if another
        node has taken over.
        """
        return await self._advance([shard])

    async def _advance(self, shards: Collection[int]) -> Producer:
        before = self._known
        after = successor(before, self._broker.producer_ids.next)
        data, version = msgspec.json.encode(after), self._version
        # On the version that this node knows: a node that has lost its claim must not fence its successor.
        if not await self._cluster.work(lambda: self._shards.put_producer(self._topic, data, version)):
            self._superseded()
            raise NotLeaderOrFollower(f"another node has taken over serving {self._topic} over DMQP")
        self._known, self._version = after, version + 1
        if before is not None and before.id != after.id:
            await self._mark(Producer(before.id, LAST_EPOCH), shards)
        await self._mark(after, shards)
        return after

    async def _mark(self, producer: Producer, shards: Collection[int]) -> None:
        places = {TopicPartition(self._topic, shard) for shard in shards}
        marker = EndMarker(is_commit=False, coordinator_epoch=0)
        await MarkerDelivery(self._broker).deliver(places, producer, marker)
