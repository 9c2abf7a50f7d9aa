"""Install a wheel in a fresh environment, without a compiler, and send a first message; prints the times.

python tools/try_wheel.py dist/ottla-*.whl [PYTHON...]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_PATIENCE_S = 60


def first_message(wheel: Path, python: str) -> dict[str, float]:
    """Seconds from nothing to each step."""
    began = time.monotonic()
    times: dict[str, float] = {}

    def done(step: str) -> None:
        times[step] = round(time.monotonic() - began, 1)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # No compiler can be found, and nothing of this repository.
        clean = {"PATH": str(folder / "venv" / "bin"), "HOME": name, "CC": "/bin/false"}
        clean |= {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_", "http", "no_"))}
        _run([python, "-m", "venv", str(folder / "venv")], None, folder)
        done("environment")
        _run([str(folder / "venv" / "bin" / "pip"), "install", "-q", str(wheel.resolve())], clean, folder)
        done("installed")
        ottla = str(folder / "venv" / "bin" / "ottla")
        ready = folder / "ready.json"
        command = [ottla, "serve", "--ephemeral", "--ready-file", str(ready)]
        with subprocess.Popen(command, env=clean, cwd=folder, stdout=subprocess.DEVNULL) as broker:
            try:
                while not ready.exists():
                    if broker.poll() is not None or time.monotonic() - began > _PATIENCE_S:
                        raise SystemExit(f"{python}: the broker did not start")
                    time.sleep(0.01)
                done("broker ready")
                clean["OTTLA_BROKER"] = json.loads(ready.read_bytes())["kafka"]
                _run([ottla, "produce", "orders"], clean, folder, "two coffees\n")
                read = _run([ottla, "consume", "orders", "--from", "earliest", "--exit"], clean, folder)
                done("first message")
            finally:
                broker.terminate()
        if read != "two coffees\n":
            raise SystemExit(f"{python}: consumed {read!r}")
    return times


def _run(command: list[str], environment: dict[str, str] | None, folder: Path, given: str = "") -> str:
    done = subprocess.run(
        command,
        env=environment,
        cwd=folder,
        input=given,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def main() -> None:
    wheel, *pythons = sys.argv[1:]
    for python in pythons or [sys.executable]:
        times = first_message(Path(wheel), python)
        print(f"{python}: " + ", ".join(f"{step} {after} s" for step, after in times.items()))


if __name__ == "__main__":
    main()
