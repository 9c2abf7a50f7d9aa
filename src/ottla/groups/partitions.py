"""Partitions by topic id, since a topic may be re-created under the same name."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Partition(NamedTuple):
    topic_id: bytes
    number: int


Assigned: TypeAlias = frozenset[Partition]

NOTHING: Assigned = frozenset()


class _OfTopic(Protocol):
    """A topic with its partitions, as in many messages."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


def each_partition(topics: Iterable[_OfTopic]) -> Assigned:
    return frozenset(Partition(topic.topic_id, number) for topic in topics for number in topic.partitions)


def by_topic(partitions: Iterable[Partition]) -> Iterator[tuple[bytes, tuple[int, ...]]]:
    """Topic ids with their partitions, both sorted."""
    for topic_id, of_topic in groupby(sorted(partitions), attrgetter("topic_id")):
        yield topic_id, tuple(partition.number for partition in of_topic)
