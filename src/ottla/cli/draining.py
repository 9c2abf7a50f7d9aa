"""Where a node's partitions go when it is to hold none. Pure rules."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.view import BrokerAddress, PartitionView
    from ottla.core.ids import TopicPartition


def plan(
    partitions: Mapping[TopicPartition, PartitionView], brokers: Mapping[int, BrokerAddress], node: int
) -> dict[TopicPartition, tuple[int, ...]]:
    """The new replicas of all that the node holds: in its place whoever has least, on another rack if possible."""
    held = Counter({each: 0 for each in brokers if each != node})
    for partition in partitions.values():
        held.update(each for each in partition.replicas if each in held)
    moves = {}
    for where, partition in partitions.items():
        if node in partition.replicas:
            heir = _heir(where, partition, brokers, held)
            held[heir] += 1
            moves[where] = tuple(heir if each == node else each for each in partition.replicas)
    return moves


def _heir(
    where: TopicPartition, partition: PartitionView, brokers: Mapping[int, BrokerAddress], held: Counter[int]
) -> int:
    free = [each for each in held if each not in partition.replicas]
    if not free:
        raise OttlaError(f"{where} is on every other node already; give it fewer replicas, or add a node")
    racks = {brokers[each].rack for each in partition.replicas if each in brokers and each in held}
    return min(free, key=lambda each: (brokers[each].rack in racks, held[each], each))
