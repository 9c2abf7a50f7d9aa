"""Install a wheel in a fresh environment, without a compiler, and do what a newcomer does; prints the times.

First a message; then the commands and Python examples of the README, the tutorial and the page about backups.

python tools/try_wheel.py dist/ottla-*.whl [PYTHON...]
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE_S: Final = 60
_ROOT: Final = Path(__file__).resolve().parent.parent
_PAGES: Final = ("README.md", "docs/tutorial.md", "docs/backup.md")
_BLOCK: Final = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_HERE: Final = ("pip install", "ottla serve", "ottla log dump data", "ottla pipeline")
"""Done before, or in need of a data folder or of Spark."""
_OTHER_CLIENTS: Final = ("confluent_kafka", "Shop(", "def test_")


class Installed(NamedTuple):
    bin: Path
    environment: dict[str, str]
    """No compiler can be found, and nothing of this repository."""

    def run(self, *command: str, folder: Path, given: str = "", **more: str) -> str:
        return _run([str(self.bin / command[0]), *command[1:]], self.environment | more, folder, given)


def install(wheel: Path, python: str, folder: Path) -> Installed:
    bin_folder = folder / "venv" / "bin"
    clean = {"PATH": str(bin_folder), "HOME": str(folder), "CC": "/bin/false"}
    clean |= {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_", "http", "no_"))}
    _run([python, "-m", "venv", str(folder / "venv")], None, folder)
    installed = Installed(bin_folder, clean)
    installed.run("pip", "install", "-q", str(wheel.resolve()), folder=folder)
    return installed


@contextmanager
def serving(installed: Installed, folder: Path) -> Iterator[str]:
    """The address of a broker."""
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    began = time.monotonic()
    command = [str(installed.bin / "ottla"), "serve", "--ephemeral", "--ready-file", str(ready)]
    with subprocess.Popen(command, env=installed.environment, cwd=folder, stdout=subprocess.DEVNULL) as broker:
        try:
            while not ready.exists():
                if broker.poll() is not None or time.monotonic() - began > _PATIENCE_S:
                    raise SystemExit("the broker did not start")
                time.sleep(0.01)
            yield json.loads(ready.read_bytes())["kafka"]
        finally:
            broker.terminate()


def first_message(wheel: Path, python: str, folder: Path) -> tuple[Installed, dict[str, float]]:
    """Seconds from nothing to each step."""
    began = time.monotonic()
    times: dict[str, float] = {}

    def done(step: str) -> None:
        times[step] = round(time.monotonic() - began, 1)

    installed = install(wheel, python, folder)
    done("installed")
    with serving(installed, folder) as servers:
        done("broker ready")
        installed.run("ottla", "produce", "orders", folder=folder, given="two coffees\n", OTTLA_BROKER=servers)
        reading = ("ottla", "consume", "orders", "--from", "earliest", "--exit")
        read = installed.run(*reading, folder=folder, OTTLA_BROKER=servers)
        done("first message")
    if read != "two coffees\n":
        raise SystemExit(f"{python}: consumed {read!r}")
    return installed, times


def follow(page: str, installed: Installed, folder: Path) -> Iterator[tuple[str, float]]:
    """Run the examples of a page in order; yields each with its seconds. Ends the program if one fails."""
    text = (_ROOT / page).read_text(encoding="utf-8")
    with serving(installed, folder) as servers:
        shell = {"OTTLA_BROKER": servers, "PATH": f"{installed.bin}:/usr/bin:/bin"}
        for kind, block in _BLOCK.findall(text):
            for example in [block] if kind == "python" else re.findall(r"^\$ (.*)$", block, re.MULTILINE):
                if example.startswith(_NOT_HERE) or any(other in example for other in _OTHER_CLIENTS):
                    continue
                began = time.monotonic()
                source = example.replace("localhost:9092", servers)
                if kind == "python":
                    installed.run("python", "-c", _bounded(source), folder=folder)
                else:
                    _run(["bash", "-c", source], installed.environment | shell, folder)
                yield example.splitlines()[0], time.monotonic() - began


def _bounded(example: str) -> str:
    """A loop over a consumer never ends: stop after its first record."""
    return re.sub(r"(?m)^(        print\(record\..*\))$", r"\1\n        break", example)


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
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            installed, times = first_message(Path(wheel), python, folder)
            print(f"{python}: " + ", ".join(f"{step} {after} s" for step, after in times.items()))
            for page in _PAGES:
                print(page)
                for example, took_s in follow(page, installed, folder):
                    print(f"  {took_s:5.2f} s  {example}")


if __name__ == "__main__":
    main()
