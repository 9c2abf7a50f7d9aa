"""The command `ottla`. A sub-command is imported when it is called, so that none of them pays for another."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Final

import click

from ottla import __version__
from ottla.core.errors import ConfigError, OttlaError


@dataclass(frozen=True, slots=True)
class Command:
    module: str
    """The module that defines the command, as a function of the command's own name."""
    summary: str
    """What `ottla --help` says of it, which must not cost the import of the module."""


COMMANDS: Final = {
    "config": Command("ottla.cli.config", "Show every setting and where its value comes from."),
    "consume": Command("ottla.cli.consume", "Write the messages of TOPIC to the standard output."),
    "log": Command("ottla.cli.log", "Look at the files of a partition; a broker may be using them."),
    "produce": Command("ottla.cli.produce", "Write the lines of FILES, or of the standard input, to TOPIC."),
    "queue": Command("ottla.cli.queue", "Queues in a folder: no broker is needed."),
    "serve": Command("ottla.cli.serve", "Run the broker."),
}


class Failure(click.ClickException):
    """An error that its message explains: no traceback."""

    exit_code = 1

    def show(self, file: Any = None) -> None:  # noqa: ANN401 - click's own signature
        click.echo(f"ottla: {self.message}", file=file, err=file is None)


class UsageFailure(Failure):
    exit_code = 2


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name].module), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own signature
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            raise UsageFailure(str(error)) from error
        except OttlaError as error:
            raise Failure(str(error) or type(error).__name__) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def program() -> None:
    """A message broker that speaks the Kafka protocol and keeps its data in plain files."""


def main() -> None:
    program(prog_name="ottla")
