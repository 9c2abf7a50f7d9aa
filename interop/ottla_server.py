"""`ottla serve` as users run it: in a separate process, on a free port, with accessible data."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ottla.records.batch import BatchHeader, read_header

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class OttlaServer:
    bootstrap: str
    data_dir: Path
    http: str | None
    """host:port, if it serves HTTP."""

    def batches(self, topic: str, partition: int) -> list[BatchHeader]:
        """The headers of what a producer's batches became on disk."""
        found: list[BatchHeader] = []
        for log in sorted((self.data_dir / f"{topic}-{partition}").glob("*.log")):
            content, at = log.read_bytes(), 0
            while at < len(content):
                found.append(read_header(content, at))
                at += found[-1].size
        return found


@contextmanager
def ottla_server(
    folder: Path, settings: Mapping[str, str] | None = None, *, serves_http: bool = False
) -> Iterator[OttlaServer]:
    """A clean stop is part of every test: a server that was harmed by its clients ends with another code."""
    ready, report = folder / "ready.json", folder / "ottla.log"
    ready.unlink(missing_ok=True)  # of a server that ran here before
    given = [part for key, value in (settings or {}).items() for part in ("--set", f"{key}={value}")]
    ports = ["--port", "0", "--http-port", "0" if serves_http else "-1"]
    places = [*ports, "--data-dir", str(folder / "data"), "--ready-file", str(ready)]
    with report.open("wb") as told:
        command = [sys.executable, "-m", "ottla", "serve", *places, *given]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=told, stderr=told)
    try:
        addresses = _wait_until_ready(process, ready, report)
        yield OttlaServer(addresses["kafka"], Path(addresses["data_dir"]), addresses.get("http"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_TIMEOUT_S) == 0, report.read_text()
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in report.read_text(), report.read_text()


def _wait_until_ready(process: subprocess.Popen[bytes], ready: Path, report: Path) -> dict[str, str]:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Ottla did not start: {report.read_text()}")
        time.sleep(POLL_S)
    addresses: dict[str, str] = json.loads(ready.read_bytes())
    return addresses
