"""Brokers and consumers in separate processes, so that they can be killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import ottla

from .adapters.base import PATIENCE_S

if TYPE_CHECKING:
    from typing import Self

_ROOT: Final = Path(__file__).parents[2]
_ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": str(Path(ottla.__file__).parents[1])}


class Process:
    """Runs a module as a process; it is ready once it has printed its first line."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *arguments], cwd=_ROOT, env=_ENVIRONMENT, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.first_line = self._process.stdout.readline()
        assert self.first_line, f"it ended with {self._process.wait(PATIENCE_S)} before it was ready"

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()
        self._ended()

    def stop(self) -> None:
        self._process.terminate()
        assert self._ended() == 0

    def _ended(self) -> int:
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()


class Server:
    """`ottla serve`, which can be restarted on the same port with the same folder."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self._folder = folder
        self._settings = [f"--set={each}" for each in settings]
        self._port = "0"
        self._process = self._start()
        found = re.search(r"Kafka on (\S+?:(\d+))", self._process.first_line)
        assert found, self._process.first_line
        self.address, self._port = found.groups()

    def _start(self) -> Process:
        return Process(
            *("ottla", "serve", "--data-dir", str(self._folder), "--port", self._port, "--http-port", "-1"),
            *self._settings,
        )

    def move(self, port: int) -> None:
        """The port to use after the next restart."""
        self._port = str(port)

    def restart(self, how: str) -> None:
        if how == "kill":
            self._process.kill()
        else:
            self._process.stop()
        self._process = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *arguments: object) -> None:
        self._process.__exit__(*arguments)
