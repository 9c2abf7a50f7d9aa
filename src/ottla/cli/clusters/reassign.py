"""`ottla cluster reassign`: move partitions to other nodes, and balance them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.clusters.moves import all_partitions, check_nodes, named_partitions, until_nothing_moves
from ottla.cli.clusters.spreading import rotated, spread
from ottla.cli.clusters.throttling import throttle, unthrottle
from ottla.cli.confirming import tell_outcomes
from ottla.cli.connecting import with_broker_options
from ottla.cli.output import show_rows, with_output_option
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.cli.connecting import Reach
    from ottla.client.admin.admin import Admin
    from ottla.client.client import Client
    from ottla.core.ids import TopicPartition

MOVE_COLUMNS: Final = ("partition", "replicas", "adding", "removing")
_ALL_NODES: Final = "all"


@click.command(
    epilog="""\b
Examples:
  ottla cluster reassign                          (the moves that are under way)
  ottla cluster reassign orders --to 1,2,3
  ottla cluster reassign orders:0,1 --to 4,5 --wait
  ottla cluster reassign --over all               (spread everything evenly, as after a node was added)
  ottla cluster reassign orders --over 1,2,4 --throttle 20000000
  ottla cluster reassign --unthrottle             (after a throttled move was left alone)
  ottla cluster reassign orders --cancel
""",
)
@click.argument("partitions", metavar="[TOPIC[:0,1…]]…", nargs=-1)
@click.option(
    "--to",
    "target",
    metavar="NODES",
    help="Replicas of every partition; leadership rotates over the nodes.",
)
@click.option(
    "--over",
    metavar="NODES|all",
    help="Spread replicas evenly over these nodes, keeping the replication factor; all topics by default.",
)
@click.option("--cancel", is_flag=True, help="Cancel reassignments in progress; all topics by default.")
@click.option("--wait", is_flag=True, help="Wait until the reassignment is complete.")
@click.option(
    "--throttle",
    "rate",
    metavar="BYTES/S",
    type=click.IntRange(1),
    help="Limit replication to this many bytes per second and node; waits, then removes the limit.",
)
@click.option("--unthrottle", "lift", is_flag=True, help="Remove the limit of an earlier --throttle.")
@with_output_option
@with_broker_options
def reassign(  # noqa: PLR0913
    partitions: tuple[str, ...],
    *,
    reach: Reach,
    target: str | None,
    over: str | None,
    cancel: bool,
    wait: bool,
    rate: int | None,
    lift: bool,
    output: str,
) -> None:
    """Move partitions to other nodes, or list reassignments in progress."""
    chosen = [target is not None, over is not None, cancel].count(True)
    if chosen > 1 or (partitions and not chosen) or (target is not None and not partitions):
        raise ConfigError("nothing to move: give TOPIC --to NODES, [TOPIC] --over NODES, or [TOPIC] --cancel")
    if rate is not None and (cancel or not chosen):
        raise ConfigError("--throttle needs --to or --over")

    async def ask(client: Client) -> list[dict[str, Any]]:
        admin = client.admin
        if target is not None:
            await _move(admin, await _all_to(admin, partitions, _nodes("--to", target)), rate)
        elif over is not None:
            await _move(admin, await _spread_over(admin, partitions, over), rate)
        elif cancel:
            tell_outcomes(await admin.reassign_partitions(await _to_cancel(admin, partitions)), "stays")
        if wait or rate is not None:
            await until_nothing_moves(admin)
        if lift or rate is not None:
            await unthrottle(admin)
        moves = await admin.list_reassignments()
        return [
            {"partition": str(where), "replicas": move.replicas, "adding": move.adding, "removing": move.removing}
            for where, move in moves.items()
        ]

    show_rows(reach.run(ask), MOVE_COLUMNS, output)


def _nodes(option: str, text: str) -> tuple[int, ...]:
    if not all(number.strip().isdigit() for number in text.split(",")):
        raise ConfigError(f"{option}: expected numbers such as 1,2,3, got {text!r}")
    return tuple(int(number) for number in text.split(","))


async def _move(admin: Admin, moves: dict[TopicPartition, tuple[int, ...]], rate: int | None) -> None:
    if not moves:
        click.echo("nothing to move", err=True)
        return
    if rate is not None:
        await throttle(admin, moves, rate)
    tell_outcomes(await admin.reassign_partitions(moves), "moves")


async def _all_to(admin: Admin, given: Sequence[str], nodes: Sequence[int]) -> dict[TopicPartition, tuple[int, ...]]:
    named = await named_partitions(admin, given)
    return dict(zip(named, rotated(nodes, len(named)), strict=True))


async def _spread_over(admin: Admin, given: Sequence[str], over: str) -> dict[TopicPartition, tuple[int, ...]]:
    brokers = {each.node_id: each for each in (await admin.describe_cluster()).brokers}
    nodes = tuple(brokers) if over == _ALL_NODES else _nodes("--over", over)
    check_nodes(nodes, brokers)
    known = await all_partitions(admin)
    wanted = await named_partitions(admin, given) if given else known
    return spread({where: known[where] for where in wanted if where in known}, brokers, nodes)


async def _to_cancel(admin: Admin, given: Sequence[str]) -> dict[TopicPartition, None]:
    return dict.fromkeys(await named_partitions(admin, given) if given else await admin.list_reassignments())
