"""Round robin: the partitions of all topics, distributed one by one to their subscribers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.group.assignors.subjects import Layout, Member, Shares


class RoundRobinAssignor:
    name = "roundrobin"
    is_cooperative = False

    def user_data(self, assigned: Sequence[TopicPartition] | None, generation: int) -> None:  # noqa: ARG002
        return None

    def assign(self, members: Sequence[Member], layout: Layout) -> Shares:
        shares: Shares = {member.id: [] for member in members}
        around = sorted(members, key=lambda member: member.sort_key)
        wanted = frozenset[str]().union(*(member.topics for member in members))
        turn = 0
        for topic in sorted(wanted & layout.keys()):
            for index in range(len(layout[topic])):
                while topic not in around[turn].topics:
                    turn = (turn + 1) % len(around)
                shares[around[turn].id].append(TopicPartition(topic, index))
                turn = (turn + 1) % len(around)
        return shares
