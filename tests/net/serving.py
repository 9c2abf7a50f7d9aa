"""A listener with a scripted handler, and a raw client."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ottla.core.errors import ProtocolError
from ottla.net.config import NetConfig
from ottla.net.listener import Listener

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ottla.net.connection import Connection

PATIENCE_S = 10.0
MIB = 1 << 20

_clients: list[Client] = []


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Obedient:
    """Echoes each frame, unless it starts with one of the commands below."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.gone: list[Connection] = []
        self.go_on = asyncio.Event()
        self.under_way = 0
        self.most_under_way = 0
        self.cancelled = 0

    def answer(self, _connection: Connection, data: memoryview) -> list[Any] | Awaitable[list[Any] | None] | None:
        what = bytes(data)
        self.asked.append(what[:40])
        word, _, rest = what.partition(b" ")
        match word:
            case b"nothing":
                return None
            case b"later":
                return self._later(what)
            case b"later-nothing":
                return self._later(None)
            case b"large":
                return [frame(bytes(int(rest)))]
            case b"parts":
                return [struct.pack(">i", len(rest)), *(rest[at : at + 1] for at in range(len(rest)))]
            case b"bad":
                raise ProtocolError("this is bad")
            case b"later-bad":
                return self._raise_later(ProtocolError("this is bad"))
            case b"bug":
                raise ValueError("a bug")
            case b"later-bug":
                return self._raise_later(ValueError("a bug"))
        return [frame(what)]

    async def _later(self, what: bytes | None) -> list[Any] | None:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1
        return None if what is None else [frame(what)]

    async def _raise_later(self, error: Exception) -> list[Any]:
        await self.go_on.wait()
        raise error

    def closed(self, connection: Connection) -> None:
        self.gone.append(connection)


class Client:
    """One connection that reads only on request."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def to(cls, listener: Listener, *, receive_buffer: int | None = None, host: str = "") -> Client:
        sock = socket.socket()
        sock.settimeout(0)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if host:
            sock.bind((host, 0))
        client = cls(sock)
        _clients.append(client)
        await asyncio.get_running_loop().sock_connect(sock, tuple(listener.address))
        return client

    async def send(self, data: bytes) -> None:
        await asyncio.wait_for(self._loop.sock_sendall(self.socket, data), PATIENCE_S)

    async def ask(self, payload: bytes) -> bytes:
        await self.send(frame(payload))
        return await self.receive()

    async def receive(self) -> bytes:
        """The next response."""
        [size] = struct.unpack(">i", await self.read(4))
        return await self.read(size)

    async def read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = await self._piece(size - len(data))
            assert piece, f"closed after {len(data)} of {size} bytes"
            data += piece
        return bytes(data)

    async def read_to_the_end(self) -> bytes:
        """All bytes until the connection is closed."""
        data = bytearray()
        while piece := await self._piece(MIB):
            data += piece
        return bytes(data)

    async def _piece(self, size: int) -> bytes:
        try:
            return await asyncio.wait_for(self._loop.sock_recv(self.socket, size), PATIENCE_S)
        except ConnectionError:
            return b""

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Abort the connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


@asynccontextmanager
async def listening(answering: Obedient, **settings: Any) -> AsyncIterator[Listener]:
    listener = Listener(NetConfig(port=0, **settings), answering)
    await listener.start()
    try:
        yield listener
    finally:
        await listener.stop(timeout_s=0.2)
        while _clients:
            _clients.pop().close()
        assert not listener.connections


async def until(holds: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.001)
