"""The input and interface of assignors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from ottla.core.ids import TopicPartition

Layout: TypeAlias = Mapping[str, Sequence[frozenset[str]]]
"""The racks of the replicas, for each partition of each existing topic."""

Shares: TypeAlias = dict[str, list["TopicPartition"]]
"""The assigned partitions by member id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    id: str
    instance_id: str | None = None
    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    """The generation in which it owned them."""
    rack: str = ""
    user_data: bytes | None = None

    @property
    def sort_key(self) -> tuple[bool, str]:
        """Static members first, by their instance id."""
        return (True, self.id) if self.instance_id is None else (False, self.instance_id)


class Assignor(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def is_cooperative(self) -> bool:
        """Whether members keep their partitions during a rebalance (KIP-429)."""

    def user_data(self, assigned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """User data for the subscription, given the previous assignment, if any."""

    def assign(self, members: Sequence[Member], layout: Layout) -> Shares:
        """`members` are in the coordinator's order."""
