"""Sticky assignment if all members subscribe to the same topics: their numbers of partitions differ by at most one.

Members keep their partitions up to their quota; the rest is distributed, first to those below the smaller quota. With P
partitions and M members, P % M of them get one more than the others.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.group.assignors.claims import Claims
    from ottla.client.group.assignors.racks import Racks
    from ottla.client.group.assignors.subjects import Layout, Shares


class EvenSplit:
    def __init__(self, layout: Layout, claims: Claims, racks: Racks) -> None:
        self.shares: Shares = {member: [] for member in claims.owned}
        self.moving: dict[TopicPartition, str] = {}
        """Partitions that one member must revoke before another may get them."""
        self._layout = layout
        self._claims = claims
        self._racks = racks
        partitions = sum(map(len, layout.values()))
        self._least, self._extras = divmod(partitions, len(claims.owned))
        self._most = self._least + (self._extras > 0)
        self._with_extra = 0
        self._below: list[str] = []
        self._at_least: deque[str] = deque()
        self._given_up: dict[TopicPartition, str] = {}

    def make(self) -> Shares:
        for member in self._claims.owned:
            self._keep(member)
        self._below.sort()
        self._at_least = deque(sorted(self._at_least))
        left = self._racks.hardest_first(self._unassigned())
        if self._racks:
            left = self._deal_to_the_near(left)
        self._deal(left)
        return self.shares

    def _keep(self, member: str) -> None:
        owned = []
        for at in sorted(self._claims.owned[member], key=lambda at: (at.partition, at.topic)):
            if self._racks.is_far(member, at):
                self._given_up[at] = member
            elif at not in self._claims.contested:
                owned.append(at)
        kept = self._quota(member, len(owned))
        self.shares[member] += owned[:kept]
        self._given_up.update(dict.fromkeys(owned[kept:], member))

    def _quota(self, member: str, owned: int) -> int:
        if owned < self._least:
            self._below.append(member)
            return owned
        if owned >= self._most and self._with_extra < self._extras:
            self._note_extra()
            return self._most
        if self._with_extra < self._extras:
            self._at_least.append(member)
        return self._least

    def _note_extra(self) -> None:
        self._with_extra += 1
        if self._with_extra == self._extras:
            self._at_least.clear()

    def _unassigned(self) -> list[TopicPartition]:
        assigned = {at for share in self.shares.values() for at in share}
        return [
            at
            for topic in sorted(self._layout)
            for index in range(len(self._layout[topic]))
            if (at := TopicPartition(topic, index)) not in assigned
        ]

    def _deal_to_the_near(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Distribute remaining partitions; they have no rack-local member below its quota."""
        left = []
        turn = 0
        for at in partitions:
            if (found := self._next_near(at, self._below, turn)) is not None:
                member = self._below[found]
                turn = self._after_one_more(member, found)
            elif (found := self._next_near(at, self._at_least, 0)) is not None:
                member = self._at_least[found]
                if len(self.shares[member]) + 1 == self._most:
                    del self._at_least[found]
                    self._note_extra()
            else:
                left.append(at)
                continue
            self._give(at, member)
        return left

    def _next_near(self, at: TopicPartition, members: list[str] | deque[str], turn: int) -> int | None:
        count = len(members)
        around = ((turn + step) % count for step in range(count))
        return next((index for index in around if self._racks.is_near(members[index], at)), None)

    def _after_one_more(self, member: str, index: int) -> int:
        """The next member below its quota, after this one got a partition."""
        count = len(self.shares[member]) + 1
        if count < self._least:
            index += 1
        else:
            del self._below[index]
            if count < self._most and self._with_extra < self._extras:
                self._at_least.append(member)
        return index % len(self._below) if self._below else 0

    def _deal(self, partitions: list[TopicPartition]) -> None:
        turn = 0
        for at in partitions:
            if not self._below:
                self._give(at, self._at_least.popleft())
                continue
            turn %= len(self._below)
            member = self._below[turn]
            if self._give(at, member) == self._least:
                del self._below[turn]
                self._at_least.append(member)
            else:
                turn += 1

    def _give(self, at: TopicPartition, member: str) -> int:
        if self._given_up.get(at, member) != member or at in self._claims.contested:
            self.moving[at] = member
        self.shares[member].append(at)
        return len(self.shares[member])
