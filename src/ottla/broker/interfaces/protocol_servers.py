"""The interface between the HTTP and DMQP servers: both depend on the broker, but not on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ottla.broker.metrics import Histogram
from ottla.groups.offsets import CURSOR_PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUP_PREFIX: Final = CURSOR_PREFIX
"""The prefix of the group whose offsets are the pop positions of a topic."""


class ShardAddress(NamedTuple):
    shard: int
    """The shard's partition."""
    host: str
    """Empty if it listens on all addresses of the machine."""
    port: int


class Exposed(NamedTuple):
    """A topic served over DMQP."""

    topic: str
    is_tls: bool
    shards: tuple[ShardAddress, ...]
    consumers: dict[str, tuple[int, ...]]
    """Registered consumers and their shards."""


class ShardStats:
    """DMQP metrics."""

    def __init__(self) -> None:
        self.replies: dict[tuple[str, str], int] = {}
        """The number of replies by method and status."""
        self.times: dict[str, Histogram] = {}
        """The time from a request to its reply, by method."""
        self.connections = 0
        """The number of open connections."""

    def replied(self, method: str, status: str, count: int, elapsed_ns: int) -> None:
        key = method, status
        self.replies[key] = self.replies.get(key, 0) + count
        times = self.times.get(method)
        if times is None:
            times = self.times[method] = Histogram()
        times.by_bits[elapsed_ns.bit_length()] += count
        times.total_ns += count * elapsed_ns


class ShardServer(Protocol):
    """Raises ApiError."""

    lease_ms: int
    stats: ShardStats

    def exposed(self) -> list[Exposed]:
        """All topics, by name."""

    def find(self, topic: str) -> Exposed: ...

    async def expose(self, topic: str, ports: Sequence[int], principal: str) -> Exposed:
        """Serve every shard: on these ports, then on the previous ones, then on free ones.

        Pushes and pops are authorized as this principal: DMQP has no users.
        """

    async def unexpose(self, topic: str) -> None: ...

    def elsewhere(self, topic: str) -> str | None:
        """The HTTP address of the node that serves the topic, if it is not this one: consumers register there."""

    def register(self, topic: str, consumer: str) -> tuple[int, ...]:
        """The shards of this consumer for the duration of the lease; a repeated call renews it."""

    def unregister(self, topic: str, consumer: str) -> None: ...

    def topic_deleted(self, topic: str) -> None: ...


class TableWriter(Protocol):
    """The process that writes topics' Iceberg tables."""

    restarts: int

    @property
    def pid(self) -> int | None:
        """None while no process runs."""

    def start(self) -> None:
        """Start it, if it is not running."""

    async def stop(self) -> None: ...
