"""Holds requests until it is opened."""

from __future__ import annotations

import asyncio
import threading


class Gate:
    """Requests wait in the broker's event loop; any thread may open the gate."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_open = False
        self._held: set[asyncio.Future[None]] = set()

    async def passed(self) -> None:
        with self._lock:
            if self._is_open:
                return
            held = asyncio.get_running_loop().create_future()
            self._held.add(held)
        try:
            await held
        finally:
            self._held.discard(held)

    def open(self) -> None:
        with self._lock:
            self._is_open = True
            held = tuple(self._held)
        for one in held:
            one.get_loop().call_soon_threadsafe(_let_go, one)


def _let_go(held: asyncio.Future[None]) -> None:
    if not held.done():
        held.set_result(None)
