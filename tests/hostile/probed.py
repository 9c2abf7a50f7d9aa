"""`ottla serve` in a process that measures how long its event loop is blocked.

Run as a module with a file for the result and the arguments of `ottla`. It uses asyncio's loop, whose callbacks can be
timed, and the CPU time of the loop's thread, so that other load on the machine does not count.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from mmap import mmap
from pathlib import Path
from time import thread_time
from typing import NamedTuple

from tests.cli.serving import Serve

import ottla

_SECONDS = struct.Struct("d")


class Cost(NamedTuple):
    """The cost of a request: the longest CPU time of a callback, and the memory growth."""

    held_s: float
    grown_bytes: int


class Probed(Serve):
    """A broker that reports the cost of requests."""

    def start(self):  # type: ignore[no-untyped-def]  # noqa: ANN201 - as Serve
        result = self.folder / "held.bin"
        result.write_bytes(bytes(_SECONDS.size))
        self.program = ("-m", "tests.hostile.probed", str(result))
        sources = (Path(ottla.__file__).parents[1], Path(__file__).parents[2])
        self.environment["PYTHONPATH"] = os.pathsep.join(map(str, sources))
        # Not a pipe, which would stop the broker once it is full.
        self.log = self.folder / "log"
        with self.log.open("w") as self.stderr:
            process = super().start()
        with result.open("r+b") as file:
            self._held = mmap(file.fileno(), _SECONDS.size)
        return process

    def begin(self) -> None:
        """Reset the measurement and record the memory in use."""
        _SECONDS.pack_into(self._held, 0, 0.0)
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        self._before = self._status("VmRSS")

    def cost(self) -> Cost:
        """The cost since `begin`."""
        return Cost(_SECONDS.unpack_from(self._held)[0], max(self._status("VmHWM") - self._before, 0))

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        [value] = [line.split()[1] for line in lines if line.startswith(name + ":")]
        return int(value) * 1024


def _measure(path: str) -> None:
    file = Path(path).open("r+b")  # noqa: SIM115 - for as long as the process lives
    held = mmap(file.fileno(), _SECONDS.size)
    run = asyncio.events.Handle._run

    def measured(self: asyncio.Handle) -> None:
        began_s = thread_time()
        run(self)
        spent_s = thread_time() - began_s
        if spent_s > _SECONDS.unpack_from(held)[0]:
            _SECONDS.pack_into(held, 0, spent_s)

    asyncio.events.Handle._run = measured  # type: ignore[method-assign]


def main() -> None:
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # as if it were not installed
    result, sys.argv[1:] = sys.argv[1], sys.argv[2:]
    _measure(result)
    from ottla.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
