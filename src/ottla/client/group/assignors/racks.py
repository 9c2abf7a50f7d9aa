"""Rack-aware assignment (KIP-881)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.client.group.assignors.subjects import Layout, Member


def racks_matter(of_members: Iterable[str], of_partitions: Sequence[frozenset[str]]) -> bool:
    """Whether racks make a difference: not if no member matches any rack, or all members match all partitions."""
    everywhere = frozenset[str]().union(*of_partitions)
    return not everywhere.isdisjoint(of_members) and any(racks != everywhere for racks in of_partitions)


class Racks:
    """Empty if racks do not matter."""

    def __init__(self, members: Sequence[Member], layout: Layout) -> None:
        self._of_member: dict[str, str] = {}
        self._of_partition: dict[TopicPartition, frozenset[str]] = {}
        of_member = {member.id: member.rack for member in members if member.rack}
        if racks_matter(of_member.values(), [racks for partitions in layout.values() for racks in partitions]):
            self._of_member = of_member
            self._of_partition = {
                TopicPartition(topic, index): racks
                for topic, partitions in layout.items()
                for index, racks in enumerate(partitions)
            }

    def __bool__(self) -> bool:
        return bool(self._of_member)

    def is_far(self, member: str, at: TopicPartition) -> bool:
        """Whether a member is not rack-local to a partition; never for a member without a rack."""
        rack = self._of_member.get(member)
        return rack is not None and rack not in self._of_partition.get(at, ())

    def is_near(self, member: str, at: TopicPartition) -> bool:
        return self._of_member.get(member) in self._of_partition.get(at, ())

    def hardest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Partitions with the fewest rack-local members first."""
        members_in = Counter(self._of_member.values())
        return sorted(partitions, key=lambda at: sum(members_in[rack] for rack in self._of_partition.get(at, ())))
