from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner, Result

import ottla
from ottla import __version__
from ottla.cli.main import COMMANDS, program
from ottla.cli.server import serve
from ottla.core.errors import ConfigError, DataDirError, OttlaError, StorageError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(program, arguments, prog_name="ottla")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_distinct_summary(name: str) -> None:
    command = program.get_command(click.Context(program), name)

    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(limit=200) == COMMANDS[name].summary


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_command(flag: str) -> None:
    shown = run(flag)

    assert shown.exit_code == 0
    assert all(f"  {name} " in shown.stdout for name in COMMANDS)


def test_the_version_option_prints_the_version() -> None:
    assert run("--version").stdout == f"ottla {__version__}\n"


def test_an_unknown_command_is_refused() -> None:
    assert run("sevre").exit_code == 2


@pytest.mark.parametrize(
    ("error", "exit_code", "message"),
    [
        (ConfigError("no such thing"), 2, "ottla: no such thing\n"),
        (DataDirError("held by pid 7"), 1, "ottla: held by pid 7\n"),
        (StorageError("disk full"), 1, "ottla: disk full\n"),
        (StorageError(), 1, "ottla: StorageError\n"),
        (OttlaError("group \x1b[2J is\ngone"), 1, "ottla: group \\x1b[2J is\ngone\n"),
    ],
)
def test_an_expected_error_is_one_line_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, error: OttlaError, exit_code: int, message: str
) -> None:
    @click.command()
    def failing() -> None:
        raise error

    monkeypatch.setattr(serve, "serve", failing)
    shown = run("serve")

    assert (shown.exit_code, shown.stderr) == (exit_code, message)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_a_command_imports_nothing_that_it_does_not_need(arguments: list[str]) -> None:
    program = (
        "import sys, ottla.cli.main as m\n"
        "try: m.main()\n"
        "except SystemExit: pass\n"
        "needless = {'msgspec', 'tomllib', 'difflib', 'json', 'cramjam', 'fastcrc', 'asyncio', 'sqlite3'}\n"
        "needless |= {'ssl', 'uvloop', 'ottla.client', 'ottla.broker'}\n"
        "print('needless:', *needless.intersection(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "needless:"


_NEEDLESS = {
    *("shutil", "tempfile", "lzma", "json", "tomllib", "difflib", "email", "http", "sqlite3", "uvloop"),
    *("cramjam", "fastcrc", "cryptography", "kazoo", "starlette", "uvicorn", "pyarrow"),
    *("ottla.broker", "ottla.storage", "ottla.net", "ottla.http", "ottla.records", "ottla.schema"),
    *("ottla.client.admin.admin", "ottla.client.producer.producer", "ottla.client.consumer.consumer"),
}
_MOST_MODULES = 100
"""Ours; a third of a millisecond each, on average."""


@pytest.mark.parametrize("arguments", [("topic", "list"), ("group", "list"), ("topic", "create", "made")])
def test_a_short_command_imports_only_the_messages_that_it_sends(
    arguments: tuple[str, ...], running_broker: ottla.Broker
) -> None:
    program = (
        "import sys\n"
        "from ottla.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as done: assert not done.code, done.code\n"
        "print(*sys.modules)\n"
    )
    command = [sys.executable, "-c", program, *arguments, "--broker", running_broker.bootstrap_servers]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = set(done.stdout.splitlines()[-1].split())
    assert imported & _NEEDLESS == set()
    assert len([name for name in imported if name.startswith("ottla")]) <= _MOST_MODULES
