"""`ottla consume`: print a topic as lines."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.messages.lines import FORMATS_OUT
from ottla.cli.messages.schemas import Decoding, with_registry_option
from ottla.cli.messages.starting_points import End, StartingPoint, seek_to, starting_point
from ottla.core.errors import ConfigError
from ottla.core.ids import TopicPartition
from ottla.event_loop import run

if TYPE_CHECKING:
    from ottla.cli.connecting import Reach
    from ottla.client.client import Client
    from ottla.client.consumer.consumer import Consumer

_AT_A_TIME: Final = 1000

EXAMPLES = """\b
Examples:
  ottla consume orders                                   (what comes from now on, until Ctrl-C)
  ottla consume orders --from beginning --exit           (all there is)
  ottla consume orders --from -10 -n 10 --format full    (the last ten of one partition)
  ottla consume orders --from 15m --format json | jq .   (the last quarter of an hour, and on)
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
    stops_at_end: bool
    format: str
    separator: bytes
    decode: Decoding | None


@click.command(epilog=EXAMPLES)
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@click.option("-g", "--group", help="Consumer group to join; it commits offsets.")
@click.option(
    "--from",
    "start",
    metavar="WHERE",
    help="beginning, end, an offset, -N for the last N, 15m for fifteen minutes ago, or a time. "
    "[default: end; with a group, where it is]",
)
@click.option("-p", "--partition", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this partition.")
@click.option("-n", "--max", "limit", type=click.IntRange(min=1), help="Stop after this many messages.")
@click.option("-e", "--exit", "stops_at_end", is_flag=True, help="Exit at the end of the topic.")
@click.option(
    "-f",
    "--format",
    "-o",
    "--output",
    "format",
    type=click.Choice(list(FORMATS_OUT)),
    default="value",
    show_default=True,
)
@click.option("--separator", default=":", show_default=True, help="Separator of key and value.")
@click.option("--raw", is_flag=True, help="Do not decode keys and values that have a schema id.")
@with_registry_option
@with_broker_options
def consume(topics: tuple[str, ...], *, reach: Reach, **options: Any) -> None:
    """Print the messages of TOPIC.

    Prints one message per line and waits for new ones until interrupted. Keys and values with the id of a schema
    (Avro, JSON Schema, Protobuf) are printed as JSON.
    """
    start = options["start"]
    job = Job(
        topics=topics,
        group=options["group"],
        start=None if start is None else starting_point(start),
        partitions=options["partitions"],
        limit=options["limit"],
        stops_at_end=options["stops_at_end"],
        format=options["format"],
        separator=options["separator"].encode(),
        decode=None if options["raw"] else Decoding(reach, options["registry_url"]),
    )
    if job.group is not None and (job.start is not None or job.partitions):
        raise ConfigError("--from and --partition cannot be used with --group")
    try:
        run(_consume_until_interrupted(reach, job))
    except BrokenPipeError:
        # The reader of stdout has closed it. Python would report that again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _consume_until_interrupted(reach: Reach, job: Job) -> None:
    work = asyncio.ensure_future(_consume(reach, job))
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, work.cancel)
    with suppress(asyncio.CancelledError):
        await work


async def _consume(reach: Reach, job: Job) -> None:
    async with reach.client() as client:
        if job.group is not None:
            async with client.consumer(*job.topics, group=job.group, auto_offset_reset="earliest") as consumer:
                await _write(consumer, job, None)
            return
        async with client.consumer() as consumer:
            await consumer.assign(await _partitions(client, job))
            await seek_to(consumer, job.start or End())
            ends = await consumer.end_offsets(*consumer.assignment) if job.stops_at_end else None
            await _write(consumer, job, ends)


async def _partitions(client: Client, job: Job) -> list[TopicPartition]:
    found = []
    for topic in job.topics:
        existing = await client.partitions(topic)
        found += [TopicPartition(topic, index) for index in job.partitions or existing]
    return found


async def _write(consumer: Consumer[bytes, bytes], job: Job, ends: dict[TopicPartition, int] | None) -> None:
    written = 0
    as_line, out = FORMATS_OUT[job.format], sys.stdout.buffer
    while not await is_at_end(consumer, ends):
        at_most = _AT_A_TIME if job.limit is None else min(_AT_A_TIME, job.limit - written)
        records = await consumer.poll(at_most, timeout_ms=None if ends is None else 1000)
        for record in records:
            if ends is None or record.offset < ends[TopicPartition(record.topic, record.partition)]:
                shown = record if job.decode is None else await job.decode(record)
                out.write(as_line(shown, job.separator) + b"\n")
        out.flush()
        written += len(records)
        if written == job.limit:
            return


async def is_at_end(consumer: Consumer[bytes, bytes], ends: dict[TopicPartition, int] | None) -> bool:
    if ends is None:
        return False
    for at, end in ends.items():
        if await consumer.position(at) < end:
            return False
    return True
