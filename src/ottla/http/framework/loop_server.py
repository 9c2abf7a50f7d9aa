"""Serves the app on the broker's event loop, with uvicorn's HTTP protocol."""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ottla.http.app import build_app
from ottla.http.framework.connection import LimitedConnection, Limits
from ottla.http.framework.endpoints import HttpState
from ottla.http.framework.stats import HttpStats
from ottla.http.monitoring.history import Sampler
from ottla.http.queues.guard import noted
from ottla.http.queues.handlers import Queues
from ottla.http.queues.store import open_store
from ottla.http.registry_mount import at_root

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Sequence

    from starlette.types import ASGIApp

    from ottla.broker.broker import Broker
    from ottla.http.config import HttpConfig
    from ottla.http.queues.config import QueuesConfig

_DRAIN_S: Final = 2.0
_TICK_S: Final = 0.1
_TICKS_PER_DATE: Final = 10


class ServerTls(Protocol):
    """The certificates of this port, which may be reloaded."""

    context: ssl.SSLContext

    def reload_if_changed(self) -> None: ...


def _uvicorn(app: ASGIApp, config: HttpConfig) -> Config:
    made = Config(
        app,
        http=HttpToolsProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=max(1, config.keep_alive_ms // 1000),
    )
    made.load()
    return made


class Serving:
    """The app and its connections."""

    def __init__(self, broker: Broker, config: HttpConfig, queues: QueuesConfig) -> None:
        self._stats = HttpStats()
        self._http_state = HttpState(broker, config, self._stats)
        self._http_state.queues_ask = queues.needs_password
        self._http_state.sampler = Sampler(broker)
        self._queues = open_store(queues, broker.keys)
        app = build_app(
            self._http_state, Queues(self._queues, queues, self._http_state.bodies, partial(noted, self._http_state))
        )
        self.config = _uvicorn(app, config)
        self._registry_config = _uvicorn(at_root(app), config)
        self.state = ServerState()
        self._limits = Limits(
            max_stalled_s=config.max_stalled_ms / 1000,
            max_connections=config.max_connections,
            max_connections_per_address=config.max_connections_per_address,
            on_refused=self._refused,
        )
        self._servers: list[asyncio.AbstractServer] = []
        self._tls: ServerTls | None = None
        self._background: list[asyncio.Task[None]] = []

    async def start(
        self,
        sockets: list[socket.socket],
        tls: ServerTls | None = None,
        registry_sockets: Sequence[socket.socket] = (),
    ) -> None:
        loop = asyncio.get_running_loop()
        self._tls = tls
        self._background = [loop.create_task(self._tick()), loop.create_task(self._http_state.sampler.run())]
        for listening in sockets:
            self._servers.append(await self._listen(listening, self.config))
        for listening in registry_sockets:
            self._servers.append(await self._listen(listening, self._registry_config))

    async def _listen(self, listening: socket.socket, config: Config) -> asyncio.AbstractServer:
        tls = self._tls
        return await asyncio.get_running_loop().create_server(
            lambda: LimitedConnection(self._limits, config, self.state),
            sock=listening,
            ssl=None if tls is None else tls.context,
            ssl_handshake_timeout=None if tls is None else self._limits.max_stalled_s,
        )

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        for tail in tuple(self._http_state.tails):
            tail.cancel()
        for connection in tuple(self.state.connections):
            connection.shutdown()
        tasks = tuple(self.state.tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=_DRAIN_S)
        for task in tuple(self.state.tasks):
            task.cancel()
        await asyncio.gather(*self.state.tasks, return_exceptions=True)
        for connection in tuple(self.state.connections):
            connection.transport.abort()
        for task in self._background:
            task.cancel()
        await asyncio.to_thread(self._queues.close)

    async def _tick(self) -> None:
        """Called ten times a second: measures event loop lag, and updates the Date header."""
        loop = asyncio.get_running_loop()
        ticks = 0
        while True:
            if ticks % _TICKS_PER_DATE == 0:
                if self._tls is not None:
                    self._tls.reload_if_changed()
                self.state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
            ticks += 1
            due_s = loop.time() + _TICK_S
            await asyncio.sleep(_TICK_S)
            self._stats.loop_delays.add(max(0, round((loop.time() - due_s) * 1e9)))

    def _refused(self) -> None:
        self._stats.refused_connections += 1
