"""`ottla serve` as a process that is stopped, killed and started again, always on the same port and folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Self

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
# Below the range that outgoing connections take theirs from, or one of them might have it when we come back.
PORTS = range(20_000, 32_000)
SETTINGS = {"broker.retention_check_interval_ms": 1000, "broker.checkpoint_interval_ms": 5000}


def free_port(rng: Random) -> int:
    while True:
        port = rng.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class BrokerProcess:
    def __init__(self, folder: Path, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.log = folder / "stderr.txt"
        self.starts = 0
        self._ready = folder / "ready.json"
        self._folder = folder
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT_S)

    def start(self) -> None:
        self._ready.unlink(missing_ok=True)
        options = ["--port", self._port, "--http-port", -1, "--data-dir", self._folder / "data"]
        settings = [f"--set={name}={value}" for name, value in SETTINGS.items()]
        command = [sys.executable, "-m", "ottla", "serve", *map(str, options), "--ready-file", str(self._ready)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen([*command, *settings], stdout=subprocess.DEVNULL, stderr=log)
        self.starts += 1
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._ready.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the broker did not start; see {self.log}")
            time.sleep(0.005)

    def end(self, how: signal.Signals) -> int:
        """Its exit code, or minus the signal that ended it."""
        assert self._process is not None
        self._process.send_signal(how)
        return self._process.wait(STOP_TIMEOUT_S)

    @property
    def resident_bytes(self) -> int:
        assert self._process is not None
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
