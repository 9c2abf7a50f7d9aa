"""Partition movements between members, so that no two members swap partitions of one topic."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.group.assignors.java_order import hash_of_partition, in_java_order

if TYPE_CHECKING:
    from ottla.core.ids import TopicPartition


class _Move(NamedTuple):
    topic: str
    source: str
    target: str


class Movements:
    def __init__(self) -> None:
        self._made: dict[TopicPartition, _Move] = {}
        # A dictionary instead of a set, to keep the insertion order.
        self._by_move: dict[_Move, dict[TopicPartition, None]] = defaultdict(dict)

    def note(self, at: TopicPartition, source: str, target: str) -> None:
        if (earlier := self._made.pop(at, None)) is not None:
            del self._by_move[earlier][at]
            source = earlier.source
        if source != target:
            self._made[at] = _Move(at.topic, source, target)
            self._by_move[self._made[at]][at] = None

    def partition_to_move(self, at: TopicPartition, source: str, target: str) -> TopicPartition:
        """A partition of the topic that moved the opposite way, if any: it moves back instead."""
        if (earlier := self._made.get(at)) is not None:
            source = earlier.source
        opposite = self._by_move.get(_Move(at.topic, target, source))
        return in_java_order(list(opposite), hash_of_partition)[0] if opposite else at
