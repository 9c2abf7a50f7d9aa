"""New replicas for the partitions of nodes that are drained. Pure rules."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ottla.client.view import BrokerAddress, PartitionView
    from ottla.core.ids import TopicPartition


def plan(
    partitions: Mapping[TopicPartition, PartitionView], brokers: Mapping[int, BrokerAddress], leaving: Collection[int]
) -> dict[TopicPartition, tuple[int, ...]]:
    """New assignments without these nodes: each replica moves to the least loaded node, in another rack if possible."""
    held = Counter({each: 0 for each in brokers if each not in leaving})
    for partition in partitions.values():
        held.update(each for each in partition.replicas if each in held)
    moves = {}
    for where, partition in partitions.items():
        replicas = partition.replicas
        for node in leaving:
            if node in replicas:
                heir = _heir(where, replicas, brokers, held)
                held[heir] += 1
                replicas = tuple(heir if each == node else each for each in replicas)
                moves[where] = replicas
    return moves


def _heir(
    where: TopicPartition, replicas: Collection[int], brokers: Mapping[int, BrokerAddress], held: Counter[int]
) -> int:
    free = [each for each in held if each not in replicas]
    if not free:
        raise OttlaError(f"{where} is on every other node already; give it fewer replicas, or add a node")
    racks = {brokers[each].rack for each in replicas if each in brokers and each in held}
    return min(free, key=lambda each: (brokers[each].rack in racks, held[each], each))
