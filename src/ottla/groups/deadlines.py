"""The deadlines of a group."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import Generic, TypeAlias, TypeVar


class Phase(Enum):
    JOIN = "join"
    """The end of the time in which members may join the next generation."""
    SYNC = "sync"
    """The time by which every member must have sent SyncGroup."""


Key: TypeAlias = Phase | str
"""A phase of the group, or the id of a member for its session."""


K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """At most one deadline per key.

    Every deadline is later than the time at which it was set, so processing all due deadlines terminates.
    """

    __slots__ = ("_at_ms",)

    def __init__(self) -> None:
        self._at_ms: dict[K, int] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._at_ms

    def set(self, key: K, now_ms: int, delay_ms: int) -> None:
        self._at_ms[key] = now_ms + max(delay_ms, 1)

    def cancel(self, key: K) -> None:
        self._at_ms.pop(key, None)

    def clear(self) -> None:
        self._at_ms.clear()

    def next_ms(self) -> int | None:
        return min(self._at_ms.values(), default=None)

    def pop_due(self, now_ms: int) -> K | None:
        """Remove and return the earliest deadline that is due."""
        if not self._at_ms:
            return None
        key = min(self._at_ms, key=self._at_ms.__getitem__)
        if self._at_ms[key] > now_ms:
            return None
        del self._at_ms[key]
        return key
