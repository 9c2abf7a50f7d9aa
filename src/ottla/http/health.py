"""`GET /health`, and nothing else yet."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.net.addresses import Address, on_one_port

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_READ_TIMEOUT_S: Final = 10
_HEAD_BYTES: Final = 16 * 1024


class HealthServer:
    def __init__(self, broker: Broker, host: str, port: int) -> None:
        self._broker = broker
        self._server: asyncio.Server | None = None
        self.address = Address(host, port)

    async def start(self) -> None:
        host, port = self.address
        self._server, self.address = await on_one_port(
            lambda port: asyncio.start_server(self._serve, host, port, limit=_HEAD_BYTES), port
        )

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _READ_TIMEOUT_S)
            writer.write(self._answer(head.split(b"\r\n", 1)[0]))
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, request_line: bytes) -> bytes:
        method, _, rest = request_line.partition(b" ")
        path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
        if path != b"/health":
            return _response(b"404 Not Found", {"title": "only /health is served yet"})
        if method not in (b"GET", b"HEAD"):
            return _response(b"405 Method Not Allowed", {"title": "GET it"})
        health = {"status": "ok", "node_id": self._broker.config.node_id, "kafka": str(self._broker.address)}
        return _response(b"200 OK", health, with_body=method == b"GET")


def _response(status: bytes, body: dict[str, object], *, with_body: bool = True) -> bytes:
    content = msgspec.json.encode(body) + b"\n"
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, len(content)) + (content if with_body else b"")
