"""`ottla serve` as a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ottla

if TYPE_CHECKING:
    from typing import Self

PATIENCE_S = 20.0


class Serve:
    """The process, ready to be connected to in a `with` block; killed at its end if it still runs."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.ready_file = folder / "ready.json"
        self.ready_line = ""
        self.ready: dict[str, Any] = {}
        self.stderr: Any = subprocess.PIPE
        self.program: tuple[str, ...] = ("-m", "ottla")
        self._arguments = arguments
        self.environment = environment

    def start(self) -> subprocess.Popen[str]:
        """Start it without waiting until it is ready."""
        self.ready_file.unlink(missing_ok=True)
        port = [] if "--listener" in self._arguments else ["--port", "0"]
        given = [*port, "--http-port", "-1", "--data-dir", self.data_dir, "--ready-file", self.ready_file]
        command = [sys.executable, *self.program, "serve", *map(str, given), *self._arguments]
        self.process = subprocess.Popen(
            command,
            cwd=self.folder,
            env={name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")}
            | {"PYTHONPATH": str(Path(ottla.__file__).parents[1])}
            | self.environment,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            text=True,
        )
        return self.process

    def __enter__(self) -> Self:
        self.start()
        assert self.process.stdout is not None
        self.ready_line = self.process.stdout.readline()
        deadline = time.monotonic() + PATIENCE_S
        while not self.ready_file.exists():
            assert time.monotonic() < deadline, self.output()
            assert self.process.poll() is None, self.output()
            time.sleep(0.002)
        self.ready = json.loads(self.ready_file.read_bytes())
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.output()

    @property
    def address(self) -> str:
        address: str = self.ready["kafka"]
        return address

    def terminate(self) -> int:
        """Ask it to stop, and wait: its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def output(self) -> tuple[str, str]:
        """Its output, once it has ended."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return out, err


def run(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run `ottla serve` until it exits: exit code, output, errors."""
    serve = Serve(folder, *arguments, **environment)
    process = serve.start()
    out, err = serve.output()
    return process.returncode, out, err
