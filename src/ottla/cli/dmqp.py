"""`ottla dmqp`: use topics of a running broker as queues over DMQP."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ottla.cli.output import show_rows, with_output_option
from ottla.cli.summaries import CommandGroup
from ottla.cli.tables import counted
from ottla.core.config_sources import DEFAULT_HTTP_PORT, HTTP_VARIABLE
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from ottla.dmqp import Client
    from ottla.dmqp.rest import Rest, ShardMap

_TIMEOUT_S: Final = 30.0
_COLUMNS: Final = ("topic", "shard", "host", "port", "tls", "consumer")

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")


def with_http_options(command: Decorated) -> Decorated:
    address = click.option(
        "--http",
        metavar="[http://]HOST:PORT",
        envvar=HTTP_VARIABLE,
        show_envvar=True,
        default=f"127.0.0.1:{DEFAULT_HTTP_PORT}",
        show_default=True,
        help="HTTP address of the broker.",
    )
    authority = click.option("--ca-file", metavar="FILE", help="CA certificates to trust, in PEM.")
    return address(authority(command))


@click.group(cls=CommandGroup)
def dmqp() -> None:
    """Use topics as queues over DMQP."""


@dmqp.command(
    epilog="""\b
Examples:
  ottla dmqp expose jobs
  ottla dmqp expose jobs --port 9201 --port 9202
""",
)
@click.argument("topic")
@click.option(
    "--port",
    "ports",
    type=click.IntRange(0, 65535),
    multiple=True,
    help="Ports of the shards in order; the rest get free ports.",
)
@with_output_option
@with_http_options
def expose(topic: str, ports: tuple[int, ...], output: str, http: str, ca_file: str | None) -> None:
    """Serve each partition of TOPIC as a shard on its own port, until `unexpose`."""
    show_rows(_rows(_rest(http, ca_file).expose(topic, ports)), _COLUMNS, output)


@dmqp.command(
    epilog="""\b
Examples:
  ottla dmqp unexpose jobs
""",
)
@click.argument("topic")
@with_http_options
def unexpose(topic: str, http: str, ca_file: str | None) -> None:
    """Stop serving TOPIC over DMQP; messages and cursors are kept."""
    _rest(http, ca_file).unexpose(topic)
    click.echo(f"{topic} is no longer served over DMQP")


@dmqp.command(
    "list",
    epilog="""\b
Examples:
  ottla dmqp list
  ottla dmqp list -o json
""",
)
@with_output_option
@with_http_options
def list_exposed(output: str, http: str, ca_file: str | None) -> None:
    """List the shards of exposed topics and their readers."""
    rows = [row for one in _rest(http, ca_file).maps() for row in _rows(one)]
    show_rows(rows, _COLUMNS, output)


@dmqp.command(
    epilog="""\b
Examples:
  ottla dmqp push jobs first second
  ottla dmqp push jobs < jobs.txt
""",
)
@click.argument("topic")
@click.argument("messages", nargs=-1)
@with_http_options
def push(topic: str, messages: tuple[str, ...], http: str, ca_file: str | None) -> None:
    """Push MESSAGES, or lines of standard input, to the shards of TOPIC in turn."""
    count = 0
    with _client(http, ca_file) as client:
        for message in [one.encode() for one in messages] or _lines():
            client.push(topic, message)
            count += 1
    click.echo(f"{counted(count, 'message')} pushed to {topic}", err=True)


@dmqp.command(
    epilog="""\b
Examples:
  ottla dmqp pop jobs
  ottla dmqp pop jobs --all
""",
)
@click.argument("topic")
@click.option("--max", "limit", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--all", "takes_all", is_flag=True, help="All there are.")
@with_http_options
def pop(topic: str, limit: int, *, takes_all: bool, http: str, ca_file: str | None) -> None:
    """Pop the next messages of TOPIC in order of their sequence ids, one per line."""
    out = sys.stdout.buffer
    taken = 0
    with _client(http, ca_file) as client:
        while (takes_all or taken < limit) and (message := client.pop(topic)) is not None:
            taken += 1
            out.write(message.data + b"\n")
            out.flush()


@dmqp.command(
    epilog="""\b
Examples:
  ottla dmqp peek jobs
""",
)
@click.argument("topic")
@with_http_options
def peek(topic: str, http: str, ca_file: str | None) -> None:
    """Print the sequence id of the next message of TOPIC without popping it."""
    with _client(http, ca_file) as client:
        sequence_id = client.peek(topic)
    click.echo("empty" if sequence_id is None else sequence_id)


def _rest(http: str, ca_file: str | None) -> Rest:
    from ottla.dmqp.rest import Rest

    try:
        return Rest(http, _TIMEOUT_S, _trusting(ca_file))
    except ValueError as wrong:
        raise ConfigError(f"--http: {wrong}") from None


def _client(http: str, ca_file: str | None) -> Client:
    from ottla.dmqp import Client

    try:
        return Client(http, tls=_trusting(ca_file))
    except ValueError as wrong:
        raise ConfigError(f"--http: {wrong}") from None


def _trusting(ca_file: str | None) -> ssl.SSLContext:
    import ssl

    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as refused:
        raise ConfigError(f"--ca-file: {ca_file} cannot be used: {refused.strerror or refused}") from None


def _rows(shard_map: ShardMap) -> list[dict[str, object]]:
    consumers = {shard: one.consumer for one in shard_map.consumers for shard in one.shards}
    return [
        {
            "topic": shard_map.topic,
            "shard": one.shard,
            "host": one.host,
            "port": one.port,
            "tls": shard_map.is_tls,
            "consumer": consumers.get(one.shard),
        }
        for one in shard_map.shards
    ]


def _lines() -> Iterator[bytes]:
    for line in sys.stdin.buffer:
        yield line.removesuffix(b"\n").removesuffix(b"\r")
