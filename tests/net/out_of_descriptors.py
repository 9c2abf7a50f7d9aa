"""A process with few descriptors that uses up and frees all of them on command."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from typing import Any

from ottla.net.config import NetConfig
from ottla.net.descriptors import connections_that_fit
from ottla.net.listener import Listener

from .conftest import LOOPS
from .serving import Obedient, frame

LIMIT = 64


class Greedy(Obedient):
    def __init__(self) -> None:
        super().__init__()
        self.taken: list[int] = []

    def answer(self, connection: Any, data: memoryview) -> Any:
        match bytes(data):
            case b"take":
                try:
                    while True:
                        self.taken.append(os.open(os.devnull, os.O_RDONLY))
                except OSError as refused:
                    return [frame(os.strerror(refused.errno or 0).encode())]
            case b"give back":
                while self.taken:
                    os.close(self.taken.pop())
        return super().answer(connection, data)


async def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard))
    listener = Listener(NetConfig(port=0), Greedy())
    await listener.start()
    print(listener.address.port, connections_that_fit(1000), flush=True)  # noqa: T201
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await listener.stop()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=LOOPS[sys.argv[1]]) as runner:
        runner.run(main())
