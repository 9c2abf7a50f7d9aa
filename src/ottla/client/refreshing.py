"""Many who ask for the newest metadata, few requests: those who ask while one is under way share the next."""

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
        # Those who waited may all have been cancelled; then nobody looks at the outcome.
        self.done.add_done_callback(lambda done: done.cancelled() or done.exception())


class Refresher:
    """Runs `fetch` for the topics asked for, or for all of them with None, one call at a time."""

    def __init__(self, fetch: Callable[[set[str] | None], Awaitable[None]]) -> None:
        self._fetch = fetch
        self._next: _Round | None = None
        self._task: asyncio.Task[None] | None = None

    async def ask(self, topics: Iterable[str] | None) -> None:
        """Return when a fetch that began after this call has ended; fail if it did.

        One that is under way already may have been answered before whatever made the caller ask.
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
        """Everybody who waits gets ClientClosed."""
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
        except Exception as failed:  # noqa: BLE001 - whatever it is, those who wait are told
            current.done.set_exception(failed)
        else:
            current.done.set_result(None)
