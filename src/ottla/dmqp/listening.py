"""A port for a shard."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Final

from ottla.dmqp.connection import ShardConnection

if TYPE_CHECKING:
    import ssl

    from ottla.dmqp.config import DmqpConfig
    from ottla.dmqp.service import DmqpService
    from ottla.dmqp.shard import Shard

_BACKLOG: Final = 128
_DRAIN_S: Final = 2.0


class ShardListener:
    def __init__(self, shard: Shard, service: DmqpService) -> None:
        self.shard = shard
        self.port = 0
        self._service = service
        self._server: asyncio.Server | None = None

    async def start(self, config: DmqpConfig, port: int, tls: ssl.SSLContext | None) -> None:
        """Bind the port, or a free one for 0; raises OSError if it is not available."""
        loop = asyncio.get_running_loop()
        [found, *_] = await loop.getaddrinfo(config.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Inherited by accepted sockets.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            listening.bind(address)
            self.port = listening.getsockname()[1]
            self._server = await loop.create_server(
                lambda: ShardConnection(self._service, self.shard),
                sock=listening,
                backlog=_BACKLOG,
                ssl=tls,
                ssl_handshake_timeout=config.timeout_ms / 1000 if tls else None,
            )
        except BaseException:
            listening.close()
            raise

    async def stop(self) -> None:
        """Stop accepting, answer received requests, close."""
        if self._server is None:
            return
        self._server.close()
        self.shard.is_closed = True
        try:
            async with asyncio.timeout(_DRAIN_S):
                while left := self._service.drain(self.shard):
                    await asyncio.wait([connection.gone for connection in left])
        except TimeoutError:
            for connection in self._service.drain(self.shard):
                connection.abort()
        await self.shard.stop()
