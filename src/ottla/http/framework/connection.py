"""uvicorn's HTTP protocol, with limits per client."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ottla.http.framework.connection_limiter import ConnectionLimiter
from ottla.http.framework.joined_writes import JoinedWrites
from ottla.http.framework.problems import Problem, problem_response

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send
    from uvicorn.config import Config
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
    from uvicorn.server import ServerState

_logger: Final = logging.getLogger(__name__)

_MAX_HEAD_BYTES: Final = 64 * 1024
_RESERVE: Final = 20
"""This many connections above the limit are accepted for health checks."""
_ALWAYS_ANSWERED: Final = ("/health", "/ready")
_MOST_REPORTED: Final = 10_000
CERTIFICATE: Final = "ottla.certificate"
"""Scope key of the client's certificate."""


class Limits:
    """Shared by all connections of a server."""

    def __init__(
        self,
        *,
        max_stalled_s: float,
        max_connections: int,
        max_connections_per_address: int,
        on_refused: Callable[[], None] = lambda: None,
    ) -> None:
        self.max_stalled_s = max_stalled_s
        self.limiter: ConnectionLimiter[LimitedConnection] = ConnectionLimiter(
            max_connections, max_connections_per_address, _RESERVE
        )
        self._on_refused = on_refused
        self._reported: set[str] = set()

    def refused(self, connection: LimitedConnection, reason: str) -> None:
        self._on_refused()
        if connection.address not in self._reported:
            if len(self._reported) >= _MOST_REPORTED:
                self._reported.clear()
            self._reported.add(connection.address)
            _logger.warning("HTTP connection from %s closed: %s", connection.address, reason)


class LimitedConnection(HttpToolsProtocol):
    """Limits size and time of a request's headers, and the time to read a response."""

    def __init__(
        self,
        limits: Limits,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any] | None = None,
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state or {}, _loop)
        # Bad requests are counted, and logged once, by `Limits` instead of uvicorn.
        self.logger = _quiet
        self._limits = limits
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        return self.client[0] if self.client else "?"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A socket transport, although uvloop's class is not a subclass of asyncio.Transport.
        super().connection_made(JoinedWrites(cast("asyncio.Transport", transport), self.loop.call_soon))
        arrival = self._limits.limiter.arrived(self, self.address)
        if arrival.close is not None:
            arrival.close.transport.close()
        if arrival.verdict == "refuse":
            self._limits.refused(self, "too many connections")
            self.transport.abort()
            return
        if arrival.verdict == "health only":
            self.app = _health_only(self.app)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timers()
        self._limits.limiter.left(self)
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
            self._refuse(Problem(431, f"request headers exceed {_MAX_HEAD_BYTES} bytes"))

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        self._limits.limiter.became_busy(self)
        # None without a client certificate.
        cast("dict[str, Any]", self.scope)[CERTIFICATE] = self.transport.get_extra_info("peercert")
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # otherwise a pipelined request has started
            self._limits.limiter.became_idle(self)

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, msg, hint="This is the HTTP port; it speaks HTTP/1.1."))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self._limits.max_stalled_s, self._give_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.max_stalled_s, self._no_head)

    def _no_head(self) -> None:
        if self._head_bytes:
            self._refuse(Problem(408, "the request headers stalled"))
        else:
            self.transport.close()

    def _give_up(self) -> None:
        self._limits.refused(self, "the response was not read")
        self.transport.abort()

    def _refuse(self, problem: Problem) -> None:
        self._cancel_timers()
        self._limits.refused(self, str(problem))
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


def _health_only(app: ASGIApp) -> object:
    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in _ALWAYS_ANSWERED:
            await app(scope, receive, send)
            return
        hint = "Close connections, or raise http.max_connections or http.max_connections_per_address."
        refusal = Problem(503, "too many connections", hint=hint)
        await problem_response(refusal, {"connection": "close", "retry-after": "1"})(scope, receive, send)

    return limited


_quiet: Final = logging.getLogger("ottla.http.uvicorn")
_quiet.disabled = True
