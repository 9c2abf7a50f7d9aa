"""uvicorn in a loop that is not its own: its HTTP protocol, with limits on what a client may hold us up with."""

from __future__ import annotations

import asyncio
import logging
from email.utils import formatdate
from typing import TYPE_CHECKING, Final, Protocol, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ottla.http.app import build_app
from ottla.http.endpoints import Door
from ottla.http.joined_writes import JoinedWrites
from ottla.http.problems import Problem, problem_response
from ottla.http.queue_store import open_store
from ottla.http.queues import Queues
from ottla.http.stats import HttpStats

if TYPE_CHECKING:
    import socket
    import ssl

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from ottla.broker.broker import Broker
    from ottla.http.config import HttpConfig
    from ottla.http.queue_config import QueuesConfig

_logger: Final = logging.getLogger(__name__)

_MAX_HEAD_BYTES: Final = 64 * 1024
_DRAIN_S: Final = 2.0
_TICK_S: Final = 0.1
_TICKS_PER_DATE: Final = 10


class ServerTls(Protocol):
    """The certificates of this port, which may change."""

    context: ssl.SSLContext

    def reload_if_changed(self) -> None: ...


class Serving:
    """The app, and the connections it is served on."""

    def __init__(self, broker: Broker, config: HttpConfig, queues: QueuesConfig) -> None:
        self.max_stalled_s = config.max_stalled_ms / 1000
        self._stats = HttpStats()
        self._door = Door(broker, config, self._stats)
        self._door.queues_ask = queues.needs_password
        self._queues = open_store(queues, broker.keys)
        self.config = Config(
            build_app(self._door, Queues(self._queues, queues)),
            http=HttpToolsProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=config.max_connections,
            timeout_keep_alive=max(1, config.keep_alive_ms // 1000),
        )
        self.config.load()
        self.state = ServerState()
        self._servers: list[asyncio.AbstractServer] = []
        self._tls: ServerTls | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._reported: set[str] = set()

    async def start(self, sockets: list[socket.socket], tls: ServerTls | None = None) -> None:
        loop = asyncio.get_running_loop()
        self._tls = tls
        self._ticking = loop.create_task(self._tick())
        for listening in sockets:
            self._servers.append(await self._listen(listening))

    async def _listen(self, listening: socket.socket) -> asyncio.AbstractServer:
        loop = asyncio.get_running_loop()
        if self._tls is None:
            return await loop.create_server(lambda: _Connection(self), sock=listening)
        return await loop.create_server(
            lambda: _Connection(self),
            sock=listening,
            ssl=self._tls.context,
            ssl_handshake_timeout=self.max_stalled_s,
        )

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        for tail in tuple(self._door.tails):
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
        if self._ticking is not None:
            self._ticking.cancel()
        await asyncio.to_thread(self._queues.close)

    async def _tick(self) -> None:
        """Ten times a second: how late the loop is, and what the date is."""
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

    def refused(self, connection: _Connection, reason: str) -> None:
        self._stats.refused_connections += 1
        host = connection.client[0] if connection.client else "?"
        if host not in self._reported:
            self._reported.add(host)
            _logger.warning("HTTP connection from %s closed: %s", host, reason)


class _Connection(HttpToolsProtocol):
    """A request's head may take so many bytes and so long; an answer has to be read."""

    def __init__(self, serving: Serving) -> None:
        super().__init__(serving.config, serving.state, {})
        # What uvicorn would log of bad requests is counted, and logged once, by `Serving`.
        self.logger = _quiet
        self._serving = serving
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # It is a socket's, though uvloop's is no asyncio.Transport by its class.
        super().connection_made(JoinedWrites(cast("asyncio.Transport", transport), self.loop.call_soon))
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        cycle: RequestResponseCycle | None = self.cycle
        is_in_head = cycle is None or cycle.response_complete
        if is_in_head:
            if self._head_timer is None:
                self._await_head()
            self._head_bytes += len(data)
        super().data_received(data)
        if is_in_head and self._head_bytes > _MAX_HEAD_BYTES and self._head_timer is not None:
            self._refuse(Problem(431, f"the head of a request takes {_MAX_HEAD_BYTES} bytes at most"))

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, msg, hint="This is the HTTP port; it speaks HTTP/1.1."))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self._serving.max_stalled_s, self._give_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self._serving.max_stalled_s, self._no_head)

    def _no_head(self) -> None:
        if self._head_bytes:
            self._refuse(Problem(408, "the head of the request stopped coming"))
        else:
            self.transport.close()

    def _give_up(self) -> None:
        self._serving.refused(self, "its answer was not read")
        self.transport.abort()

    def _refuse(self, problem: Problem) -> None:
        self._cancel_timers()
        self._serving.refused(self, str(problem))
        response = problem_response(problem, {"connection": "close"})
        head = b"".join(b"%b: %b\r\n" % pair for pair in response.raw_headers)
        status = f"HTTP/1.1 {problem.status} {problem.details.title}\r\n".encode()
        self.transport.write(status + head + b"\r\n" + bytes(response.body))
        self.transport.close()

    def _cancel_timers(self) -> None:
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._write_timer = None


_quiet: Final = logging.getLogger("ottla.http.uvicorn")
_quiet.disabled = True
