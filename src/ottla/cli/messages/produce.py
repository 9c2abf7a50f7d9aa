"""`ottla produce`: write lines to a topic."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.messages.client_options import ClientChoices, client_choices, with_client_options
from ottla.cli.messages.input import WHOLE, Input
from ottla.cli.messages.lines import FORMATS_IN, Message
from ottla.cli.messages.schemas import Encoding, registry_of, with_registry_option
from ottla.cli.messages.sending import Sending
from ottla.cli.tables import counted
from ottla.client.config import ProducerConfig
from ottla.core.errors import ConfigError
from ottla.event_loop import run

if TYPE_CHECKING:
    from ottla.cli.connecting import Reach
    from ottla.cli.messages.lines import Headers
    from ottla.schema.frames import Part

EXAMPLES = """\b
Examples:
  echo 'two coffees' | ottla produce orders
  ottla produce orders --format key-value < orders.txt     (customer-1:two coffees)
  ottla produce orders --format json --check orders.jsonl  ({"key": "c1", "value": {"n": 2}})
  ottla produce pictures --format whole *.png              (each file is one message)
  ottla produce orders -X acks=all -X linger.ms=5ms < orders.txt
  echo '{"id": 1}' | ottla produce orders --schema order.avsc     (registers it for the topic)
  echo '{"id": 1}' | ottla produce orders --schema orders-value   (the latest version of a subject)
"""


@dataclass(slots=True, kw_only=True)
class Job:
    topic: str
    input: Input
    skip: int
    choices: ClientChoices
    written: int = field(default=0, init=False)


@click.command(epilog=EXAMPLES)
@click.argument("topic")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-f",
    "--format",
    type=click.Choice([*FORMATS_IN, WHOLE]),
    default="value",
    show_default=True,
    help="Format of a line; with whole, each file is one message.",
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
@click.option("--skip", type=click.IntRange(min=0), default=0, help="Skip this many messages of the input.")
@click.option("--check", is_flag=True, help="Check all lines before the first is written.")
@click.option("--dry-run", is_flag=True, help="Check all lines; write and register nothing.")
@with_client_options
@with_registry_option
@with_broker_options
def produce(topic: str, files: tuple[Path, ...], *, reach: Reach, **options: Any) -> None:
    """Produce the lines of FILES, or of standard input, to TOPIC."""
    with ExitStack() as stack:
        checks = options["check"] or options["dry_run"]
        source = _source(stack) if checks and not files else sys.stdin.buffer
        job = Job(
            topic=topic,
            input=_input(topic, files, source, reach, options),
            skip=options["skip"],
            choices=_choices(options),
        )
        if checks:
            count = _check(job)
        if options["dry_run"]:
            click.echo(f"{counted(count, 'message')} could be written to {topic}", err=True)
            return
        _write(reach, job)
    click.echo(f"{counted(job.written, 'message')} written to {topic}", err=True)


def _input(topic: str, files: tuple[Path, ...], source: BinaryIO, reach: Reach, options: dict[str, Any]) -> Input:
    key = options["key"]
    return Input(
        files=files,
        format=options["format"],
        separator=options["separator"].encode(),
        defaults=Message(
            value=None,
            key=None if key is None else key.encode(),
            partition=options["partition"],
            headers=_headers(options["headers"]),
        ),
        encode=_encoding(topic, reach, options),
        standard_input=source,
    )


def _choices(options: dict[str, Any]) -> ClientChoices:
    choices = client_choices(options["client_options"], ProducerConfig)
    if options["compression"] != "none":
        choices.other["compression"] = options["compression"]
    return choices


def _source(stack: ExitStack) -> BinaryIO:
    """A copy of standard input, which is read twice."""
    copy: BinaryIO = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    shutil.copyfileobj(sys.stdin.buffer, copy)
    copy.seek(0)
    return copy


def _encoding(topic: str, reach: Reach, options: dict[str, Any]) -> Encoding | None:
    schemas: dict[Part, str | None] = {"key": options["key_schema"], "value": options["schema"]}
    if not any(schemas.values()):
        return None
    registry = registry_of(reach, options["registry_url"])
    return Encoding(registry, topic, schemas, registers=not options["dry_run"])


def _check(job: Job) -> int:
    """Read all messages once; their number."""
    try:
        count = sum(1 for _ in job.input.messages())
    except ConfigError as wrong:
        raise ConfigError(f"{wrong}; nothing was written") from None
    if not job.input.files:
        job.input.standard_input.seek(0)
    return max(count - job.skip, 0)


def _write(reach: Reach, job: Job) -> None:
    try:
        run(_produce(reach, job))
    except ConfigError as wrong:
        if not job.written:
            raise
        were = "was" if job.written == 1 else "were"
        raise ConfigError(
            f"{wrong}; {counted(job.written, 'message')} {were} written to {job.topic}: correct the line, "
            f"then continue with --skip {job.skip + job.written}"
        ) from None


async def _produce(reach: Reach, job: Job) -> None:
    async with reach.client(**job.choices.client) as client, Sending(client, job.topic, job.choices.other) as sending:
        for message in islice(job.input.messages(), job.skip, None):
            await sending.send(message)
            job.written += 1
        await sending.flush()


def _headers(given: tuple[str, ...]) -> Headers:
    headers = []
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--header: expected NAME=VALUE, got {pair!r}")
        headers.append((name, value.encode()))
    return tuple(headers)
