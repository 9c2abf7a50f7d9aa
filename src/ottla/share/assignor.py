"""The assignor of share groups. Several members may share a partition; every member gets some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = "simple"


class TopicSize(NamedTuple):
    id: bytes
    partitions: int


Assignment: TypeAlias = "dict[bytes, tuple[int, ...]]"
"""Partitions by topic id."""


def assign(subscriptions: Mapping[str, frozenset[str]], topics: Mapping[str, TopicSize]) -> dict[str, Assignment]:
    """Assign topic by topic, round-robin. Each topic starts with another member, to spread small topics."""
    assigned: dict[str, dict[bytes, list[int]]] = {member: {} for member in subscriptions}
    turn = 0
    for name in sorted(topics):
        members = sorted(member for member, wanted in subscriptions.items() if name in wanted)
        topic = topics[name]
        if not members:
            continue
        for at in range(max(len(members), topic.partitions)):
            member = members[(turn + at) % len(members)]
            assigned[member].setdefault(topic.id, []).append(at % topic.partitions)
        turn += topic.partitions
    return {
        member: {topic_id: tuple(sorted(those)) for topic_id, those in by_topic.items()}
        for member, by_topic in assigned.items()
    }
