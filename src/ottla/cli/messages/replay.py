"""`ottla replay`: produce a recording of `ottla record`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.tables import counted
from ottla.event_loop import run
from ottla.testing.recording import due_after_s, read_head, read_records

if TYPE_CHECKING:
    from ottla.cli.connecting import Reach
    from ottla.client.client import Client
    from ottla.client.producer.producer import Producer


@click.command(
    epilog="""\b
Examples:
  ottla replay orders.rec                            (at once, into the topic it was recorded from)
  ottla replay orders.rec --to orders-again --speed 1        (as fast as it came)
  ottla replay orders.rec --speed 10                         (ten times as fast)
"""
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", "topic", metavar="TOPIC", help="Target topic [default: the recorded one].")
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=0,
    show_default=True,
    help="Speed: 1 keeps the original pace, 10 is ten times as fast, 0 does not wait.",
)
@with_broker_options
def replay(file: Path, topic: str | None, speed: float, *, reach: Reach) -> None:
    """Produce the messages of a FILE that `ottla record` wrote.

    Messages keep their partitions and timestamps. A missing topic is created with the partition count of the
    recorded one.
    """
    head = read_head(file)
    topic = topic or head.topic
    count = run(_replay(reach, file, topic, head.partitions, speed))
    click.echo(f"{counted(count, 'message')} written to {topic}", err=True)


async def _replay(reach: Reach, file: Path, topic: str, partitions: int, speed: float) -> int:
    async with reach.client() as client:
        await _create_if_missing(client, topic, partitions)
        async with client.producer() as producer:
            return await _send_all(producer, file, topic, speed)


async def _create_if_missing(client: Client, topic: str, partitions: int) -> None:
    if topic not in await client.admin.list_topics():
        await client.admin.create_topic(topic, partitions=partitions)


async def _send_all(producer: Producer[bytes, bytes], file: Path, topic: str, speed: float) -> int:
    loop = asyncio.get_running_loop()
    began_s, first, count = loop.time(), None, 0
    for one in read_records(file):
        first = first or one
        wait_s = began_s + due_after_s(one, first, speed) - loop.time()
        if speed and wait_s > 0:
            await producer.flush()
            await asyncio.sleep(wait_s)
        _ = await producer.send(
            topic, one.value, key=one.key, partition=one.partition, timestamp_ms=one.timestamp_ms, headers=one.headers
        )
        count += 1
    await producer.flush()
    return count
