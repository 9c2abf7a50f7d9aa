"""Commands on a terminal: a pseudo-terminal of forty columns."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING

import ottla

if TYPE_CHECKING:
    from .conftest import Cli

COLUMNS = 40
PATIENCE_S = 30
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def on_a_terminal(cli: Cli, *arguments: str, typed: bytes = b"", **environment: str) -> tuple[int, str]:
    """Exit code and all output."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, COLUMNS))
    inherited = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR"}}
    process = subprocess.Popen(
        [sys.executable, "-m", "ottla", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=inherited
        | {"PYTHONPATH": str(Path(ottla.__file__).parents[1]), "OTTLA_BROKER": cli.servers, "TERM": "xterm"}
        | environment,
    )
    os.close(theirs)
    os.write(ours, typed)
    seen = b""
    try:
        while part := os.read(ours, 65536):
            seen += part
    except OSError:  # on Linux: the other end was closed
        pass
    os.close(ours)
    return process.wait(PATIENCE_S), seen.decode().replace("\r\n", "\n")


def test_a_table_has_a_bold_heading_and_fits_the_terminal(cli: Cli) -> None:
    cli("topic", "create", "a" * 60)
    code, seen = on_a_terminal(cli, "topic", "list")
    assert code == 0
    assert seen.startswith("\x1b[1mTOPIC ")
    assert all(len(line) <= COLUMNS for line in ESCAPES.sub("", seen).splitlines())
    assert "a…  " in seen


def test_colours_can_be_disabled(cli: Cli) -> None:
    assert "\x1b" not in on_a_terminal(cli, "topic", "list", NO_COLOR="1")[1]


def test_deletion_prompts_for_confirmation(cli: Cli) -> None:
    cli("topic", "create", "precious")
    code, seen = on_a_terminal(cli, "topic", "delete", "precious", typed=b"n\n")
    assert code == 1
    assert seen.endswith("nothing was changed\n")
    code, seen = on_a_terminal(cli, "topic", "delete", "precious", typed=b"y\n")
    assert code == 0
    assert seen.endswith("precious deleted\n")


def test_long_work_shows_its_progress(cli: Cli) -> None:
    code, seen = on_a_terminal(cli, "bench", "-n", "512", "--rate", "5000", "--seconds", "20")
    assert code == 0
    assert "Producing" in seen
    assert "100%" in seen
