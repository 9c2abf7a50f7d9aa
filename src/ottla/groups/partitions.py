"""Partitions as members of a group own them: by the topic's id, since a name may come to mean another topic."""

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
    """As every message that lists partitions of topics has them."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


def each_partition(topics: Iterable[_OfTopic]) -> Assigned:
    return frozenset(Partition(topic.topic_id, number) for topic in topics for number in topic.partitions)


def by_topic(partitions: Iterable[Partition]) -> Iterator[tuple[bytes, tuple[int, ...]]]:
    """Topic ids with their partitions, both in order."""
    for topic_id, of_topic in groupby(sorted(partitions), attrgetter("topic_id")):
        yield topic_id, tuple(partition.number for partition in of_topic)
