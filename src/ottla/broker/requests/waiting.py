"""Requests that wait for something to happen. Nothing here polls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable


class Waiters(set["ByteWait"]):
    """The requests that wait for one partition."""

    __slots__ = ()

    def got(self, size: int) -> None:
        """Count this many more readable bytes."""
        for wait in tuple(self):
            wait.got(size)

    def end(self) -> None:
        """Wake all waiting requests after a change, to check again."""
        for wait in tuple(self):
            wait.end()

    def give_up(self) -> None:
        """Make all waiting requests respond with the data available now."""
        for wait in tuple(self):
            wait.give_up()


class ByteWait:
    """Waits until this many more bytes are readable, or until something makes waiting pointless.

    It counts from its creation, so that appends before it is awaited are not missed; and it ends on its own timeout, so
    that nothing is left behind if it is never awaited.
    """

    __slots__ = ("_future", "_missing", "_timer", "_watched", "is_last")

    def __init__(self, watched: Iterable[Waiters], missing: int, until_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._missing = missing
        self._watched = list(watched)
        self._future: asyncio.Future[None] = loop.create_future()
        self._timer = loop.call_at(until_s, self.give_up)
        self.is_last = False
        """Whether waiting again is pointless."""
        for waiters in self._watched:
            waiters.add(self)

    def __await__(self) -> Generator[object, None, None]:
        return self._future.__await__()

    def watch(self, waiters: Waiters) -> None:
        """Wait for this partition as well, unless the wait has ended."""
        if not self._future.done():
            self._watched.append(waiters)
            waiters.add(self)

    def got(self, size: int) -> None:
        self._missing -= size
        if self._missing <= 0:
            self.end()

    def end(self) -> None:
        self._timer.cancel()
        for waiters in self._watched:
            waiters.discard(self)
        if not self._future.done():
            self._future.set_result(None)

    def give_up(self) -> None:
        self.is_last = True
        self.end()
