"""Requests that wait for something to happen. Nothing here polls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from typing import Protocol

    class Awaited(Protocol):
        """A partition: as consumers see it, or as its followers do."""

        waits: set[ByteWait]


class ByteWait:
    """Waits until so many more bytes can be read from some partitions, or something made waiting pointless.

    It counts from its creation on, so that nothing is missed that is appended before somebody awaits it; and since
    it ends by itself, nothing is left behind if nobody ever does.
    """

    __slots__ = ("_future", "_missing", "_partitions", "_timer", "is_last")

    def __init__(self, partitions: Iterable[Awaited], missing: int, until_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._missing = missing
        self._partitions = list(partitions)
        self._future: asyncio.Future[None] = loop.create_future()
        self._timer = loop.call_at(until_s, self.give_up)
        self.is_last = False
        """It is no use to wait once more."""
        for partition in self._partitions:
            partition.waits.add(self)

    def __await__(self) -> Generator[object, None, None]:
        return self._future.__await__()

    def watch(self, partition: Awaited) -> None:
        """From now on this one counts too, unless the wait is over."""
        if not self._future.done():
            self._partitions.append(partition)
            partition.waits.add(self)

    def got(self, size: int) -> None:
        self._missing -= size
        if self._missing <= 0:
            self.end()

    def end(self) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.waits.discard(self)
        if not self._future.done():
            self._future.set_result(None)

    def give_up(self) -> None:
        self.is_last = True
        self.end()
