"""Previously owned partitions as claimed by members, and which claims are valid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.group.assignors.java_order import hash_of_text, in_java_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.client.group.assignors.subjects import Layout, Member
    from ottla.core.ids import TopicPartition


class Claim(NamedTuple):
    partitions: tuple[TopicPartition, ...]
    generation: int


@dataclass(slots=True)
class Claims:
    """Existing partitions by the member that owned them last."""

    by_member: dict[str, Claim] = field(default_factory=dict)
    """The claims as received."""
    owned: dict[str, list[TopicPartition]] = field(default_factory=dict)
    """In the order in which Java iterates over the members."""
    contested: set[TopicPartition] = field(default_factory=set)
    """Partitions claimed by two members of one generation: neither claim is valid."""

    @property
    def newest(self) -> int:
        return max((claim.generation for claim in self.by_member.values()), default=-1)


def settle_claims(members: Sequence[Member], layout: Layout, claim_of: Callable[[Member], Claim]) -> Claims:
    claims = Claims()
    owner: dict[TopicPartition, Member] = {}
    for member in in_java_order(members, lambda member: hash_of_text(member.id)):
        claim = claims.by_member[member.id] = claim_of(member)
        owned = claims.owned[member.id] = []
        for at in claim.partitions:
            if at.partition >= len(layout.get(at.topic, ())):
                continue
            other = owner.get(at)
            if other is None:
                owned.append(at)
            elif claim.generation < other.generation:
                continue
            else:
                if at in claims.owned[other.id]:
                    claims.owned[other.id].remove(at)
                if claim.generation == other.generation:
                    claims.contested.add(at)
                else:
                    owned.append(at)
            owner[at] = member
    return claims
