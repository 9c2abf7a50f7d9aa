"""The catalog of an in-process cluster, in a background thread, as in the supervisor of workers."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING, Final

from ottla.cluster.builtin.keeper import Keeper
from ottla.cluster.builtin.link import CatalogLink

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

_ANSWER_WITHIN_S: Final = 10.0


class CatalogKeeper:
    """`with CatalogKeeper(folder) as keeper:`; each node gets a link, which carries its session."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ottla-catalog-keeper", daemon=True)
        self._serving: set[asyncio.Task[None]] = set()
        self._keeper: Keeper

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def link(self) -> CatalogLink:
        ours, theirs = socket.socketpair()
        self.serve(ours)
        return CatalogLink(theirs, _ANSWER_WITHIN_S)

    def serve(self, connection: socket.socket) -> None:
        """Serve the connection of a node."""
        connection.settimeout(0)
        self._loop.call_soon_threadsafe(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        serving = self._loop.create_task(self._keeper.serve(connection))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def _open(self) -> None:
        # Created in the thread that uses it, as SQLite requires.
        self._keeper = Keeper(self._folder)

    async def _close(self) -> None:
        await asyncio.gather(*self._serving)
        self._keeper.close()
