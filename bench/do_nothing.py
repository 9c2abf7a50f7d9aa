"""A server that reads a frame and returns a constant: the cost of the event loop and the kernel."""

from __future__ import annotations

import asyncio
import sys

import uvloop


class Frames(asyncio.BufferedProtocol):
    """Splits input into frames without parsing them."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._buffer = bytearray(1 << 20)
        self._have = 0

    def answer(self, transport: asyncio.Transport) -> None:
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # it is a socket's

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return memoryview(self._buffer)[self._have :]

    def buffer_updated(self, nbytes: int) -> None:
        self._have += nbytes
        at = 0
        while self._have - at >= 4:
            end = at + 4 + int.from_bytes(self._buffer[at : at + 4], "big")
            if end > self._have:
                break
            self.answer(self._transport)
            at = end
        self._buffer[: self._have - at] = self._buffer[at : self._have]
        self._have -= at


class DoNothing(Frames):
    def __init__(self, constant: bytes) -> None:
        super().__init__()
        self._constant = constant

    def answer(self, transport: asyncio.Transport) -> None:
        transport.write(self._constant)


async def main(answer: bytes) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: DoNothing(answer), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(bytes.fromhex(sys.argv[1])))
