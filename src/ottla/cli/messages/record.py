"""`ottla record`: save part of a topic to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.messages.consume import is_at_end
from ottla.cli.messages.starting_points import seek_to, starting_point
from ottla.cli.tables import counted
from ottla.core.ids import TopicPartition
from ottla.event_loop import run
from ottla.testing.recording import Head, Recorded, write_line

if TYPE_CHECKING:
    from typing import BinaryIO

    from ottla.cli.connecting import Reach
    from ottla.cli.messages.starting_points import StartingPoint
    from ottla.client.consumer.consumer import Consumer

_AT_A_TIME: Final = 1000


@click.command(
    epilog="""\b
Examples:
  ottla record orders orders.rec                                      (all there is)
  ottla record orders orders.rec --from 15m -n 10000                  (the last quarter of an hour)
  ottla record orders orders.rec --broker kafka-1.example:9092        (of any Kafka)
"""
)
@click.argument("topic")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--from",
    "start",
    metavar="WHERE",
    default="earliest",
    show_default=True,
    help="earliest, an offset, -N for the last N, 15m for fifteen minutes ago, or a time.",
)
@click.option("-n", "--max", "limit", type=click.IntRange(min=1), help="Stop after this many messages.")
@with_broker_options
def record(topic: str, file: Path, start: str, limit: int | None, *, reach: Reach) -> None:
    """Save the messages of TOPIC to FILE for `ottla replay`."""
    count = run(_record(reach, topic, file, starting_point(start), limit))
    click.echo(f"{counted(count, 'message')} of {topic} written to {file}", err=True)


async def _record(reach: Reach, topic: str, file: Path, start: StartingPoint, limit: int | None) -> int:
    temporary = file.with_name(file.name + ".tmp")
    async with reach.client() as client, client.consumer(ordered=True, isolation_level="read_committed") as consumer:
        partitions = await client.partitions(topic)
        await consumer.assign([TopicPartition(topic, index) for index in partitions])
        await seek_to(consumer, start)
        try:
            with temporary.open("wb") as out:
                write_line(out, Head(topic=topic, partitions=len(partitions)))
                count = await _copy(consumer, out, limit)
            temporary.replace(file)
        finally:
            # An interrupted recording is removed.
            temporary.unlink(missing_ok=True)
    return count


async def _copy(consumer: Consumer[bytes, bytes], out: BinaryIO, limit: int | None) -> int:
    ends = await consumer.end_offsets(*consumer.assignment)
    count = 0
    while count != limit and not await is_at_end(consumer, ends):
        at_most = _AT_A_TIME if limit is None else min(_AT_A_TIME, limit - count)
        for one in await consumer.poll(at_most, timeout_ms=1000):
            if one.offset < ends[TopicPartition(one.topic, one.partition)]:
                write_line(out, Recorded(one.partition, one.offset, one.timestamp, one.key, one.value, one.headers))
                count += 1
    return count
