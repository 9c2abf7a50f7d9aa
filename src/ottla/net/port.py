"""One port: its address, certificates and handler."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.core.ids import Address
from ottla.core.security import ANONYMOUS, TooManyConnections
from ottla.net.binding import bind_without_blocking
from ottla.net.config import parse_address
from ottla.net.connection import Connection

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Sequence

    from ottla.net.certificate_names import PrincipalRules
    from ottla.net.listener import Listener
    from ottla.net.listener_config import ListenerConfig
    from ottla.net.security_config import SecurityConfig
    from ottla.net.service import InPlace
    from ottla.net.tls import ServerTls
    from ottla.wire.declare import Sendable

    Answer = Callable[[Connection, memoryview], list[Sendable] | Awaitable[list[Sendable] | None] | None]

_BACKLOG: Final = 1024


class Port:
    """A `Service` for its connections; shared state is in the listener."""

    def __init__(
        self,
        listener: Listener,
        config: ListenerConfig,
        answer: Answer,
        security: SecurityConfig,
        bound: Sequence[socket.socket] = (),
    ) -> None:
        """`bound` sockets are served instead of binding the configured address at the start."""
        self.config = config
        self.name: str = config.protocol
        self.address = Address(config.host, config.port)
        self.advertised = Address(*parse_address(config.advertised)) if config.advertised else None
        self.answer = answer
        self.max_frame_bytes = listener.max_frame_bytes
        self.needs_login = config.uses_sasl
        self.scratch = listener.scratch
        self.in_place: InPlace | None = None
        self.sends_files = not config.uses_tls
        self.opened = self._known if config.uses_tls and config.client_certificates != "none" else listener.opened
        self.closed = listener.closed
        self.refused = listener.refused
        self.failed = listener.failed
        self.half_received = listener.half_received
        self.slowed = listener.slowed
        self.caught_up = listener.caught_up
        self.tls = _tls(config, security)
        self._rules = _rules(config)
        self._listener = listener
        self._bound = bound
        self._servers: list[asyncio.Server] = []

    async def start(self, handshake_s: float) -> None:
        bound = self._bound
        if not bound:
            bound = await bind_without_blocking(self.config.host, self.config.port)
            self.address = Address(*min(bound, key=lambda one: one.family).getsockname()[:2])
        tls = self.tls
        for each in bound:
            server = await asyncio.get_running_loop().create_server(
                lambda: Connection(self),
                sock=each,
                backlog=_BACKLOG,
                ssl=None if tls is None else tls.context,
                ssl_handshake_timeout=None if tls is None else handshake_s,
            )
            self._servers.append(server)

    def close(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    def _known(self, connection: Connection) -> bool:
        """Whether to accept a client. Its certificate, if any, determines its principal."""
        if not self._listener.opened(connection):
            return False
        certificate = connection.certificate
        if certificate is None or self._rules is None:
            connection.principal = ANONYMOUS
            return True
        user = self._rules.user_in(certificate)
        if user is None:
            from ottla.net.certificate_names import names_in

            names = names_in(certificate, self.config.principal_sources or ())
            self._listener.report("unknown certificate", connection, f"no rule of principal_rules matches {names!r}")
            return False
        try:
            self._listener.check_room(f"User:{user}")
        except TooManyConnections as refused:
            self._listener.report("too many connections of one user", connection, str(refused))
            return False
        connection.principal = f"User:{user}"
        return True


def _tls(config: ListenerConfig, security: SecurityConfig) -> ServerTls | None:
    if not config.uses_tls:
        return None
    from ottla.net.tls import ServerTls

    return ServerTls(config, security)


def _rules(config: ListenerConfig) -> PrincipalRules | None:
    if not config.uses_tls:
        return None
    from ottla.net.certificate_names import PrincipalRules

    return PrincipalRules(config.principal_rules or ("DEFAULT",), config.principal_sources or ("subject",))
