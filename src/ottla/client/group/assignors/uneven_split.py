"""Sticky assignment if members subscribe to different topics: no member has two partitions more than another member
that could take one of them.

Members keep their partitions; free ones go to the member with the fewest; then partitions move, in rounds, from members
with more to members with fewer, until no move improves the balance.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

from ottla.client.group.assignors.movements import Movements
from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla.client.group.assignors.claims import Claims
    from ottla.client.group.assignors.racks import Racks
    from ottla.client.group.assignors.subjects import Layout, Member, Shares


class UnevenSplit:
    def __init__(self, members: Sequence[Member], layout: Layout, claims: Claims, racks: Racks) -> None:
        self._layout = layout
        self._racks = racks
        self._topics = {member.id: member.topics & layout.keys() for member in members}
        self._subscribers = {
            topic: [member for member, topics in self._topics.items() if topic in topics] for topic in layout
        }
        self._previous = _previous_owners(claims)
        self._shares: Shares = {member.id: [] for member in members}
        self._owner: dict[TopicPartition, str] = {}
        self._holders: dict[str, Counter[str]] = {topic: Counter() for topic in layout}
        self._movements = Movements()
        self._must_revoke = False
        for member, owned in claims.owned.items():
            self._keep(member, owned)

    def make(self) -> Shares:
        everything = self._all_partitions()
        unassigned = [at for at in everything if at not in self._owner]
        is_first = not any(self._shares.values())
        self._fill(unassigned)
        # A partition with a single subscriber stays, and so does a member without other choices.
        settled = {member: self._shares.pop(member) for member in self._topics if not self._can_change(member)}
        movable = [at for at in everything if len(self._subscribers[at.topic]) > 1]
        self._even_out([at for at in unassigned if len(self._subscribers[at.topic]) > 1], movable, is_first=is_first)
        return self._shares | settled

    def _keep(self, member: str, owned: list[TopicPartition]) -> None:
        for at in owned:
            if at.topic not in self._topics[member] or self._racks.is_far(member, at):
                self._must_revoke = True
            else:
                self._give(at, member)

    def _all_partitions(self) -> list[TopicPartition]:
        """Partitions with the fewest subscribers first."""
        return [
            TopicPartition(topic, index)
            for topic in sorted(self._layout, key=lambda topic: (len(self._subscribers[topic]), topic))
            for index in range(len(self._layout[topic]))
        ]

    def _fill(self, partitions: list[TopicPartition]) -> None:
        if self._racks:
            for at in partitions:
                near = [member for member in self._subscribers[at.topic] if not self._racks.is_far(member, at)]
                if near:
                    self._give(at, self._with_least(near))
        for at in partitions:
            if at not in self._owner and self._subscribers[at.topic]:
                self._give(at, self._with_least(self._subscribers[at.topic]))

    def _can_change(self, member: str) -> bool:
        share = self._shares[member]
        could_have = sum(len(self._layout[topic]) for topic in self._topics[member])
        return len(share) < could_have or any(len(self._subscribers[at.topic]) > 1 for at in share)

    def _even_out(self, free: list[TopicPartition], movable: list[TopicPartition], *, is_first: bool) -> None:
        if not self._shares:
            return
        before = {member: list(share) for member, share in self._shares.items()}
        if not self._must_revoke:
            self._move(free)
        has_moved = self._move(movable)
        if has_moved and not is_first and _unevenness(self._shares) >= _unevenness(before):
            self._shares = before

    def _move(self, partitions: list[TopicPartition]) -> bool:
        has_moved = False
        while True:
            moved_now = False
            for at in partitions:
                if self._is_even():
                    break
                if (to := self._better_owner(at)) is not None:
                    self._reassign(self._movements.partition_to_move(at, self._owner[at], to), to)
                    moved_now = has_moved = True
            if not moved_now:
                return has_moved

    def _better_owner(self, at: TopicPartition) -> str | None:
        too_many = len(self._shares[self._owner[at]]) - 1
        previous = self._previous.get(at, "")
        subscribers = self._subscribers[at.topic]
        if previous in subscribers and len(self._shares[previous]) < too_many:
            return previous
        least = self._with_least(subscribers)
        return least if len(self._shares[least]) < too_many else None

    def _is_even(self) -> bool:
        counts = {member: len(share) for member, share in self._shares.items()}
        if min(counts.values()) >= max(counts.values()) - 1:
            return True
        return not any(
            counts[holder] > count + 1
            for member, count in counts.items()
            for topic in self._topics[member]
            for holder, held in self._holders[topic].items()
            if held
        )

    def _with_least(self, members: Iterable[str]) -> str:
        return min(members, key=lambda member: (len(self._shares[member]), member))

    def _give(self, at: TopicPartition, member: str) -> None:
        self._shares[member].append(at)
        self._owner[at] = member
        self._holders[at.topic][member] += 1

    def _reassign(self, at: TopicPartition, to: str) -> None:
        before = self._owner[at]
        self._movements.note(at, before, to)
        self._shares[before].remove(at)
        self._holders[at.topic][before] -= 1
        self._give(at, to)


def _previous_owners(claims: Claims) -> dict[TopicPartition, str]:
    """Previous owners by claims of older generations, newest first: a member that was away may get its partitions
    back.
    """
    newest = claims.newest
    found: dict[TopicPartition, tuple[str, int]] = {}
    for member, claim in claims.by_member.items():
        if claim.generation < newest:
            for at in claim.partitions:
                if at not in found or claim.generation > found[at][1]:
                    found[at] = member, claim.generation
    return {at: member for at, (member, _) in found.items()}


def _unevenness(shares: Mapping[str, list[TopicPartition]]) -> int:
    return sum(abs(one - other) for one, other in combinations(map(len, shares.values()), 2))
