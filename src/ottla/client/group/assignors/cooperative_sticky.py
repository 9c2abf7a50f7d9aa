"""Cooperative sticky: like sticky, but members keep their partitions during a rebalance (KIP-429).

A partition moves in two rebalances: in the first its owner revokes it and no member gets it, in
the second it is assigned.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from ottla.client.group.assignors.claims import Claim
from ottla.client.group.assignors.sticky import split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.group.assignors.subjects import Layout, Member, Shares
    from ottla.core.ids import TopicPartition

_GENERATION: Final = Struct(">i")


class CooperativeStickyAssignor:
    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, assigned: Sequence[TopicPartition] | None, generation: int) -> bytes:  # noqa: ARG002
        return _GENERATION.pack(generation)

    def assign(self, members: Sequence[Member], layout: Layout) -> Shares:
        shares, moving = split(members, layout, _claim)
        if moving is None:
            moving = _moving(members, shares)
        return {member: [at for at in share if moving.get(at) != member] for member, share in shares.items()}


def _moving(members: Sequence[Member], shares: Shares) -> dict[TopicPartition, str]:
    given_up = {at for member in members for at in set(member.owned).difference(shares[member.id])}
    return {
        at: member.id for member in members for at in set(shares[member.id]).difference(member.owned) if at in given_up
    }


def _claim(member: Member) -> Claim:
    """A subscription before version 2 has the generation in its user data."""
    generation = member.generation
    if generation < 0 and member.user_data is not None and len(member.user_data) >= _GENERATION.size:
        (generation,) = _GENERATION.unpack_from(member.user_data)
    return Claim(member.owned, generation)
