"""The examples in docs/command-line.md work as documented."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ottla
from ottla.cli.main import COMMANDS
from ottla.cli.profiles import Profile
from ottla.core.config_docs import field_docs

from .documented import DOCUMENT, examples, is_as_documented

PATIENCE_S = 60


def run(command: str, servers: str, folder: Path) -> str:
    """Run in a shell where `ottla` is this version; returns the output including errors."""
    done = subprocess.run(
        ["bash", "-c", f'ottla() {{ "{sys.executable}" -m ottla "$@"; }}\n{command}'],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")}
        | {"PYTHONPATH": str(Path(ottla.__file__).parents[1]), "OTTLA_BROKER": servers},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.stdout


def test_the_examples_print_the_documented_output(tmp_path: Path) -> None:
    assert len(examples()) > 20
    with ottla.Broker() as broker:
        for example in examples():
            output = run(example.command, broker.bootstrap_servers, tmp_path)
            assert is_as_documented(output, example.output), f"$ {example.command}\n{output}"


def test_every_command_and_every_key_of_a_profile_is_documented() -> None:
    text = DOCUMENT.read_text()
    assert [name for name in COMMANDS if f"`ottla {name}`" not in text] == []
    docs = field_docs(Profile)
    usual = Profile()
    rows = [f"| `{name}` | `{getattr(usual, name)!r}` | {docs[name]} |" for name in Profile.__struct_fields__]
    assert "\n".join(rows) in text


def test_output_is_compared_line_by_line_except_for_ellipses() -> None:
    documented = "a … c\n…\nend 1.0\n"
    assert is_as_documented("a b c\nx\ny\nend 1.0\n", documented)
    assert is_as_documented("a  c\nend 1.0\n", documented)
    assert not is_as_documented("a b d\nend 1.0\n", documented)
    assert not is_as_documented("a b c\nend 1x0\n", documented)
    assert not is_as_documented("a b c\nend 1.0\nmore\n", documented)
