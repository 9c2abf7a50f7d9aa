"""Memory held for slow clients, in total, and which clients are disconnected when it is exhausted.

Bytes are held for unread responses and for incomplete requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


class Holder(Protocol):
    @property
    def held_bytes(self) -> int:
        """The number of bytes held for its requests."""


HolderT = TypeVar("HolderT", bound=Holder)

_SHARE: Final = 4


class HeldBytes(Generic[HolderT]):
    def __init__(self, limit: int, holders: Collection[HolderT], give_up_on: Callable[[HolderT], None]) -> None:
        self._limit = limit
        self._holders = holders
        self._give_up_on = give_up_on
        self._unsent: dict[HolderT, int] = {}
        self._unsent_bytes = 0
        self._received_bytes = 0  # an upper bound: completed requests are counted until the next recount

    @property
    def unsent_bytes(self) -> int:
        return self._unsent_bytes

    @property
    def room(self) -> int:
        """The maximum size of a response: a fraction of what is left, so that later clients get some."""
        return (self._limit - self._unsent_bytes) // _SHARE

    def slowed(self, holder: HolderT, size: int) -> None:
        """Record that this many bytes of responses are held for this client."""
        self._unsent[holder] = size
        self._unsent_bytes += size
        while self._unsent_bytes > self._limit:
            # The client that has been slow for longest.
            slowest = next(iter(self._unsent))
            self.caught_up(slowest)
            self._give_up_on(slowest)

    def caught_up(self, holder: HolderT) -> None:
        """Record that nothing is held for this client any more."""
        self._unsent_bytes -= self._unsent.pop(holder, 0)

    def half_received(self, size: int) -> None:
        """Record that this many more bytes of a request are held."""
        self._received_bytes += size
        if self._received_bytes > self._limit:
            self._weigh()

    def _weigh(self) -> None:
        largest = sorted(self._holders, key=lambda holder: holder.held_bytes)
        self._received_bytes = sum(holder.held_bytes for holder in largest)
        # Well below the limit, or the next byte would trigger another recount.
        while self._received_bytes > self._limit - self._limit // _SHARE:
            holder = largest.pop()
            self._received_bytes -= holder.held_bytes
            self._give_up_on(holder)
