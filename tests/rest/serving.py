"""A broker with its HTTP listener, in a thread of this process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

import httpx

import ottla
from ottla.http.config import HttpConfig
from ottla.http.queues.config import QueuesConfig
from ottla.http.server import HttpServer

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from ottla.broker.settings import Settings

PATIENCE_S = 20.0


class HttpBroker:
    def __init__(
        self,
        folder: Path,
        config: HttpConfig | None = None,
        settings: Settings | None = None,
        *,
        queues: QueuesConfig | None = None,
    ) -> None:
        self._embedded = ottla.Broker(folder, settings)
        self._config = config or HttpConfig(port=0)
        # Nothing is written there unless a test makes a queue.
        self._queues = queues or QueuesConfig(data_directory=folder / "queues")
        self.client: httpx.Client

    def __enter__(self) -> Self:
        self._embedded.__enter__()
        self.broker = self._embedded.broker
        self.http = HttpServer(self.broker, self._config, "127.0.0.1", self._queues)
        self.run(self._start())
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.run(self.http.stop())
        self._embedded.__exit__()

    async def _start(self) -> None:
        await self.http.bind()
        self.http.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run this on the broker's event loop and wait for it."""
        assert self._embedded._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._embedded._loop).result(PATIENCE_S)

    @property
    def url(self) -> str:
        return f"http://{self.http.address}"

    @property
    def servers(self) -> str:
        return self._embedded.bootstrap_servers
