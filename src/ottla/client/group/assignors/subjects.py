"""What an assignor is given, and what it must be able to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from ottla.core.ids import TopicPartition

Layout: TypeAlias = Mapping[str, Sequence[frozenset[str]]]
"""For each topic that exists and each of its partitions, the racks where a replica is."""

Shares: TypeAlias = dict[str, list["TopicPartition"]]
"""What each member gets, by its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    id: str
    instance_id: str | None = None
    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    """The generation that it owned them in."""
    rack: str = ""
    user_data: bytes | None = None

    @property
    def sort_key(self) -> tuple[bool, str]:
        """Static members come first, by the name that survives their restarts."""
        return (True, self.id) if self.instance_id is None else (False, self.instance_id)


class Assignor(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def is_cooperative(self) -> bool:
        """Whether members may keep what they have while the group rebalances (KIP-429)."""

    def user_data(self, assigned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """What a member adds to its subscription: the assignment it got last, if it ever got one."""

    def assign(self, members: Sequence[Member], layout: Layout) -> Shares:
        """`members` are in the coordinator's order."""
