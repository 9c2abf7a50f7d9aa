"""Coalesces metadata refreshes: requests made while one is in flight share the next."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.client.errors import ClientClosed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable


class _Round:
    __slots__ = ("done", "topics")

    def __init__(self) -> None:
        self.topics: set[str] | None = set()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # All waiters may have been cancelled, and then the outcome is never retrieved.
        self.done.add_done_callback(lambda done: done.cancelled() or done.exception())


class Refresher:
    """Runs `fetch` for the requested topics, or for all with None, one call at a time."""

    def __init__(self, fetch: Callable[[set[str] | None], Awaitable[None]]) -> None:
        self._fetch = fetch
        self._next: _Round | None = None
        self._task: asyncio.Task[None] | None = None

    async def ask(self, topics: Iterable[str] | None) -> None:
        """Return when a fetch that started after this call has finished; raise its error.

        A fetch already in flight may predate the change that made the caller refresh.
        """
        if self._next is None:
            self._next = _Round()
        coming = self._next
        if topics is None:
            coming.topics = None
        elif coming.topics is not None:
            coming.topics.update(topics)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await asyncio.shield(coming.done)

    async def close(self) -> None:
        """Close: all waiters get ClientClosed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while (current := self._next) is not None:
                self._next = None
                await self._run_one(current)
        finally:
            self._task = None
            if self._next is not None:
                self._next.done.set_exception(ClientClosed())
                self._next = None

    async def _run_one(self, current: _Round) -> None:
        try:
            await self._fetch(current.topics)
        except asyncio.CancelledError:
            current.done.set_exception(ClientClosed())
            raise
        except Exception as failed:  # noqa: BLE001 - all waiters must get the error
            current.done.set_exception(failed)
        else:
            current.done.set_result(None)
