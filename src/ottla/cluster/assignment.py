"""Replica assignment for new or growing topics. Pure rules.

Replicas and preferred leaders are spread evenly over the nodes. If every node has a rack, a partition's replicas are
on as many racks as possible.
"""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from ottla.core.errors import InvalidReplicationFactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla.cluster.state import BrokerInfo, PartitionState

    _Rack = list[tuple[int, int, int]]


class Load:
    """The current number of replicas and preferred leaders per node."""

    def __init__(self, states: Iterable[PartitionState] = ()) -> None:
        self.replicas: Counter[int] = Counter()
        self.preferred: Counter[int] = Counter()
        self.heirs: Counter[tuple[int, ...]] = Counter()
        """How often a node is the first follower of another preferred leader."""
        for state in states:
            self.add(state.target)

    def add(self, replicas: Sequence[int]) -> None:
        self.replicas.update(replicas)
        self.preferred.update(replicas[:1])
        self.heirs[tuple(replicas[:2])] += 1


def assign(
    partitions: Iterable[int], factor: int, brokers: Mapping[int, BrokerInfo], load: Load
) -> list[tuple[int, ...]]:
    """The replicas of each partition, the preferred leader first; updates `load`."""
    racks = _racks(brokers, load)
    usable = sum(map(len, racks))
    if factor > usable:
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be "
            f"reached because only {usable} broker(s) are registered."
        )
    return [_assign_one(factor, racks, load) for _ in partitions]


def _racks(brokers: Mapping[int, BrokerInfo], load: Load) -> list[_Rack]:
    """The nodes of each rack, the least loaded first; a single list if some have no rack."""
    usable = [broker for broker in brokers.values() if not broker.is_draining]
    knows_racks = all(broker.rack is not None for broker in usable)
    racks: dict[str | None, _Rack] = {}
    for broker in usable:
        rack = racks.setdefault(broker.rack if knows_racks else None, [])
        rack.append((load.replicas[broker.id], load.preferred[broker.id], broker.id))
    for rack in racks.values():
        heapify(rack)
    return list(racks.values())


def _assign_one(factor: int, racks: list[_Rack], load: Load) -> tuple[int, ...]:
    used = [0] * len(racks)
    chosen: list[int] = []
    homes: list[int] = []
    for _ in range(factor):
        home = min((at for at, rack in enumerate(racks) if rack), key=lambda at: (used[at], racks[at][0]))
        used[home] += 1
        homes.append(home)
        chosen.append(heappop(racks[home])[2])
    leader = min(chosen, key=lambda node: (load.preferred[node], load.replicas[node], node))
    # The first follower becomes leader when the leader dies: use different nodes for different partitions.
    followers = sorted((node for node in chosen if node != leader), key=lambda node: (load.heirs[leader, node], node))
    replicas = (leader, *followers)
    load.add(replicas)
    for home, node in zip(homes, chosen, strict=True):
        heappush(racks[home], (load.replicas[node], load.preferred[node], node))
    return replicas
