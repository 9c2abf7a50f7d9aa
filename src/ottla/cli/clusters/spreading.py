"""Balances partitions over nodes, keeping their replication factors. Pure rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, Protocol

from ottla.cli.clusters.draining import plan

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ottla.client.view import BrokerAddress, PartitionView
    from ottla.core.ids import TopicPartition

_ANY: Final = -(1 << 31)


def rotated(nodes: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Assign all of these nodes to each partition, starting with a different one each time."""
    starts = [number % len(nodes) for number in range(count)]
    return [(*nodes[start:], *nodes[:start]) for start in starts]


def spread(
    partitions: Mapping[TopicPartition, PartitionView], brokers: Mapping[int, BrokerAddress], over: Collection[int]
) -> dict[TopicPartition, tuple[int, ...]]:
    """The new replicas of partitions that must change, as few as possible; none is on fewer racks than before."""
    before = {where: each.replicas for where, each in partitions.items()}
    others = {*brokers, *(node for replicas in before.values() for node in replicas)} - {*over}
    after = before | plan(partitions, brokers, others)
    _level(after, over, _Holding(brokers))
    _level(after, over, _Leading())
    return {where: replicas for where, replicas in after.items() if replicas != before[where]}


class _Share(Protocol):
    """A quantity to balance over nodes."""

    def having(self, replicas: tuple[int, ...]) -> tuple[int, ...]:
        """The nodes that hold a share of this partition."""

    def given(self, replicas: tuple[int, ...], source: int, target: int) -> tuple[int, ...] | None:
        """The replicas after moving a share from one node to another; None if not allowed."""


class _Holding:
    def __init__(self, brokers: Mapping[int, BrokerAddress]) -> None:
        self._racks = {node: each.rack for node, each in brokers.items()}

    def having(self, replicas: tuple[int, ...]) -> tuple[int, ...]:
        return replicas

    def given(self, replicas: tuple[int, ...], source: int, target: int) -> tuple[int, ...] | None:
        racks = {self._racks[node] for node in replicas if node != source}
        if target in replicas or (self._racks[target] in racks and self._racks[source] not in racks):
            return None
        return tuple(target if node == source else node for node in replicas)


class _Leading:
    def having(self, replicas: tuple[int, ...]) -> tuple[int, ...]:
        return replicas[:1]

    def given(self, replicas: tuple[int, ...], source: int, target: int) -> tuple[int, ...] | None:
        if target not in replicas:
            return None
        swapped = {source: target, target: source}
        return tuple(swapped.get(node, node) for node in replicas)


def _level(after: dict[TopicPartition, tuple[int, ...]], over: Collection[int], share: _Share) -> None:
    """Balance each topic; then all topics together, as far as no topic becomes less balanced."""
    of_topic: defaultdict[str, Counter[int]] = defaultdict(Counter)
    of_all: Counter[int] = Counter()
    for where, replicas in after.items():
        of_topic[where.topic].update(share.having(replicas))
        of_all.update(share.having(replicas))

    def gives(where: TopicPartition, more_of_topic: int, more_of_all: int) -> bool:
        own = of_topic[where.topic]
        for source in share.having(after[where]):
            for target in sorted(over, key=lambda node: (own[node], of_all[node], node)):
                if own[source] - own[target] < more_of_topic or of_all[source] - of_all[target] < more_of_all:
                    continue
                if (replicas := share.given(after[where], source, target)) is not None:
                    after[where] = replicas
                    for counted in (own, of_all):
                        counted[source] -= 1
                        counted[target] += 1
                    return True
        return False

    def is_changed_by(more_of_topic: int, more_of_all: int) -> bool:
        return sum(gives(where, more_of_topic, more_of_all) for where in sorted(after)) > 0

    # It terminates: the first step balances a topic, the second keeps that and balances all topics together.
    while is_changed_by(2, _ANY) or is_changed_by(1, 2):
        continue
