"""`ottla transaction`: list, describe and abort transactions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.arguments import existing, topics_and_partitions
from ottla.cli.confirming import confirm, with_yes_option
from ottla.cli.connecting import with_broker_options
from ottla.cli.durations import Duration
from ottla.cli.offsets.bounds import partitions_of
from ottla.cli.output import show_json, show_rows, show_table, with_output_option
from ottla.cli.summaries import CommandGroup
from ottla.cli.tables import printable
from ottla.client.admin.requests import raise_if_error
from ottla.client.admin.transactions import OpenTransaction
from ottla.core.errors import ConfigError, OttlaError

if TYPE_CHECKING:
    from ottla.cli.connecting import Reach
    from ottla.client.admin.admin import Admin
    from ottla.client.admin.transactions import ActiveProducer, TransactionDescription
    from ottla.client.client import Client
    from ottla.core.ids import TopicPartition

_STATE: Final = click.Choice(
    [
        *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort"),
        *("CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"),
    ]
)
"""Kafka's names; it silently ignores others."""
_LISTED: Final = ("transactional_id", "coordinator", "producer_id", "state")
_DESCRIBED: Final = (*_LISTED, "epoch", "timeout_ms", "running_s", "partitions")
_PRODUCERS: Final = ("topic", "partition", "producer_id", "epoch", "coordinator_epoch", "idle_s", "transaction_start")


@click.group(cls=CommandGroup)
def transaction() -> None:
    """Inspect transactions and abort hanging ones."""


@transaction.command(
    "list",
    epilog="""\b
Examples:
  ottla transaction list
  ottla transaction list --state Ongoing --longer-than 5m
  ottla transaction list --pattern 'billing-.+' -o json
""",
)
@click.option("--state", "states", multiple=True, type=_STATE, help="Only this state; may be repeated.")
@click.option("--producer-id", "producer_ids", multiple=True, type=int, help="Only this producer id; may be repeated.")
@click.option(
    "--longer-than", type=Duration(), metavar="TIME", help="Only transactions running longer than this: 30s, 5m, 1h."
)
@click.option("--pattern", metavar="REGEX", help="Only ids that match this pattern (Kafka 4.1 and later).")
@with_output_option
@with_broker_options
def list_transactions(
    *,
    reach: Reach,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than: float | None,
    pattern: str | None,
    output: str,
) -> None:
    """List transactional ids and their states."""
    longer_than_ms = -1 if longer_than is None else int(longer_than * 1000)

    async def ask(client: Client) -> list[dict[str, Any]]:
        found = await client.admin.list_transactions(
            states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
        )
        return [{column: getattr(each, column) for column in _LISTED} for each in found]

    show_rows(reach.run(ask), _LISTED, output)


@transaction.command(
    epilog="""\b
Examples:
  ottla transaction describe billing
  ottla transaction describe billing shipping -o json
""",
)
@click.argument("names", metavar="TRANSACTIONAL_ID...", nargs=-1, required=True)
@with_output_option
@with_broker_options
def describe(names: tuple[str, ...], *, reach: Reach, output: str) -> None:
    """Describe transactions: age and partitions."""

    async def ask(client: Client) -> list[dict[str, Any]]:
        return [_described_row(await client.admin.describe_transaction(name)) for name in names]

    show_rows(reach.run(ask), _DESCRIBED, output)


def _described_row(described: TransactionDescription) -> dict[str, Any]:
    return {
        **{column: getattr(described, column) for column in _LISTED},
        "epoch": described.producer_epoch,
        "timeout_ms": described.timeout_ms,
        "running_s": _seconds_since(described.started_ms) if described.started_ms and described.partitions else None,
        "partitions": [str(at) for at in sorted(described.partitions)],
    }


@transaction.command(
    epilog="""\b
Examples:
  ottla transaction producers orders
  ottla transaction producers orders:0,1 --open -o json
""",
)
@click.argument("topics", metavar="TOPIC[:0,1…]...", nargs=-1, required=True)
@click.option("--open", "only_open", is_flag=True, help="Only producers with an open transaction.")
@with_output_option
@with_broker_options
def producers(topics: tuple[str, ...], *, reach: Reach, only_open: bool, output: str) -> None:
    """List active producers of partitions and their open transactions."""

    async def ask(client: Client) -> list[dict[str, Any]]:
        found = await client.admin.describe_producers(await _partitions(client.admin, topics))
        return [
            _producer_row(at, each)
            for at, those in found.items()
            for each in raise_if_error(those)
            if each.transaction_start is not None or not only_open
        ]

    show_rows(reach.run(ask), _PRODUCERS, output)


@transaction.command(
    "find-hanging",
    epilog="""\b
Examples:
  ottla transaction find-hanging
  ottla transaction find-hanging --topic orders --older-than 5m
  ottla transaction abort --topic orders:0 --start-offset 1042    (what it found)
""",
)
@click.option("-t", "--topic", "topics", metavar="TOPIC[:0,1…]", multiple=True, help="Broker to search [default: all].")
@click.option(
    "--older-than",
    type=Duration(),
    default="15m",
    show_default=True,
    metavar="TIME",
    help="Minimum idle time; should exceed the broker's maximum transaction timeout.",
)
@with_output_option
@with_broker_options
def find_hanging(*, reach: Reach, topics: tuple[str, ...], older_than: float, output: str) -> None:
    """Find hanging transactions, which block read_committed consumers."""

    async def ask(client: Client) -> list[OpenTransaction]:
        names = topics or tuple(await client.admin.list_topics())
        partitions = await _partitions(client.admin, names)
        return await client.admin.find_hanging_transactions(
            partitions, int(older_than * 1000), time.time_ns() // 1_000_000
        )

    rows = [_producer_row(each.at, each.producer) for each in reach.run(ask)]
    if output == "json":
        show_json(rows)
    elif rows:
        show_table(rows, _PRODUCERS)
    else:
        click.echo("no hanging transactions", err=True)


@transaction.command(
    epilog="""\b
Examples:
  ottla transaction abort billing                                 (its producer is fenced)
  ottla transaction abort --topic orders:0 --start-offset 1042    (one that find-hanging found)
""",
)
@click.argument("name", metavar="[TRANSACTIONAL_ID]", required=False)
@click.option("-t", "--topic", metavar="TOPIC:PARTITION", help="Partition with a hanging transaction.")
@click.option("--start-offset", type=int, help="First offset of the hanging transaction.")
@with_yes_option
@with_broker_options
def abort(name: str | None, *, reach: Reach, topic: str | None, start_offset: int | None, yes: bool) -> None:
    """Abort a transaction."""
    if (name is None) == (topic is None) or (topic is None) != (start_offset is None):
        raise ConfigError("name a TRANSACTIONAL_ID, or both --topic and --start-offset")
    what = name if name is not None else f"{topic} at {start_offset}"
    confirm(f"Abort the transaction of {what} at {reach.servers}?", yes=yes)

    async def ask(client: Client) -> None:
        if name is not None:
            await client.admin.end_transactions_of(name)
        else:
            await _abort_at(client.admin, str(topic), start_offset)

    reach.run(ask)
    click.echo(f"{printable(what)} aborted")


async def _abort_at(admin: Admin, topic: str, start_offset: int | None) -> None:
    partitions = await _partitions(admin, (topic,))
    if len(partitions) != 1:
        raise ConfigError(f"--topic: expected TOPIC:PARTITION, got {topic!r}")
    [(at, those)] = (await admin.describe_producers(partitions)).items()
    for producer in raise_if_error(those):
        if producer.transaction_start == start_offset:
            await admin.abort_transaction(OpenTransaction(at, producer))
            return
    raise OttlaError(f"no open transaction in {at} starts at offset {start_offset}")


async def _partitions(admin: Admin, topics: tuple[str, ...]) -> list[TopicPartition]:
    wanted = topics_and_partitions("TOPIC", topics)
    return existing(wanted, await partitions_of(admin, wanted))


def _producer_row(at: TopicPartition, producer: ActiveProducer) -> dict[str, Any]:
    return {
        "topic": at.topic,
        "partition": at.partition,
        "producer_id": producer.producer_id,
        "epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "idle_s": None if producer.last_timestamp < 0 else _seconds_since(producer.last_timestamp),
        "transaction_start": producer.transaction_start,
    }


def _seconds_since(timestamp_ms: int) -> int:
    return max(0, int(time.time() - timestamp_ms / 1000))
