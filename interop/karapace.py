"""Karapace, another schema registry, in a separate process: $KARAPACE names a Python interpreter that has it.

It is not on the package index, and needs Python 3.12: `python3.12 -m venv karapace`, then
`karapace/bin/pip install FOLDER` with a checkout of its repository.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from ottla.cluster.server import free_port

_PATIENCE_S = 120.0
_POLL_S = 0.02


def karapace_python() -> str | None:
    """The interpreter that $KARAPACE names."""
    return os.environ.get("KARAPACE")


@contextmanager
def karapace_on(python: str, kafka: str, log: Path) -> Iterator[str]:
    """The URL of a Karapace that keeps its schemas in this broker's `_schemas`, once it accepts schemas."""
    port = free_port()
    settings = {
        "KARAPACE_BOOTSTRAP_URI": kafka,
        "KARAPACE_PORT": str(port),
        "KARAPACE_HOST": "127.0.0.1",
        "KARAPACE_ADVERTISED_HOSTNAME": "127.0.0.1",
        "KARAPACE_ADVERTISED_PORT": str(port),
        "KARAPACE_LOG_LEVEL": "WARNING",
        "KARAPACE_KARAPACE_REGISTRY": "true",
    }
    url = f"http://127.0.0.1:{port}"
    environment = {**os.environ, **settings}
    with log.open("wb") as told:
        process = subprocess.Popen([python, "-m", "karapace"], env=environment, stdout=told, stderr=told)
    try:
        _wait_until_it_accepts_schemas(process, url, log)
        yield url
    finally:
        process.kill()
        process.wait()


def _wait_until_it_accepts_schemas(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while not _accepts_schemas(url):
        if process.poll() is not None or time.monotonic() > deadline_s:
            raise RuntimeError(f"Karapace did not start: {log.read_text()[-2000:]}")
        time.sleep(_POLL_S)


def _accepts_schemas(url: str) -> bool:
    """It listens before it may write."""
    try:
        body = {"schema": '"int"'}
        return httpx.post(f"{url}/subjects/ready/versions", json=body, timeout=10).status_code == 200
    except httpx.HTTPError:
        return False
