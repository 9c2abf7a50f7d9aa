"""Accepts connections, up to a limit, and closes those that do nothing."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ottla.net.connection import Connection
from ottla.wire.frame import SCRATCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ottla.net.config import NetConfig
    from ottla.wire.declare import AnyBytes

_logger: Final = logging.getLogger(__name__)

_SWEEP_S: Final = 1.0
_BACKLOG: Final = 1024


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Answering(Protocol):
    def answer(
        self, connection: Connection, frame: memoryview
    ) -> list[AnyBytes] | Awaitable[list[AnyBytes] | None] | None: ...

    def closed(self, connection: Connection) -> None: ...


class Listener:
    """One address on which clients are served; a `Service` for its connections."""

    def __init__(self, config: NetConfig, answering: Answering) -> None:
        self.config = config
        self.max_frame_bytes = config.max_frame_bytes
        self.scratch = bytearray(SCRATCH_BYTES)
        self.connections: set[Connection] = set()
        self.counts: Counter[str] = Counter()
        """How many connections were accepted, refused, broken, stalled, idle or failed so far."""
        self.answer = answering.answer
        self._answering = answering
        self._per_address: Counter[str] = Counter()
        self._reported: Counter[tuple[str, str]] = Counter()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self.address = Address(config.host, config.port)

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), self.config.host, self.config.port, backlog=_BACKLOG
        )
        host, port = self._server.sockets[0].getsockname()[:2]
        self.address = Address(host, port)
        self._sweep()

    async def stop(self, patience_s: float = 5.0) -> None:
        """Accept no more, let requests under way be answered, then close what is left."""
        if self._server is None:
            return
        self._server.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience_s
        for connection in list(self.connections):
            if not connection.is_busy:
                connection.close()
        while self.connections and loop.time() < deadline:
            await asyncio.sleep(0.01)
            for connection in list(self.connections):
                if not connection.is_busy:
                    connection.close()
        for connection in list(self.connections):
            connection.abort()
        self._server = None

    # What connections call

    def opened(self, connection: Connection) -> bool:
        host = connection.peer[0]
        self.connections.add(connection)
        self._per_address[host] += 1
        if len(self.connections) > self.config.max_connections:
            self._report("too many connections", connection, f"{self.config.max_connections} are allowed")
            return False
        if self._per_address[host] > self.config.max_connections_per_address:
            limit = self.config.max_connections_per_address
            self._report("too many connections from one address", connection, f"{limit} are allowed")
            return False
        self.counts["accepted"] += 1
        return True

    def closed(self, connection: Connection) -> None:
        self.connections.discard(connection)
        host = connection.peer[0]
        self._per_address[host] -= 1
        if not self._per_address[host]:
            del self._per_address[host]
        self._answering.closed(connection)

    def refused(self, connection: Connection, reason: Exception) -> None:
        self._report("bad request", connection, str(reason))

    def failed(self, connection: Connection, error: BaseException) -> None:
        self.counts["failed"] += 1
        _logger.error("a bug while answering %s:%s", *connection.peer, exc_info=error)

    def _report(self, what: str, connection: Connection, detail: str) -> None:
        """Count every case, and log the first of a kind from an address: a flood must not fill the disk."""
        self.counts[what] += 1
        kind = what, connection.peer[0]
        if len(self._reported) > 10_000:
            self._reported.clear()
        self._reported[kind] += 1
        if self._reported[kind] == 1:
            _logger.warning("%s from %s:%s, connection closed: %s", what, *connection.peer, detail)

    # Connections that do nothing

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        for connection in list(self.connections):
            idle_ms = connection.idle_s(now_s) * 1000
            if connection.is_stalled and idle_ms > self.config.max_stalled_ms:
                self._report("stalled", connection, f"nothing came or went for {idle_ms / 1000:.0f} s")
                connection.abort()
            elif idle_ms > self.config.max_idle_ms and not connection.is_busy:
                self.counts["idle"] += 1
                connection.close()
        self._sweeper = loop.call_later(_SWEEP_S, self._sweep)
