"""Sticky: as balanced as possible with the fewest moves (KIP-54).

Members revoke everything before they join, so each sends its previous assignment in its user data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.group.assignors.claims import Claim, settle_claims
from ottla.client.group.assignors.even_split import EvenSplit
from ottla.client.group.assignors.racks import Racks
from ottla.client.group.assignors.uneven_split import UnevenSplit
from ottla.core.errors import ProtocolError
from ottla.wire.consumer_protocol import (
    PreviousAssignment,
    by_topic,
    decode_previous_assignment,
    each_partition,
    encode_previous_assignment,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.client.group.assignors.subjects import Layout, Member, Shares
    from ottla.core.ids import TopicPartition


class StickyAssignor:
    name = "sticky"
    is_cooperative = False

    def user_data(self, assigned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        if assigned is None:
            return None
        return encode_previous_assignment(
            PreviousAssignment(previous_assignment=by_topic(assigned), generation=generation)
        )

    def assign(self, members: Sequence[Member], layout: Layout) -> Shares:
        shares, _ = split(members, layout, _claim)
        return shares


def split(
    members: Sequence[Member], layout: Layout, claim_of: Callable[[Member], Claim]
) -> tuple[Shares, dict[TopicPartition, str] | None]:
    """The assignment, and which partitions of it another member still owns; None if that was not tracked."""
    wanted = {topic: layout[topic] for topic in _all_topics(members) & layout.keys()}
    claims = settle_claims(members, wanted, claim_of)
    racks = Racks(members, wanted)
    if all(member.topics == members[0].topics for member in members):
        evenly = EvenSplit(wanted, claims, racks)
        return evenly.make(), evenly.moving
    return UnevenSplit(members, wanted, claims, racks).make(), None


def _all_topics(members: Sequence[Member]) -> frozenset[str]:
    return frozenset[str]().union(*(member.topics for member in members))


def _claim(member: Member) -> Claim:
    if not member.user_data:
        return Claim((), -1)
    try:
        previous = decode_previous_assignment(member.user_data)
    except ProtocolError:  # from another assignor of the same name
        return Claim((), -1)
    return Claim(each_partition(previous.previous_assignment), previous.generation)
