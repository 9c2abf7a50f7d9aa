"""Requests that wait for something to happen. Nothing here polls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.partition import Partition


class ByteWait:
    """Waits until so many bytes have been appended to some partitions, or something made waiting pointless."""

    __slots__ = ("_future", "_missing")

    def __init__(self, missing: int) -> None:
        self._missing = missing
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def got(self, size: int) -> None:
        self._missing -= size
        if self._missing <= 0:
            self.end()

    def end(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def until(self, timeout_s: float) -> None:
        timer = asyncio.get_running_loop().call_later(timeout_s, self.end)
        try:
            await self._future
        finally:
            timer.cancel()


async def wait_for_bytes(partitions: Iterable[Partition], missing: int, timeout_s: float) -> None:
    """Return once `missing` more bytes can be read from these partitions together, or after the timeout."""
    wait = ByteWait(missing)
    partitions = tuple(partitions)
    for partition in partitions:
        partition.waits.add(wait)
    try:
        await wait.until(timeout_s)
    finally:
        for partition in partitions:
            partition.waits.discard(wait)
