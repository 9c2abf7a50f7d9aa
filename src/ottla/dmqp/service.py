"""Shared by all connections of the server: limits, memory, and idle timeouts."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from ottla.broker.interfaces.in_process_requests import LocalClient
from ottla.broker.interfaces.protocol_servers import ShardStats

if TYPE_CHECKING:
    import ssl

    from ottla.broker.broker import Broker
    from ottla.dmqp.config import DmqpConfig
    from ottla.dmqp.connection import ShardConnection
    from ottla.dmqp.shard import Shard

_logger: Final = logging.getLogger(__name__)

_SWEEPS: Final = 8
"""How many times a connection is checked before it is closed."""
_LONGEST_PAUSE_S: Final = 1.0
_MOST_REPORTS: Final = 1000


class Certificates(Protocol):
    context: ssl.SSLContext

    def reload_if_changed(self) -> None: ...


def _tls(config: DmqpConfig, broker: Broker) -> Certificates | None:
    if not config.cert_file:
        return None
    from ottla.broker.security.shard_tls import shard_tls  # imported lazily

    files = config.cert_file, config.key_file, config.client_ca_file
    return shard_tls(broker.settings.security, config.host, *files)


class DmqpService:
    def __init__(self, config: DmqpConfig, broker: Broker) -> None:
        self._config = config
        self._broker = broker
        self.stats = ShardStats()
        self.connections: set[ShardConnection] = set()
        self._held_bytes = 0
        self._reported: set[tuple[str, str]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self.tls = _tls(config, broker)

    def start(self) -> None:
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    def stop(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()

    def drain(self, shard: Shard) -> list[ShardConnection]:
        """Let the connections answer received requests; returns the remaining connections."""
        mine = [connection for connection in self.connections if connection.shard is shard]
        for connection in mine:
            connection.finish()
        return mine

    # Called by connections

    def opened(self, connection: ShardConnection) -> bool:
        if connection.shard.is_closed:
            return False
        if len(self.connections) >= self._config.max_connections:
            self.refused(connection, f"the limit of {self._config.max_connections} connections is reached")
            return False
        if self._config.authorize_clients and not self._identify(connection):
            return False
        self.connections.add(connection)
        self.stats.connections = len(self.connections)
        return True

    def _identify(self, connection: ShardConnection) -> bool:
        user = self._broker.security.user_in(connection.certificate or {})
        if user is None:
            self.refused(connection, "no rule of security.principal_rules fits its certificate")
            return False
        connection.client = LocalClient(self._broker, "dmqp", connection.peer, f"User:{user}")
        return True

    def closed(self, connection: ShardConnection) -> None:
        self.connections.discard(connection)
        self.stats.connections = len(self.connections)

    def refused(self, connection: ShardConnection, reason: str) -> None:
        if self._is_news(connection, reason):
            _logger.warning("DMQP connection from %s closed: %s", connection.peer[0], reason)

    def failed(self, connection: ShardConnection, error: BaseException) -> None:
        if self._is_news(connection, type(error).__name__):
            _logger.error("internal error while answering %s over DMQP", connection.peer[0], exc_info=error)

    def holds(self, connection: ShardConnection, more: int) -> bool:
        self._held_bytes += more
        if more <= 0 or self._held_bytes <= self._config.max_held_bytes:
            return True
        self.refused(connection, f"the limit of {self._config.max_held_bytes} bytes held for all clients is reached")
        return False

    def _is_news(self, connection: ShardConnection, reason: str) -> bool:
        """Whether the event is the first of its kind from this address: a flood must not fill the disk."""
        kind = connection.peer[0], reason
        if kind in self._reported:
            return False
        if len(self._reported) >= _MOST_REPORTS:
            self._reported.clear()
        self._reported.add(kind)
        return True

    # Idle connections

    async def _sweep(self) -> None:
        timeout_s = self._config.timeout_ms / 1000
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(timeout_s / _SWEEPS, _LONGEST_PAUSE_S))
            if self.tls is not None:
                self.tls.reload_if_changed()
            for connection in list(self.connections):
                if connection.is_late(loop.time(), timeout_s):
                    connection.abort()
