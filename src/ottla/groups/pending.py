"""Pending offsets of open transactions: not visible, and dropped if aborted.

The last commit wins, by log order: a later commit, transactional or not, survives the end of
an earlier transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.groups.sizes import offset_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ottla.core.ids import TopicPartition
    from ottla.groups.formats import OffsetCommitValue

    Values = Mapping[TopicPartition, OffsetCommitValue]


class PendingOffsets:
    __slots__ = ("_by_group", "_bytes", "_count")

    def __init__(self) -> None:
        self._by_group: dict[str, dict[int, dict[TopicPartition, tuple[int, OffsetCommitValue]]]] = {}
        """Pending offsets by group and producer id, each with its sequence number among all commits."""
        self._bytes: dict[str, int] = {}
        self._count = 0

    def add(self, group_id: str, producer_id: int, changes: Values) -> None:
        self._count += 1
        known = self._by_group.setdefault(group_id, {}).setdefault(producer_id, {})
        for at, value in changes.items():
            self._grow(group_id, _bytes(at, value) - (_bytes(at, known[at][1]) if at in known else 0))
            known[at] = self._count, value

    def held_bytes(self, group_id: str) -> int:
        return self._bytes.get(group_id, 0)

    def has(self, group_id: str, at: TopicPartition) -> bool:
        producers = self._by_group.get(group_id)
        return producers is not None and any(at in pending for pending in producers.values())

    def partitions(self, group_id: str) -> set[TopicPartition]:
        return {at for pending in self._by_group.get(group_id, {}).values() for at in pending}

    def overtaken(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Drop the pending offsets of partitions with a later commit."""
        if group_id in self._by_group:
            for at in partitions:
                self._overtake(group_id, at, self._count + 1)

    def ended(
        self, producer_id: int, is_one_of_them: Callable[[str], bool], *, is_commit: bool
    ) -> Iterator[tuple[str, Values]]:
        """Handle the end of a transaction in the log of some groups; returns the offsets that take effect."""
        groups = [group for group, of in self._by_group.items() if producer_id in of and is_one_of_them(group)]
        for group_id in groups:
            pending = self._by_group[group_id].pop(producer_id)
            self._grow(group_id, -sum(_bytes(at, value) for at, (_, value) in pending.items()))
            for at, (place, _) in pending.items() if is_commit else ():
                self._overtake(group_id, at, place)
            if not self._by_group[group_id]:
                self.forget(group_id)
            yield group_id, {at: value for at, (_, value) in pending.items()} if is_commit else {}

    @property
    def groups(self) -> list[str]:
        """The groups with pending offsets, which may have no committed offsets."""
        return list(self._by_group)

    def forget(self, group_id: str) -> None:
        self._by_group.pop(group_id, None)
        self._bytes.pop(group_id, None)

    def _grow(self, group_id: str, growth: int) -> None:
        self._bytes[group_id] = self._bytes.get(group_id, 0) + growth

    def _overtake(self, group_id: str, at: TopicPartition, before: int) -> None:
        for pending in self._by_group[group_id].values():
            if at in pending and pending[at][0] < before:
                self._grow(group_id, -_bytes(at, pending.pop(at)[1]))


def _bytes(at: TopicPartition, value: OffsetCommitValue) -> int:
    return offset_bytes(at.topic, value.metadata)
