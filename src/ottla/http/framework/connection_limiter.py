"""Decides which HTTP connections are served above the limit. Pure.

A connection without a request in progress can be closed at any time, and its client reconnects. So idle connections
do not block others: a new one replaces the one idle for longest. If all are
busy, a few more are accepted for health checks only.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

    C = TypeVar("C", bound=Hashable)
else:
    C = TypeVar("C")


class Arrival(NamedTuple, Generic[C]):
    verdict: Literal["serve", "health only", "refuse"]
    close: C | None = None
    """The idle connection that is replaced."""


class ConnectionLimiter(Generic[C]):
    def __init__(self, most: int, most_per_address: int, reserve: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._reserve = reserve
        self._addresses: dict[C, str] = {}
        self._per_address: Counter[str] = Counter()
        self._extra: set[C] = set()
        self._idle: dict[C, None] = {}  # least recently idle first

    def arrived(self, connection: C, address: str) -> Arrival[C]:
        """The verdict on a new connection. Closed and refused connections no longer count."""
        if self._per_address[address] >= self._most_per_address:
            idle = next((one for one in self._idle if self._addresses.get(one) == address), None)
            return self._admit(connection, address, idle, is_full=True)
        is_full = len(self._addresses) >= self._most
        idle = next((one for one in self._idle if one not in self._extra), None) if is_full else None
        return self._admit(connection, address, idle, is_full=is_full)

    def _admit(self, connection: C, address: str, idle: C | None, *, is_full: bool) -> Arrival[C]:
        if is_full and idle is None:
            return self._admit_for_health(connection)
        if idle is not None:
            self.left(idle)
        self._addresses[connection] = address
        self._per_address[address] += 1
        self._idle[connection] = None
        return Arrival("serve", idle)

    def _admit_for_health(self, connection: C) -> Arrival[C]:
        idle = None
        if len(self._extra) >= self._reserve:
            idle = next((one for one in self._idle if one in self._extra), None)
            if idle is None:
                return Arrival("refuse")
            self.left(idle)
        self._extra.add(connection)
        self._idle[connection] = None
        return Arrival("health only", idle)

    def became_busy(self, connection: C) -> None:
        self._idle.pop(connection, None)

    def became_idle(self, connection: C) -> None:
        if connection in self._addresses or connection in self._extra:
            self._idle[connection] = None

    def left(self, connection: C) -> None:
        self._idle.pop(connection, None)
        self._extra.discard(connection)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._per_address[address] -= 1
            if not self._per_address[address]:
                del self._per_address[address]
