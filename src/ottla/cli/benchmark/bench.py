"""`ottla bench`: measure a broker's throughput and latency from this machine."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.benchmark.load import Load, consume, produce, trickle
from ottla.cli.benchmark.results import COLUMNS, Measured
from ottla.cli.connecting import with_broker_options
from ottla.cli.offsets.bounds import bounds_of, partitions_of
from ottla.cli.output import show_rows, with_output_option
from ottla.core.errors import ConfigError
from ottla.core.ids import TopicPartition
from ottla.event_loop import run

if TYPE_CHECKING:
    from ottla.cli.connecting import Reach
    from ottla.client.client import Client

_SMALLEST = 8


@click.command(
    epilog="""\b
Examples:
  ottla bench
  ottla bench -n 1000000 --seconds 30 --size 1000 --compression zstd
  ottla bench --broker prod --topic load-test --acks 1 -o json
""",
)
@click.option(
    "-n",
    "--messages",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="Number of messages, at most.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    help="Time limit of each of the three phases.",
)
@click.option(
    "--size", type=click.IntRange(min=_SMALLEST), default=100, show_default=True, help="Message size in bytes."
)
@click.option(
    "--rate",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Messages per second in the latency phase.",
)
@click.option("--topic", help="Use this topic and keep it [default: a new topic, deleted afterwards].")
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="Partitions of the new topic [default: 1].")
@click.option("--acks", type=click.Choice(["all", "1", "0"]), default="all", show_default=True)
@click.option("--compression", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]), default="none")
@with_output_option
@with_broker_options
def bench(*, reach: Reach, output: str, **options: Any) -> None:
    """Benchmark a broker: throughput and latency.

    Produces at full speed, reads everything back, then sends messages at a fixed rate and measures latency from the
    intended send time. The figures include this client and the network, so they are a lower bound of the broker's.
    """
    if options["topic"] is not None and options["partitions"] is not None:
        raise ConfigError("--partitions applies to a new topic; leave it out with --topic")
    acks = options["acks"]
    load = Load(
        topic=options["topic"] or f"ottla-bench-{uuid.uuid4().hex[:8]}",
        messages=options["messages"],
        seconds=options["seconds"],
        size=options["size"],
        rate=options["rate"],
        producer_options={
            "acks": acks if acks == "all" else int(acks),
            "idempotence": acks == "all",
            "compression": options["compression"],
        },
    )
    new_partitions = None if options["topic"] is not None else options["partitions"] or 1
    measured = run(_bench(reach, load, new_partitions))
    show_rows([each.row() for each in measured], COLUMNS, output)


async def _bench(reach: Reach, load: Load, new_partitions: int | None) -> list[Measured]:
    async with reach.client() as client:
        if new_partitions is None:
            return await _measure(client, load)
        await client.admin.create_topic(load.topic, partitions=new_partitions)
        try:
            await client.partitions(load.topic)  # waits until the brokers know of it
            return await _measure(client, load)
        finally:
            await client.admin.delete_topic(load.topic)


async def _measure(client: Client, load: Load) -> list[Measured]:
    known = await partitions_of(client.admin, [load.topic])
    partitions = [TopicPartition(load.topic, index) for index in known[load.topic]]
    before = await bounds_of(client.admin, partitions)
    produced = await produce(client, load)
    start = {where: each.end for where, each in before.items()}
    consumed = await consume(client, load, start, produced.messages)
    return [produced, consumed, *await trickle(client, load, partitions)]
