"""The command `ottla`. A sub-command is imported when it is called, so that others start faster."""

from __future__ import annotations

import importlib
import re
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import click

from ottla import __version__
from ottla.core.errors import ConfigError, OttlaError
from ottla.core.quick_imports import without_garbage_collection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem


class Command(NamedTuple):
    module: str
    """The module that defines the command, as a function of the command's own name."""
    summary: str
    """Its help text in `ottla --help`, which must not import the module."""


COMMANDS: Final = {
    "acl": Command("ottla.cli.security.acl", "List, add and delete ACLs."),
    "audit": Command("ottla.cli.security.audit", "Verify audit logs."),
    "bench": Command("ottla.cli.benchmark.bench", "Benchmark a broker: throughput and latency."),
    "cluster": Command("ottla.cli.clusters.cluster", "Inspect and configure brokers, and move partitions."),
    "completion": Command("ottla.cli.completion", "Print a shell completion script."),
    "config": Command("ottla.cli.config", "Show settings and where their values come from."),
    "consume": Command("ottla.cli.messages.consume", "Print the messages of TOPIC."),
    "dmqp": Command("ottla.cli.dmqp", "Use topics as queues over DMQP."),
    "doctor": Command("ottla.cli.doctor", "Diagnose this machine's setup and a running broker."),
    "group": Command("ottla.cli.groups.group", "Inspect consumer groups and reset their offsets."),
    "keys": Command("ottla.cli.security.keys", "Generate, rotate and inspect encryption keys."),
    "lake": Command("ottla.cli.lake.lake", "Maintain topics as Iceberg tables."),
    "log": Command("ottla.cli.log", "Inspect and repair the segment files of a partition."),
    "pipeline": Command("ottla.cli.pipelines.pipeline", "Run topic-to-table pipelines defined in a TOML file."),
    "produce": Command("ottla.cli.messages.produce", "Produce the lines of FILES, or of standard input, to TOPIC."),
    "queue": Command("ottla.cli.queues.queue", "Use file queues without a broker."),
    "quota": Command("ottla.cli.quota", "List and change client quotas."),
    "record": Command("ottla.cli.messages.record", "Save the messages of TOPIC to FILE for `ottla replay`."),
    "replay": Command("ottla.cli.messages.replay", "Produce the messages of a FILE that `ottla record` wrote."),
    "role": Command("ottla.cli.security.role", "List roles, and change who has them."),
    "schema": Command("ottla.cli.schemas.schema", "List, register, check and delete schemas of a registry."),
    "secure": Command("ottla.cli.security.secure", "Set up TLS, users and encryption."),
    "serve": Command("ottla.cli.server.serve", "Run the broker."),
    "token": Command("ottla.cli.security.token", "Create, renew, expire and list delegation tokens."),
    "topic": Command("ottla.cli.topics.topic", "Create, describe, alter and delete topics."),
    "transaction": Command("ottla.cli.transaction", "Inspect transactions and abort hanging ones."),
    "user": Command("ottla.cli.security.user", "List and change users with passwords."),
}

_PLURALS: Final = {
    f"{name}s": name for name in ("acl", "group", "pipeline", "queue", "quota", "role", "schema", "token")
}
_PLURALS.update({f"{name}s": name for name in ("topic", "transaction", "user")})


class Failure(click.ClickException):
    """An error that its message explains: no traceback."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        from ottla.cli.tables import printable

        # It may quote a broker's message or a name, which must not send escape sequences to the terminal.
        message = "\n".join(map(printable, self.message.split("\n")))
        click.echo(f"ottla: {message}", file=file, err=file is None)


class UsageFailure(Failure):
    exit_code = 2


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        cmd_name = _PLURALS.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        with without_garbage_collection():
            command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name].module), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=command.summary)
            for name, command in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as wrong:
            raise _in_one_sentence(wrong) from None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.UsageError as wrong:
            raise _in_one_sentence(wrong) from None
        except ConfigError as error:
            raise UsageFailure(str(error)) from error
        except OttlaError as error:
            raise Failure(str(error) or type(error).__name__) from error


def _in_one_sentence(wrong: click.UsageError) -> click.UsageError | UsageFailure:
    if isinstance(wrong, click.exceptions.NoArgsIsHelpError):
        return wrong
    path = wrong.ctx.command_path if wrong.ctx is not None else "ottla"
    message = " ".join(wrong.format_message().split()).removesuffix(".")
    if isinstance(wrong, click.NoSuchOption):
        message = f"no such option {wrong.option_name}{_meant(wrong.possibilities or ())}"
    elif wrong.ctx is not None and isinstance(wrong.ctx.command, click.Group):
        message = _unknown_command(wrong.ctx.command, wrong.ctx, message)
    return UsageFailure(f"{message[:1].lower()}{message[1:]}; see {path} --help")


def _unknown_command(group: click.Group, ctx: click.Context, message: str) -> str:
    found = re.match("No such command '(?P<name>[^']*)'", message)
    if found is None:
        return message
    from ottla.core.closest import closest  # only here: no other command needs it

    close = closest(found["name"], group.list_commands(ctx))
    return f"no such command {found['name']}{_meant([] if close is None else [close])}"


def _meant(names: Sequence[str]) -> str:
    return f" (did you mean {', '.join(names)}?)" if names else ""


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def program() -> None:
    """A message broker that speaks the Kafka protocol and keeps its data in plain files.

    `ottla COMMAND --help` shows examples. Commands that talk to a broker talk to any Kafka broker. They exit with 0 on
    success, 1 on failure and 2 on wrong usage.
    """


def main() -> None:
    program(prog_name="ottla")
