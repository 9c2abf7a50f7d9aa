"""`ottla cluster`: brokers and their configs. Partitions are in `moves` and `reassign`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.arguments import config_pairs
from ottla.cli.clusters.local import local
from ottla.cli.clusters.moves import drain, elect, status
from ottla.cli.clusters.reassign import reassign
from ottla.cli.connecting import with_broker_options
from ottla.cli.output import show_json, show_rows, show_table, with_output_option
from ottla.cli.summaries import CommandGroup
from ottla.cli.topics.rows import CONFIG_COLUMNS, config_rows, is_under_replicated
from ottla.client.admin.configs import ConfigResource
from ottla.client.errors import BrokerError
from ottla.core.errors import ConfigError
from ottla.event_loop import run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.cli.connecting import Reach
    from ottla.client.admin.cluster import ClusterDescription
    from ottla.client.client import Client
    from ottla.client.view import TopicView

BROKER_COLUMNS: Final = ("id", "host", "port", "rack", "controller")
ALL_BROKERS: Final = "all"


@click.group(cls=CommandGroup)
def cluster() -> None:
    """Inspect and configure brokers, and move partitions."""


cluster.add_command(status)
cluster.add_command(reassign)
cluster.add_command(elect)
cluster.add_command(drain)
cluster.add_command(local)


@cluster.command(
    epilog="""\b
Examples:
  ottla cluster describe
  ottla cluster describe -b prod -o json
""",
)
@with_output_option
@with_broker_options
def describe(*, reach: Reach, output: str) -> None:
    """Show brokers, topics and partitions, and what is unhealthy."""

    async def ask(client: Client) -> dict[str, Any]:
        admin = client.admin
        names = await admin.list_topics(include_internal=True)
        topics = (await admin.describe_topics(names)).values()
        groups = await admin.list_groups()
        about = await admin.describe_cluster()
        return summary(about, [each for each in topics if not isinstance(each, BrokerError)], len(groups))

    facts = reach.run(ask)
    if output == "json":
        show_json(facts)
        return
    show_table([{"about": name.replace("_", " "), "value": value} for name, value in facts.items()], ("about", "value"))


def summary(about: ClusterDescription, topics: Iterable[TopicView], groups: int) -> dict[str, Any]:
    """Numbers and problems of the cluster."""
    listed = list(topics)
    partitions = [each for topic in listed for each in topic.partitions.values()]
    return {
        "cluster_id": about.cluster_id,
        "controller": about.controller_id if about.controller_id >= 0 else None,
        "brokers": len(about.brokers),
        "topics": sum(not topic.is_internal for topic in listed),
        "internal_topics": sum(topic.is_internal for topic in listed),
        "partitions": len(partitions),
        "groups": groups,
        "partitions_without_a_leader": sum(each.leader < 0 for each in partitions),
        "under_replicated_partitions": sum(map(is_under_replicated, partitions)),
    }


@cluster.command(
    epilog="""\b
Examples:
  ottla cluster brokers
  ottla cluster brokers -b prod -o json
""",
)
@with_output_option
@with_broker_options
def brokers(*, reach: Reach, output: str) -> None:
    """List brokers with their advertised addresses."""
    about = reach.run(lambda client: client.admin.describe_cluster())
    rows = [
        {
            "id": each.node_id,
            "host": each.host,
            "port": each.port,
            "rack": each.rack,
            "controller": each.node_id == about.controller_id,
        }
        for each in about.brokers
    ]
    show_rows(rows, BROKER_COLUMNS, output)


@cluster.group(cls=CommandGroup)
def configs() -> None:
    """Show or change broker configs."""


@configs.command(
    epilog="""\b
Examples:
  ottla cluster configs show
  ottla cluster configs show 2 --all-settings
  ottla cluster configs show all                  (the default that is set for all)
  ottla cluster configs show -o json
""",
)
@click.argument("node", metavar="[BROKER|all]", required=False)
@click.option("--all-settings", is_flag=True, help="Include configs with default values.")
@with_output_option
@with_broker_options
def show(node: str | None, *, reach: Reach, all_settings: bool, output: str) -> None:
    """Show the configs of a broker (default: the first), or the cluster-wide defaults with `all`."""

    async def ask(client: Client) -> list[dict[str, Any]]:
        known = [each.node_id for each in (await client.admin.describe_cluster()).brokers]
        entries = await client.admin.describe_configs(_resource(known, str(known[0]) if node is None else node))
        return config_rows(entries.values(), include_defaults=all_settings)

    show_rows(reach.run(ask), CONFIG_COLUMNS, output)


@configs.command(
    epilog="""\b
Examples:
  ottla cluster configs alter 2 --set log.retention.ms=1d
  ottla cluster configs alter all --set message.max.bytes=2MiB
  ottla cluster configs alter 2 --unset log.retention.ms --dry-run
""",
)
@click.argument("node", metavar="BROKER|all")
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="Set a config; may be repeated.")
@click.option("--unset", metavar="NAME", multiple=True, help="Reset a config to its default; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Validate only; change nothing.")
@with_broker_options
def alter(node: str, *, reach: Reach, settings: tuple[str, ...], unset: tuple[str, ...], dry_run: bool) -> None:
    """Change configs of a broker, or the cluster-wide defaults with `all`."""
    changes = config_pairs("--set", settings)
    if not (changes or unset):
        raise ConfigError("nothing to alter: give --set or --unset")
    run(_alter(reach, node, changes, unset, dry_run=dry_run))
    click.echo(f"{'could be altered' if dry_run else 'altered'}: {', '.join([*changes, *unset])}")


async def _alter(reach: Reach, node: str, changes: dict[str, str], unset: tuple[str, ...], *, dry_run: bool) -> None:
    async with reach.client() as client:
        known = [each.node_id for each in (await client.admin.describe_cluster()).brokers]
        await client.admin.alter_configs(_resource(known, node), changes, delete=unset, validate_only=dry_run)


def _resource(known: list[int], node: str) -> ConfigResource:
    if node == ALL_BROKERS:
        return ConfigResource.broker(None)
    if not (node.isascii() and node.isdigit()):
        raise ConfigError(f"expected a broker id or all, got {node!r}")
    if int(node) not in known:
        raise ConfigError(f"there is no broker {node}; known: {', '.join(map(str, known))}")
    return ConfigResource.broker(int(node))
