"""`ottla cluster status|elect|drain`: show and change leaders and replicas."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.arguments import topics_and_partitions
from ottla.cli.clusters.draining import plan
from ottla.cli.confirming import confirm, tell_outcomes, with_yes_option
from ottla.cli.connecting import with_broker_options
from ottla.cli.output import show_rows, with_output_option
from ottla.cli.topics.rows import is_under_replicated
from ottla.client.admin.configs import ConfigResource
from ottla.client.errors import BrokerError
from ottla.core.errors import ConfigError, ErrorCode, OttlaError
from ottla.core.ids import TopicPartition
from ottla.event_loop import run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ottla.cli.connecting import Reach
    from ottla.client.admin.admin import Admin
    from ottla.client.client import Client
    from ottla.client.view import BrokerAddress, PartitionView

STATUS_COLUMNS: Final = ("id", "address", "rack", "controller", "leads", "holds", "lagging", "offline")
_DRAINING: Final = "broker.draining"
_LOOK_AGAIN_S: Final = 0.5
_MOST_NAMED: Final = 20


async def all_partitions(admin: Admin) -> dict[TopicPartition, PartitionView]:
    names = await admin.list_topics(include_internal=True)
    topics = (await admin.describe_topics(names)).values()
    return {
        TopicPartition(topic.name, index): partition
        for topic in topics
        if not isinstance(topic, BrokerError)
        for index, partition in topic.partitions.items()
    }


@click.command(
    epilog="""\b
Examples:
  ottla cluster status
  ottla cluster status -b prod -o json
""",
)
@with_output_option
@with_broker_options
def status(*, reach: Reach, output: str) -> None:
    """Show the leaders, replicas and lag of every node. Exits with 1 if a partition has no leader."""

    async def ask(client: Client) -> tuple[list[dict[str, Any]], list[str], int, list[str]]:
        partitions = await all_partitions(client.admin)
        about = await client.admin.describe_cluster()
        leaderless = leaderless_partitions(about.brokers, partitions)
        lagging = sum(map(is_under_replicated, partitions.values()))
        failed = offline_replicas(about.brokers, partitions)
        return status_rows(about.brokers, about.controller_id, partitions), leaderless, lagging, failed

    rows, leaderless, lagging, failed = reach.run(ask)
    show_rows(rows, STATUS_COLUMNS, output)
    if lagging and output != "json":
        click.echo(f"{lagging} partitions are under-replicated", err=True)
    if failed and output != "json":
        click.echo(f"offline replicas, whose disk failed (the node's log says why): {', '.join(failed)}", err=True)
    for each in leaderless[:_MOST_NAMED]:
        click.echo(each, err=True)
    if leaderless:
        raise OttlaError(f"{len(leaderless)} partitions have no leader")


def status_rows(
    brokers: Sequence[BrokerAddress], controller_id: int, partitions: Mapping[TopicPartition, PartitionView]
) -> list[dict[str, Any]]:
    """A row for each registered node, and for each absent node with replicas."""
    known = {each.node_id: each for each in brokers}
    nodes = sorted({*known, *(node for each in partitions.values() for node in each.replicas)})
    return [
        {
            "id": node,
            "address": str(known[node].address) if node in known else None,
            "rack": known[node].rack if node in known else None,
            "controller": node == controller_id,
            "leads": sum(each.leader == node for each in partitions.values()),
            "holds": sum(node in each.replicas for each in partitions.values()),
            "lagging": sum(node in each.replicas and node not in each.isr for each in partitions.values()),
            "offline": sum(node in each.offline for each in partitions.values()),
        }
        for node in nodes
    ]


def leaderless_partitions(
    brokers: Sequence[BrokerAddress], partitions: Mapping[TopicPartition, PartitionView]
) -> list[str]:
    """For each partition without a leader: which replica could lead, and what to do."""
    there = {each.node_id for each in brokers}
    return [_why_leaderless(at, each, there) for at, each in partitions.items() if each.leader < 0]


def _why_leaderless(at: TopicPartition, partition: PartitionView, there: Collection[int]) -> str:
    last = f"{at} has no leader: its last in-sync replicas are on brokers {sorted(partition.isr)}"
    accept = f"accept the loss of acknowledged records: ottla cluster elect {at.topic}:{at.partition} --unclean"
    returned = sorted(node for node in partition.isr if node in there)
    failed = [node for node in returned if node in partition.offline]
    if failed == returned != []:
        return f"{last}, and the log on {failed} is offline because its disk fails. If its records are gone, {accept}"
    if not returned:
        return f"{last}, which are not available. Start one of them. If they are gone for good, {accept}"
    return (
        f"{last}, and {returned} are available. A broker that restarted with another data folder, or an older copy of "
        f"it, cannot lead (its log says so): restart it with the folder that it had, or {accept}"
    )


def offline_replicas(brokers: Sequence[BrokerAddress], partitions: Mapping[TopicPartition, PartitionView]) -> list[str]:
    """Offline replicas on registered nodes, such as `orders-3 on 2`."""
    there = {each.node_id for each in brokers}
    return [f"{at} on {node}" for at, each in partitions.items() for node in each.offline if node in there]


async def named_partitions(admin: Admin, given: Sequence[str]) -> list[TopicPartition]:
    wanted = topics_and_partitions("TOPIC", given)
    found = []
    for name, indexes in wanted.items():
        topic = await admin.describe_topic(name)
        found += [TopicPartition(name, index) for index in (sorted(topic.partitions) if indexes is None else indexes)]
    return found


def check_nodes(given: Iterable[int], known: Collection[int]) -> None:
    if unknown := sorted({*given} - {*known}):
        there = ", ".join(map(str, sorted(known)))
        raise ConfigError(f"there is no node {', '.join(map(str, unknown))}; there are {there}")


async def until_nothing_moves(admin: Admin) -> None:
    while moves := await admin.list_reassignments():
        click.echo(f"{len(moves)} partitions are moving", err=True)
        await asyncio.sleep(_LOOK_AGAIN_S)


@click.command(
    epilog="""\b
Examples:
  ottla cluster elect                             (every partition by its preferred leader)
  ottla cluster elect orders payments:0
  ottla cluster elect orders:3 --unclean --yes
""",
)
@click.argument("partitions", metavar="[TOPIC[:0,1…]]…", nargs=-1)
@click.option("--unclean", is_flag=True, help="Allow an out-of-sync replica to become leader (data loss).")
@with_yes_option
@with_broker_options
def elect(partitions: tuple[str, ...], *, reach: Reach, unclean: bool, yes: bool) -> None:
    """Elect the preferred leader of each partition."""
    if unclean:
        confirm("Acknowledged records may be lost. Elect anyway?", yes=yes)

    async def ask(client: Client) -> dict[TopicPartition, BrokerError | None]:
        named = await named_partitions(client.admin, partitions) if partitions else None
        return await client.admin.elect_leaders(named, unclean=unclean)

    outcomes = {
        where: outcome
        for where, outcome in reach.run(ask).items()
        if outcome is None or outcome.code is not ErrorCode.ELECTION_NOT_NEEDED
    }
    if not outcomes:
        click.echo("every partition has its preferred leader")
    tell_outcomes(outcomes, "has a new leader")


@click.command(
    epilog="""\b
Examples:
  ottla cluster drain 3
  ottla cluster drain 2 3 --yes                   (nothing of one goes to the other)
  ottla cluster drain 3 --undo                    (give it new partitions again)
""",
)
@click.argument("nodes", type=int, nargs=-1, required=True)
@click.option("--undo", is_flag=True, help="Place new partitions on the nodes again.")
@with_yes_option
@with_broker_options
def drain(nodes: tuple[int, ...], *, reach: Reach, undo: bool, yes: bool) -> None:
    """Move all replicas off nodes, and wait until they can be stopped."""
    if undo:
        run(_undo_drain(reach, nodes))
        for node in nodes:
            click.echo(f"node {node} is given partitions again")
        return
    names = ", ".join(map(str, nodes))

    async def ask(client: Client) -> int:
        brokers = {each.node_id: each for each in (await client.admin.describe_cluster()).brokers}
        partitions = await all_partitions(client.admin)
        check_nodes(nodes, {*brokers, *(node for each in partitions.values() for node in each.replicas)})
        moves = plan(partitions, brokers, nodes)
        if moves:
            confirm(f"Move {len(moves)} partitions away from node {names}?", yes=yes)
        for node in brokers.keys() & set(nodes):
            await client.admin.alter_configs(ConfigResource.broker(node), {_DRAINING: "true"})
        if not moves:
            return 0
        outcomes = await client.admin.reassign_partitions(moves)
        tell_outcomes({where: each for where, each in outcomes.items() if each is not None}, "")
        await until_nothing_moves(client.admin)
        return len(moves)

    moved = reach.run(ask)
    click.echo(f"node {names} holds nothing" + (f": {moved} partitions were moved" if moved else ""))


async def _undo_drain(reach: Reach, nodes: Sequence[int]) -> None:
    async with reach.client() as client:
        for node in nodes:
            await client.admin.alter_configs(ConfigResource.broker(node), {}, delete=(_DRAINING,))
