"""Runs the broker and the commands in this process, as fast as function calls."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

import ottla
from ottla.cli.main import program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Cli:
    """Runs commands such as `cli("topic", "list")` against its broker."""

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def __call__(self, *arguments: str, given: str = "", exit_code: int = 0, **environment: str | None) -> Result:
        done = CliRunner().invoke(
            program,
            arguments,
            input=given,
            env={"OTTLA_BROKER": self.servers, **environment},
            prog_name="ottla",
            catch_exceptions=False,
        )
        assert done.exit_code == exit_code, done.output
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json").stdout)

    def refuses(self, *arguments: str, exit_code: int, given: str = "") -> str:
        """The one-line error message."""
        done = self(*arguments, exit_code=exit_code, given=given)
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr.removeprefix("ottla: ").rstrip("\n")


@pytest.fixture(scope="module")
def running_broker() -> Iterator[ottla.Broker]:
    with ottla.Broker() as running:
        yield running


@pytest.fixture
def cli(running_broker: ottla.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """In an empty folder, without settings from the environment."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("OTTLA_")]:
        monkeypatch.delenv(variable)
    return Cli(running_broker.bootstrap_servers)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test of the file uses."""
    return str(request.node.name).replace("[", ".").replace("]", "")[:200]
