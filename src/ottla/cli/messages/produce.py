"""`ottla produce`: write lines to a topic."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.messages.lines import FORMATS_IN, Message
from ottla.cli.messages.schemas import Encoding, registry_of, with_registry_option
from ottla.cli.tables import counted
from ottla.core.errors import ConfigError
from ottla.event_loop import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.cli.connecting import Reach
    from ottla.cli.messages.lines import Headers
    from ottla.schema.frames import Part

WHOLE = "whole"

EXAMPLES = """\b
Examples:
  echo 'two coffees' | ottla produce orders
  ottla produce orders --format key-value < orders.txt     (customer-1:two coffees)
  ottla produce orders --format json orders.jsonl          ({"key": "c1", "value": {"n": 2}})
  ottla produce pictures --format whole *.png              (each file is one message)
  echo '{"id": 1}' | ottla produce orders --schema order.avsc     (registers it for the topic)
  echo '{"id": 1}' | ottla produce orders --schema orders-value   (the latest version of a subject)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    topic: str
    files: tuple[Path, ...]
    format: str
    separator: bytes
    defaults: Message
    producer_options: dict[str, Any]
    encode: Encoding | None


@click.command(epilog=EXAMPLES)
@click.argument("topic")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-f",
    "--format",
    type=click.Choice([*FORMATS_IN, WHOLE]),
    default="value",
    show_default=True,
    help="Format of a line; with file, each whole file is a message.",
)
@click.option("--separator", default=":", show_default=True, help="Separator of key and value.")
@click.option("-k", "--key", help="Key of messages without one.")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="Partition of messages without one.")
@click.option("-H", "--header", "headers", metavar="NAME=VALUE", multiple=True, help="Header; may be repeated.")
@click.option("--compression", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]), default="none")
@click.option(
    "--schema",
    metavar="SUBJECT|ID|FILE",
    help="Schema of the values, which are JSON: a subject's latest version, an id, or a file (.avsc, .json, .proto).",
)
@click.option("--key-schema", metavar="SUBJECT|ID|FILE", help="Schema of the keys.")
@with_registry_option
@with_broker_options
def produce(topic: str, files: tuple[Path, ...], *, reach: Reach, **options: Any) -> None:
    """Produce the lines of FILES, or of standard input, to TOPIC."""
    key = options["key"]
    job = Job(
        topic=topic,
        files=files,
        format=options["format"],
        separator=options["separator"].encode(),
        defaults=Message(
            value=None,
            key=None if key is None else key.encode(),
            partition=options["partition"],
            headers=_headers(options["headers"]),
        ),
        producer_options={"compression": options["compression"]},
        encode=_encoding(topic, reach, options),
    )
    count = run(_produce(reach, job))
    click.echo(f"{counted(count, 'message')} written to {topic}", err=True)


def _encoding(topic: str, reach: Reach, options: dict[str, Any]) -> Encoding | None:
    schemas: dict[Part, str | None] = {"key": options["key_schema"], "value": options["schema"]}
    if not any(schemas.values()):
        return None
    return Encoding(registry_of(reach, options["registry_url"]), topic, schemas)


async def _produce(reach: Reach, job: Job) -> int:
    count = 0
    async with reach.client() as client, client.producer(**job.producer_options) as producer:
        for message in _messages(job):
            _ = await producer.send(
                job.topic,
                message.value,
                key=message.key,
                partition=message.partition,
                timestamp_ms=message.timestamp_ms,
                headers=message.headers,
            )
            count += 1
        await producer.flush()
    return count


def _messages(job: Job) -> Iterator[Message]:
    with ExitStack() as stack:
        advance = _progress(stack, job.files)
        for file in job.files or (None,):
            yield from _messages_of(file, job, advance)


def _messages_of(file: Path | None, job: Job, advance: Callable[[int], None]) -> Iterator[Message]:
    if job.format == WHOLE:
        content = sys.stdin.buffer.read() if file is None else file.read_bytes()
        advance(len(content))
        yield _complete(Message(value=content), job)
        return
    read = FORMATS_IN[job.format]
    with ExitStack() as stack:
        lines: BinaryIO = sys.stdin.buffer if file is None else stack.enter_context(file.open("rb"))
        for number, line in enumerate(lines, 1):
            advance(len(line))
            try:
                yield _complete(read(line.rstrip(b"\r\n"), job.separator), job)
            except ConfigError as wrong:
                raise ConfigError(f"{file or 'standard input'}, line {number}: {wrong}") from None


def _progress(stack: ExitStack, files: tuple[Path, ...]) -> Callable[[int], None]:
    """A progress bar on a terminal if the total is known."""
    if not files or not sys.stderr.isatty():
        return lambda _: None
    length = sum(file.stat().st_size for file in files)
    bar = stack.enter_context(click.progressbar(length=length, file=sys.stderr, update_min_steps=1 << 16))
    return bar.update


def _complete(message: Message, job: Job) -> Message:
    """With the defaults, and encoded by its schemas."""
    message = _with_defaults(message, job.defaults)
    return message if job.encode is None else job.encode(message)


def _with_defaults(message: Message, defaults: Message) -> Message:
    if defaults.key is None and defaults.partition is None and not defaults.headers:
        return message
    return replace(
        message,
        key=defaults.key if message.key is None else message.key,
        partition=defaults.partition if message.partition is None else message.partition,
        headers=message.headers + defaults.headers,
    )


def _headers(given: tuple[str, ...]) -> Headers:
    headers = []
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--header: expected NAME=VALUE, got {pair!r}")
        headers.append((name, value.encode()))
    return tuple(headers)
