"""The assignment of a topic's shards to consumers. Time is an argument; leases expire unless renewed."""

from __future__ import annotations

from ottla.core.errors import ApiError, ErrorCode


class TooManyConsumers(ApiError):
    """There is no shard for this consumer."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class Leases:
    """The leases of one topic."""

    def __init__(self, lease_ms: int) -> None:
        self._lease_ms = lease_ms
        self._until_ms: dict[str, int] = {}

    def register(self, consumer: str, shards: int, now_ms: int) -> tuple[int, ...]:
        """The shards of this consumer; a repeated call renews its lease."""
        self._expire(now_ms)
        if consumer not in self._until_ms and len(self._until_ms) >= shards:
            raise TooManyConsumers(f"{len(self._until_ms)} consumers are registered for {shards} shards")
        self._until_ms[consumer] = now_ms + self._lease_ms
        return self.shares(shards, now_ms)[consumer]

    def unregister(self, consumer: str) -> None:
        self._until_ms.pop(consumer, None)

    def shares(self, shards: int, now_ms: int) -> dict[str, tuple[int, ...]]:
        """Assign every shard to one consumer, balanced."""
        self._expire(now_ms)
        consumers = sorted(self._until_ms)
        return {name: tuple(range(first, shards, len(consumers))) for first, name in enumerate(consumers)}

    def _expire(self, now_ms: int) -> None:
        self._until_ms = {name: until_ms for name, until_ms in self._until_ms.items() if until_ms > now_ms}
