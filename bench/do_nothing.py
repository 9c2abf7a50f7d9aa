"""A server that reads a frame and answers a constant: what the loop and the kernel take by themselves."""

from __future__ import annotations

import asyncio
import sys

import uvloop


class DoNothing(asyncio.BufferedProtocol):
    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._buffer = bytearray(1 << 20)
        self._have = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return memoryview(self._buffer)[self._have :]

    def buffer_updated(self, nbytes: int) -> None:
        self._have += nbytes
        at = 0
        while self._have - at >= 4:
            end = at + 4 + int.from_bytes(self._buffer[at : at + 4], "big")
            if end > self._have:
                break
            self._transport.write(self._answer)  # type: ignore[attr-defined]
            at = end
        self._buffer[: self._have - at] = self._buffer[at : self._have]
        self._have -= at


async def main(answer: bytes) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: DoNothing(answer), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(bytes.fromhex(sys.argv[1])))
