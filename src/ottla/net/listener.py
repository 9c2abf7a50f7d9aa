"""Accepts connections on all ports, within limits, and closes idle ones."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol

from ottla.core.ids import Address
from ottla.core.security import TooManyConnections
from ottla.net.binding import bind_without_blocking
from ottla.net.descriptors import connections_that_fit
from ottla.net.held import HeldBytes
from ottla.net.port import Port
from ottla.net.rates import Rates
from ottla.net.security_config import SecurityConfig
from ottla.wire.frame import SCRATCH_BYTES

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Sequence

    from ottla.net.config import NetConfig
    from ottla.net.connection import Connection
    from ottla.net.listener_config import ListenerConfig
    from ottla.net.port import Answer
    from ottla.net.service import InPlace
    from ottla.wire.declare import Sendable

_logger: Final = logging.getLogger(__name__)

_SWEEPS: Final = 5
"""How many times a connection is checked before it counts as idle."""
_LONGEST_SWEEP_S: Final = 1.0
_SWEPT_IN_A_ROW: Final = 200
_MOST_REPORTS: Final = 10_000


class Answering(Protocol):
    def answer(
        self, connection: Connection, frame: memoryview
    ) -> list[Sendable] | Awaitable[list[Sendable] | None] | None: ...

    def closed(self, connection: Connection) -> None: ...


class Listener:
    """All ports, and the shared state of their connections."""

    def __init__(
        self,
        config: NetConfig,
        answering: Answering,
        security: SecurityConfig | None = None,
        gate: Callable[[ListenerConfig], Answer] | None = None,
        bound: Sequence[Sequence[socket.socket]] = (),
    ) -> None:
        """`gate` handles ports that require authentication. Each port may already be `bound`."""
        self.config = config
        self.max_frame_bytes = config.max_frame_bytes
        self.scratch = bytearray(SCRATCH_BYTES)
        self.connections: set[Connection] = set()
        self.counts: Counter[str] = Counter()
        """The number of connections accepted, refused, broken, stalled, idle or failed."""
        self.held: HeldBytes[Connection] = HeldBytes(config.max_held_bytes, self.connections, self._let_go_of)
        self.half_received = self.held.half_received
        self.slowed = self.held.slowed
        self.caught_up = self.held.caught_up
        self._answering = answering
        self._most_connections = config.max_connections
        self._per_address: Counter[str] = Counter()
        self._limits = config.connections_by_address()
        self._reported: set[tuple[str, str]] = set()
        self.rates = Rates(config.max_connection_rate_per_address)
        security = security or SecurityConfig()
        self.ports = [
            Port(
                self,
                one,
                gate(one) if gate is not None and one.uses_sasl else answering.answer,
                security,
                bound[index] if bound else (),
            )
            for index, one in enumerate(config.all_listeners(security))
        ]
        self._sweeper: asyncio.Task[None] | None = None
        self._is_started = False
        self._is_stopping = False
        self._all_gone = asyncio.Event()

    async def start(self) -> None:
        self._most_connections = connections_that_fit(self.config.max_connections)
        try:
            for port in self.ports:
                await port.start(self.config.max_stalled_ms / 1000)
        except OSError as refused:
            for port in self.ports:
                port.close()
            refused.add_note(str(Address(port.config.host, port.config.port)))
            raise
        self._is_started = True
        self._sweeper = asyncio.create_task(self._sweep())

    async def bind(self, address: Address) -> list[socket.socket]:
        """Bind a port of another protocol, on all addresses of the host."""
        return await bind_without_blocking(*address)

    def serve_in_place(self, in_place: InPlace | None) -> None:
        """Answer requests in the receive buffer, on the ports without a gate."""
        for port in self.ports:
            port.in_place = None if port.needs_login else in_place

    @property
    def address(self) -> Address:
        """The address of the first port."""
        return self.ports[0].address

    def drain(self) -> None:
        """Stop accepting, and close each connection once its received requests are answered."""
        if not self._is_started or self._is_stopping:
            return
        self._is_stopping = True
        for port in self.ports:
            port.close()
        for connection in list(self.connections):
            connection.finish()

    async def stop(self, timeout_s: float = 5.0) -> None:
        """Drain for up to this long, then close the rest."""
        self.drain()
        if not await self._are_all_gone(timeout_s):
            for connection in list(self.connections):
                connection.abort()
            await self._are_all_gone(timeout_s)
        if self._sweeper is not None:
            self._sweeper.cancel()

    async def _are_all_gone(self, timeout_s: float) -> bool:
        if self.connections:
            self._all_gone.clear()
            try:
                await asyncio.wait_for(self._all_gone.wait(), timeout_s)
            except TimeoutError:
                return False
        return True

    # Called by connections; see also `held`

    def opened(self, connection: Connection) -> bool:
        host = connection.peer[0]
        self.connections.add(connection)
        self._per_address[host] += 1
        if self._is_stopping:
            return False
        if len(self.connections) > self._most_connections:
            self.report("too many connections", connection, f"the limit is {self._most_connections}")
            return False
        limit = self._limits.get(host, self.config.max_connections_per_address)
        if self._per_address[host] > limit:
            self.report("too many connections from one address", connection, f"the limit is {limit}")
            return False
        if self.rates.is_on and not self.rates.admits(host, asyncio.get_running_loop().time()):
            self.report("too many new connections", connection, "connection rate limit of the address exceeded")
            return False
        self.counts["accepted"] += 1
        return True

    def check_room(self, principal: str) -> None:
        """Raise TooManyConnections if this user has reached its connection limit."""
        most = self.config.max_connections_per_user
        if most and sum(one.principal == principal for one in self.connections) >= most:
            raise TooManyConnections(f"{principal} has {most} connections; net.max_connections_per_user is {most}")

    def closed(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.caught_up(connection)
        host = connection.peer[0]
        self._per_address[host] -= 1
        if not self._per_address[host]:
            del self._per_address[host]
        self._answering.closed(connection)
        if not self.connections:
            self._all_gone.set()

    def refused(self, connection: Connection, reason: Exception) -> None:
        self.report("bad request", connection, str(reason))

    def failed(self, connection: Connection, error: BaseException) -> None:
        self.counts["failed"] += 1
        if self._is_news(f"failed {type(error).__name__}", connection):
            _logger.error("internal error while answering %s:%s", *connection.peer, exc_info=error)

    def report(self, what: str, connection: Connection, detail: str) -> None:
        """Count the event, and log the first of its kind from each address."""
        self.counts[what] += 1
        if self._is_news(what, connection):
            _logger.warning("%s from %s:%s, connection closed: %s", what, *connection.peer, detail)

    def _is_news(self, what: str, connection: Connection) -> bool:
        """Whether the event is the first of its kind from this address: a flood must not fill the disk."""
        kind = what, connection.peer[0]
        if kind in self._reported:
            return False
        if len(self._reported) >= _MOST_REPORTS:
            self._reported.clear()
        self._reported.add(kind)
        return True

    def _let_go_of(self, connection: Connection) -> None:
        limit = self.config.max_held_bytes
        self.report("too much held", connection, f"the limit of all slow clients together is {limit} bytes")
        connection.abort()

    # Idle connections

    async def _sweep(self) -> None:
        soonest_s = min(self.config.max_stalled_ms, self.config.max_idle_ms) / 1000
        pause_s = min(soonest_s / _SWEEPS, _LONGEST_SWEEP_S)
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(pause_s)
            for port in self.ports:
                if port.tls is not None:
                    port.tls.reload_if_changed()
            for number, connection in enumerate(list(self.connections), 1):
                self._close_if_quiet(connection, loop.time())
                if number % _SWEPT_IN_A_ROW == 0:
                    await asyncio.sleep(0)

    def _close_if_quiet(self, connection: Connection, now_s: float) -> None:
        quiet_ms = connection.quiet_s(now_s) * 1000
        if quiet_ms > self.config.max_stalled_ms and connection.is_stalled:
            self.report("stalled", connection, f"no progress for {quiet_ms / 1000:.0f} s")
            connection.abort()
        elif quiet_ms > self.config.max_idle_ms and not connection.is_busy:
            self.counts["idle"] += 1
            connection.close()
