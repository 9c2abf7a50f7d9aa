"""What the HTTP door may know of the DMQP door: both hang on the broker, and neither on the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


GROUP_PREFIX: Final = "__dmqp."
"""Before the name of a topic: the group whose offsets say how far it is popped."""


class ShardAddress(NamedTuple):
    shard: int
    """The partition it is."""
    host: str
    """Empty if it is served on every address of the machine."""
    port: int


class Exposed(NamedTuple):
    """A topic that is served over DMQP."""

    topic: str
    is_tls: bool
    shards: tuple[ShardAddress, ...]
    consumers: dict[str, tuple[int, ...]]
    """Who is registered, and for which shards."""


class ShardDoor(Protocol):
    """Refuses with an ApiError."""

    lease_ms: int

    def exposed(self) -> list[Exposed]:
        """All topics, by name."""

    def find(self, topic: str) -> Exposed: ...

    async def expose(self, topic: str, ports: Sequence[int], principal: str) -> Exposed:
        """Serve every shard: on these ports as far as they go, then on those it had, then on free ones.

        What is pushed and popped there is done in the name of this principal: DMQP has no users.
        """

    async def unexpose(self, topic: str) -> None: ...

    def register(self, topic: str, consumer: str) -> tuple[int, ...]:
        """The shards of this consumer, for as long as the lease is; the same again renews it."""

    def unregister(self, topic: str, consumer: str) -> None: ...

    def topic_deleted(self, topic: str) -> None: ...
