"""The examples in docs/command-line.md and other pages work as documented."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import ottla
from ottla.cli.main import COMMANDS, program
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


@pytest.mark.parametrize("page", ["tutorial.md", "backup.md"])
def test_the_examples_of_a_page_print_the_documented_output(page: str, tmp_path: Path) -> None:
    shown = examples(DOCUMENT.with_name(page))
    assert len(shown) > 5
    with ottla.Broker() as broker:
        for example in shown:
            output = run(example.command, broker.bootstrap_servers, tmp_path)
            assert is_as_documented(output, example.output), f"$ {example.command}\n{output}"


@pytest.mark.parametrize("page", ["tutorial.md", "migration.md"])
def test_the_python_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.with_name(page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    with ottla.Broker() as broker:
        for block in blocks:
            source = block.replace("localhost:9092", broker.bootstrap_servers)
            exec(compile(source, f"docs/{page}", "exec"), {})  # noqa: S102 - it is ours


def test_the_commands_that_are_compared_with_other_tools_are_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("orders.txt", "order.avsc", "f.rec"):
        (tmp_path / name).touch()
    rows = re.findall(
        r"^\| (\d+)\. [^|]*\| (.*?) \|", DOCUMENT.with_name("cli-comparison.md").read_text(), re.MULTILINE
    )
    assert [int(number) for number, _ in rows] == list(range(1, 41))
    for _, cell in rows:
        for command in re.findall(r"`(ottla [^`]*)`", cell):
            check_usage(shlex.split(command)[1:])


def check_usage(arguments: list[str]) -> None:
    """Parse a command with its options, without running it."""
    command: click.Command | None = program
    context = click.Context(program, info_name="ottla")
    while isinstance(command, click.Group):
        name, *arguments = arguments
        command = command.get_command(context, name)
    assert command is not None
    command.make_context(name, arguments, parent=context)


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
