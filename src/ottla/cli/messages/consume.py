"""`ottla consume`: print a topic as lines."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.messages.client_options import ClientChoices, client_choices, with_client_options
from ottla.cli.messages.endpoints import end_point, ends_of
from ottla.cli.messages.filters import all_of
from ottla.cli.messages.lines import FORMATS_OUT
from ottla.cli.messages.schemas import Decoding, with_registry_option
from ottla.cli.messages.starting_points import End, StartingPoint, seek_to, starting_point
from ottla.cli.messages.templates import template
from ottla.client.config import ConsumerConfig
from ottla.core.errors import ConfigError
from ottla.core.ids import TopicPartition
from ottla.event_loop import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.cli.connecting import Reach
    from ottla.cli.messages.filters import Condition
    from ottla.client.client import Client
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.consumer.record import ConsumerRecord

_AT_A_TIME: Final = 1000

EXAMPLES = """\b
Examples:
  ottla consume orders                                   (what comes from now on, until Ctrl-C)
  ottla consume orders --from earliest --exit            (all there is)
  ottla consume orders --from -10 -n 10 --format full    (the last ten of one partition)
  ottla consume orders --from 15m --format json | jq .   (the last quarter of an hour, and on)
  ottla consume orders --from 2h --to 1h                 (one hour of messages)
  ottla consume orders --filter key=c1 --filter '$.total>9'
  ottla consume orders --format '%T %p/%o %k %s\\n'      (fields as in kcat)
  ottla consume '^orders\\..*'                            (all topics whose names match)
  ottla consume orders -g billing                        (as a member of a group, which remembers)
  ottla consume orders --schema-registry http://r:8081   (decode with another registry than the broker's)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    topics: tuple[str, ...]
    group: str | None
    start: StartingPoint | None
    partitions: tuple[int, ...]
    limit: int | None
    end: StartingPoint | None
    is_wanted: Condition
    as_bytes: Callable[[ConsumerRecord[bytes, bytes]], bytes]
    decode: Decoding | None
    choices: ClientChoices


@click.command(epilog=EXAMPLES)
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@click.option("-g", "--group", help="Consumer group to join; it commits offsets.")
@click.option(
    "--from",
    "start",
    metavar="WHERE",
    help="earliest, latest, an offset, -N for the last N, 15m for fifteen minutes ago, or a time. "
    "[default: latest; with a group, where it is]",
)
@click.option(
    "--to", "--until", "end", metavar="WHERE", help="Stop before this offset or time: latest, 42, -10, 15m or a time."
)
@click.option("-p", "--partition", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this partition.")
@click.option("-n", "--max", "limit", type=click.IntRange(min=1), help="Stop after this many messages.")
@click.option("-e", "--exit", "stops_at_end", is_flag=True, help="Exit at the end of the topic: --to latest.")
@click.option(
    "--filter",
    "filters",
    metavar="CONDITION",
    multiple=True,
    help="Print only messages with key=c1, key~^c, header.trace=7, value~refund, '$.order.total>9' (a field of a JSON "
    "value) or offset<42; all conditions must hold. Operators: = != ~ !~ < <= > >=.",
)
@click.option(
    "-f",
    "--format",
    "-o",
    "--output",
    "format",
    metavar=f"{'|'.join(FORMATS_OUT)}|TEMPLATE",
    default="value",
    show_default=True,
    help="Format of a message. A template has %t topic, %p partition, %o offset, %T timestamp, %k key, %s value, "
    "%K and %S their sizes, %h headers, and \\n for a newline.",
)
@click.option("--separator", default=":", show_default=True, help="Separator of key and value.")
@click.option("--raw", is_flag=True, help="Do not decode keys and values that have a schema id.")
@with_client_options
@with_registry_option
@with_broker_options
def consume(topics: tuple[str, ...], *, reach: Reach, **options: Any) -> None:
    """Print the messages of TOPIC.

    Prints one message per line and waits for new ones until interrupted. A TOPIC that begins with ^ is a regular
    expression for the names of topics. Keys and values with the id of a schema
    (Avro, JSON Schema, Protobuf) are printed as JSON.
    """
    start, end = options["start"], options["end"]
    if end is None and options["stops_at_end"]:
        end = "latest"
    job = Job(
        topics=topics,
        group=options["group"],
        start=None if start is None else starting_point(start),
        partitions=options["partitions"],
        limit=options["limit"],
        end=None if end is None else end_point(end),
        is_wanted=all_of(options["filters"]),
        as_bytes=_formatting(options["format"], options["separator"].encode()),
        decode=None if options["raw"] else Decoding(reach, options["registry_url"]),
        choices=client_choices(options["client_options"], ConsumerConfig),
    )
    if job.group is not None and (job.start is not None or job.end is not None or job.partitions):
        raise ConfigError("--from, --to, --exit and --partition cannot be used with --group")
    try:
        run(_consume_until_interrupted(reach, job))
    except BrokenPipeError:
        # The reader of stdout has closed it. Python would report that again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _formatting(form: str, separator: bytes) -> Callable[[ConsumerRecord[bytes, bytes]], bytes]:
    if (as_line := FORMATS_OUT.get(form)) is not None:
        return lambda record: as_line(record, separator) + b"\n"
    if "%" not in form:
        raise ConfigError(
            f"--format: expected {', '.join(FORMATS_OUT)}, or a template such as '%k %s\\n', got {form!r}"
        )
    return template(form)


async def _consume_until_interrupted(reach: Reach, job: Job) -> None:
    work = asyncio.ensure_future(_consume(reach, job))
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, work.cancel)
    with suppress(asyncio.CancelledError):
        await work


async def _consume(reach: Reach, job: Job) -> None:
    async with reach.client(**job.choices.client) as client:
        topics = await _matching(client, job.topics)
        if job.group is not None:
            options = {"auto_offset_reset": "earliest"} | job.choices.other
            async with client.consumer(*topics, group=job.group, **options) as consumer:
                await _write(consumer, job, None)
            return
        async with client.consumer(**job.choices.other) as consumer:
            await consumer.assign(await _partitions(client, topics, job.partitions))
            await seek_to(consumer, job.start or End())
            await _write(consumer, job, None if job.end is None else await ends_of(consumer, job.end))


async def _matching(client: Client, topics: tuple[str, ...]) -> list[str]:
    """The topics, with those that match a regular expression in its place."""
    found: dict[str, None] = {}
    for topic in topics:
        if not topic.startswith("^"):
            found[topic] = None
            continue
        try:
            pattern = re.compile(topic)
        except re.error as wrong:
            raise ConfigError(f"invalid regular expression {topic!r}: {wrong}") from None
        matching = [name for name in await client.topics() if pattern.fullmatch(name)]
        if not matching:
            raise ConfigError(f"no topic matches {topic}")
        found |= dict.fromkeys(matching)
    return list(found)


async def _partitions(client: Client, topics: list[str], wanted: tuple[int, ...]) -> list[TopicPartition]:
    found = []
    for topic in topics:
        existing = await client.partitions(topic)
        found += [TopicPartition(topic, index) for index in wanted or existing]
    return found


async def _write(consumer: Consumer[bytes, bytes], job: Job, ends: dict[TopicPartition, int] | None) -> None:
    written = 0
    out = sys.stdout.buffer
    while not await is_at_end(consumer, ends):
        at_most = _AT_A_TIME if job.limit is None else min(_AT_A_TIME, job.limit - written)
        records = await consumer.poll(at_most, timeout_ms=None if ends is None else 1000)
        for record in records:
            if ends is None or record.offset < ends[TopicPartition(record.topic, record.partition)]:
                shown = record if job.decode is None else await job.decode(record)
                if job.is_wanted(shown):
                    out.write(job.as_bytes(shown))
                    written += 1
        out.flush()
        if written == job.limit:
            return


async def is_at_end(consumer: Consumer[bytes, bytes], ends: dict[TopicPartition, int] | None) -> bool:
    if ends is None:
        return False
    for at, end in ends.items():
        if await consumer.position(at) < end:
            return False
    return True
