#!/usr/bin/env python3
"""What `docker` does for OttlaContainer, with a process in place of a container."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def run(arguments: list[str]) -> None:
    variables = {}
    while arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option != "--detach":
            value = arguments.pop(0)
            if option == "--env":
                name, _, variables[name] = value.partition("=")
    image, *command = arguments
    if image == "missing":
        sys.exit("Unable to find image 'missing:latest' locally")
    with tempfile.NamedTemporaryFile("w", prefix="fake-docker-", delete=False) as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla", *command],
            env={**os.environ, **variables},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    print(f"{process.pid}:{log.name}")  # noqa: T201


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def main() -> None:
    verb, *arguments = sys.argv[1:]
    if verb == "run":
        run(arguments)
        return
    pid, _, log = arguments[-1].partition(":")
    if verb == "inspect":
        print(str(is_running(pid)).lower())  # noqa: T201
    elif verb == "logs":
        print(Path(log).read_text())  # noqa: T201
    elif verb == "rm":
        if is_running(pid):
            os.kill(int(pid), 15)
        Path(log).unlink()


if __name__ == "__main__":
    main()
