"""Range: a contiguous range of each topic's partitions per member.

Topics with the same number of partitions and the same members are split alike, so that one member gets the same
partitions of all of them (co-partitioning), also with rack-aware assignment.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ottla.client.group.assignors.racks import racks_matter
from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.group.assignors.subjects import Layout, Member, Shares


class RangeAssignor:
    name = "range"
    is_cooperative = False

    def user_data(self, assigned: Sequence[TopicPartition] | None, generation: int) -> None:  # noqa: ARG002
        return None

    def assign(self, members: Sequence[Member], layout: Layout) -> Shares:
        ordered = sorted(members, key=lambda member: member.sort_key)
        topics = [
            _Topic(topic, racks, subscribers)
            for topic, racks in sorted(layout.items())
            if (subscribers := [member for member in ordered if topic in member.topics])
        ]
        if any(topic.needs_racks for topic in topics):
            _match_racks(topics)
        for topic in topics:
            topic.assign_rest()
        return {
            member.id: [
                TopicPartition(topic.name, index)
                for topic in topics
                for index in sorted(topic.given.get(member.id, ()))
            ]
            for member in members
        }


class _Topic:
    def __init__(self, name: str, racks: Sequence[frozenset[str]], members: Sequence[Member]) -> None:
        self.name = name
        self.members = members
        self.partitions = len(racks)
        self.given: dict[str, list[int]] = {member.id: [] for member in members}
        self.needs_racks = racks_matter((member.rack for member in members if member.rack), racks)
        self._racks = racks
        self._left = list(range(len(racks)))
        self._least, self._extras = divmod(len(racks), len(members))

    def is_near(self, member: Member, partition: int) -> bool:
        return not member.rack or member.rack in self._racks[partition]

    def room_for(self, member: Member) -> int:
        return max(0, self._least + (self._extras > 0) - len(self.given[member.id]))

    def give(self, member: Member, partitions: list[int]) -> None:
        given = self.given[member.id]
        given += partitions
        if len(given) > self._least:
            self._extras -= 1
        self._left = [partition for partition in self._left if partition not in partitions]

    def assign_near(self) -> None:
        for member in self.members:
            self._take(member, [partition for partition in self._left if self.is_near(member, partition)])

    def assign_rest(self) -> None:
        for member in self.members:
            self._take(member, self._left)

    def _take(self, member: Member, from_these: list[int]) -> None:
        if taken := from_these[: self.room_for(member)]:
            self.give(member, taken)


def _match_racks(topics: list[_Topic]) -> None:
    alike: dict[tuple[tuple[str, ...], int], list[_Topic]] = defaultdict(list)
    for topic in topics:
        alike[tuple(member.id for member in topic.members), topic.partitions].append(topic)
    for group in alike.values():
        if len(group) > 1:
            _match_together(group)
        elif group[0].needs_racks:
            group[0].assign_near()


def _match_together(topics: list[_Topic]) -> None:
    """A partition goes to the first member that is rack-local in every topic."""
    for partition in range(topics[0].partitions):
        for member in topics[0].members:
            if all(topic.is_near(member, partition) and topic.room_for(member) for topic in topics):
                for topic in topics:
                    topic.give(member, [partition])
                break
