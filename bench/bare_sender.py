"""A server that answers every frame with the next piece of a file and does nothing else.

`writelines`: on uvloop, each piece read and handed to the transport. `sendfile`: on asyncio's own loop, which can; the
kernel sends the file.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import BinaryIO

import uvloop

from bench.do_nothing import Frames


class Pieces:
    """Positions of the pieces of a file, wrapping around."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file = file
        self.size = size
        self.head = size.to_bytes(4, "big")
        self._last = os.fstat(file.fileno()).st_size - size
        self._next = 0

    def next(self) -> int:
        position = self._next
        self._next = position + self.size if position + self.size <= self._last else 0
        return position


class Writelines(Frames):
    def __init__(self, pieces: Pieces) -> None:
        super().__init__()
        self._pieces = pieces
        self._fd = pieces.file.fileno()

    def answer(self, transport: asyncio.Transport) -> None:
        pieces = self._pieces
        transport.writelines([pieces.head, os.pread(self._fd, pieces.size, pieces.next())])


async def writelines(listener: socket.socket, pieces: Pieces) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Writelines(pieces), sock=listener)
    await server.serve_forever()


async def sendfile(listener: socket.socket, pieces: Pieces) -> None:
    loop = asyncio.get_running_loop()
    listener.settimeout(0)
    connection, _ = await loop.sock_accept(listener)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while await loop.sock_recv(connection, 1 << 16):
        await loop.sock_sendall(connection, pieces.head)
        await loop.sock_sendfile(connection, pieces.file, pieces.next(), pieces.size, fallback=False)


def main(how: str, path: Path, size: int) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    with path.open("rb") as file:
        pieces = Pieces(file, size)
        if how == "sendfile":
            asyncio.run(sendfile(listener, pieces))
        else:
            uvloop.run(writelines(listener, pieces))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
