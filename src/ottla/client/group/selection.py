"""The subscription of a member: topic names, or a pattern. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ottla.client.group.assignors.subjects import Layout, Member
    from ottla.client.view import ClusterView, PartitionView


class Selection:
    def __init__(self, topics: Collection[str] = (), pattern: str | None = None) -> None:
        if bool(topics) == (pattern is not None):
            raise ValueError("subscribe to either topics or a pattern")
        self._topics = frozenset(topics)
        self._pattern = None if pattern is None else _compiled(pattern)

    @property
    def named(self) -> frozenset[str] | None:
        """The topics whose metadata is needed; None for all topics."""
        return self._topics if self._pattern is None else None

    def wants(self, topic: str) -> bool:
        return topic in self._topics if self._pattern is None else self._pattern.fullmatch(topic) is not None

    def topics(self, view: ClusterView) -> frozenset[str]:
        """The topics to join with. A named topic need not exist yet."""
        if self._pattern is None:
            return self._topics
        return frozenset(
            topic.name
            for topic in view.topics.values()
            if topic.partitions and not topic.is_internal and self.wants(topic.name)
        )


def layout(view: ClusterView, topics: Iterable[str]) -> Layout:
    """The existing partitions of these topics."""

    def racks(partition: PartitionView) -> frozenset[str]:
        brokers = (view.brokers.get(node) for node in partition.replicas)
        return frozenset(broker.rack for broker in brokers if broker is not None and broker.rack is not None)

    return {
        name: [racks(partition) for _, partition in sorted(topic.partitions.items())]
        for name in sorted(topics)
        if (topic := view.topics.get(name)) is not None and topic.partitions
    }


def wanted_by(members: Iterable[Member]) -> frozenset[str]:
    return frozenset[str]().union(*(member.topics for member in members))


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as wrong:
        raise ValueError(f"pattern {pattern!r} is not a valid regular expression: {wrong}") from None
