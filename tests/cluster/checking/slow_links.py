"""Proxies that add latency to links, without loss or bandwidth limits."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Coroutine

_CHUNK_BYTES: Final = 64 * 1024
_JITTER: Final = 0.5
"""Jitter: a delay is up to this share longer."""


class SlowLinks:
    """Runs proxies in a thread; changes of `delay_s` apply to data received afterwards."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="slow-links")
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._writers: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def to(self, host: str, port: int) -> int:
        """Start a proxy to this address; returns its port."""
        port_here: int = self._run(self._listen(host, port))
        return port_here

    def _run(self, work: Coroutine[object, object, object]) -> object:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)  # type: ignore[arg-type]

    async def _listen(self, host: str, port: int) -> int:
        async def opened(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                there, back = await asyncio.open_connection(host, port)
            except OSError:
                writer.transport.abort()
                return
            self._writers |= {writer, back}
            self._pass_on(reader, back)
            self._pass_on(there, writer)

        server = await asyncio.start_server(opened, "127.0.0.1", 0)
        self._servers.append(server)
        found: int = server.sockets[0].getsockname()[1]
        return found

    def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        for work in (self._take(reader, under_way), self._give(writer, under_way)):
            task = self._loop.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _take(self, reader: asyncio.StreamReader, under_way: asyncio.Queue[tuple[float, bytes]]) -> None:
        last_s = 0.0
        while True:
            try:
                data = await reader.read(_CHUNK_BYTES)
            except ConnectionError:
                data = b""
            # Keep the order: later data must not arrive earlier.
            last_s = max(last_s, self._loop.time() + self.delay_s * (1 + random.random() * _JITTER))
            under_way.put_nowait((last_s, data))
            if not data:
                return

    async def _give(self, writer: asyncio.StreamWriter, under_way: asyncio.Queue[tuple[float, bytes]]) -> None:
        while True:
            at_s, data = await under_way.get()
            await asyncio.sleep(max(0.0, at_s - self._loop.time()))
            if not data:
                writer.close()
                return
            writer.write(data)

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)
