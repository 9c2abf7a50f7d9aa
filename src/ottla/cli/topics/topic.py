"""`ottla topic`: create, describe, alter and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.arguments import config_pairs, existing
from ottla.cli.confirming import confirm, tell_outcomes, with_yes_option
from ottla.cli.connecting import with_broker_options
from ottla.cli.messages.starting_points import starting_point
from ottla.cli.offsets.bounds import bounds_of, known_bounds_of, offsets_at_time, partitions_of
from ottla.cli.offsets.resets import Bounds, wanted_offset
from ottla.cli.output import show_heading, show_json, show_rows, show_table, with_output_option
from ottla.cli.summaries import CommandGroup
from ottla.cli.tables import counted
from ottla.cli.topics.rows import (
    CONFIG_COLUMNS,
    PARTITION_COLUMNS,
    TOPIC_COLUMNS,
    DescribedTopic,
    config_rows,
    topic_row,
)
from ottla.client.admin.configs import ConfigResource
from ottla.client.admin.requests import raise_if_error
from ottla.client.admin.topics import BROKERS_CHOICE, NewTopic, TopicAdmin
from ottla.client.errors import BrokerError
from ottla.core.errors import ConfigError, ErrorCode
from ottla.core.ids import TopicPartition
from ottla.event_loop import run

if TYPE_CHECKING:
    from ottla.cli.connecting import Reach
    from ottla.cli.messages.starting_points import StartingPoint
    from ottla.client.client import Client


@click.group(cls=CommandGroup)
def topic() -> None:
    """Create, describe, alter and delete topics."""


@topic.command(
    "list",
    epilog="""\b
Examples:
  ottla topic list
  ottla topic list --internal -o json
""",
)
@click.option("--internal", is_flag=True, help="Include internal topics such as __consumer_offsets.")
@with_output_option
@with_broker_options
def list_topics(*, reach: Reach, internal: bool, output: str) -> None:
    """List topics."""

    async def ask(client: Client) -> list[dict[str, Any]]:
        admin = TopicAdmin(client.router)  # `client.admin` imports all messages
        described = await admin.describe_topics(await admin.list_topics(include_internal=internal))
        return [topic_row(view) for view in described.values() if not isinstance(view, BrokerError)]

    show_rows(reach.run(ask), TOPIC_COLUMNS, output)


@topic.command(
    epilog="""\b
Examples:
  ottla topic create orders
  ottla topic create orders -p 6 --set retention.ms=7d
  ottla topic create orders payments -p 3 -r 3 --if-not-exists
  ottla topic create orders -p 6 --dry-run
""",
)
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="Number of partitions [default: the broker's].")
@click.option("-r", "--replicas", type=click.IntRange(min=1), help="Replication factor [default: the broker's].")
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Topic config, such as retention.ms=7d or segment.bytes=64MiB; may be repeated.",
)
@click.option("--if-not-exists", is_flag=True, help="Ignore topics that already exist.")
@click.option("--dry-run", is_flag=True, help="Validate only; change nothing.")
@with_broker_options
def create(names: tuple[str, ...], *, reach: Reach, **options: Any) -> None:
    """Create topics."""
    new = [
        NewTopic(
            name=name,
            partitions=options["partitions"] or BROKERS_CHOICE,
            replication_factor=options["replicas"] or BROKERS_CHOICE,
            configs=config_pairs("--set", options["settings"]),
        )
        for name in dict.fromkeys(names)
    ]
    outcomes = reach.run(lambda client: TopicAdmin(client.router).create_topics(new, validate_only=options["dry_run"]))
    if options["if_not_exists"]:
        outcomes = {name: error for name, error in outcomes.items() if not _exists_already(error)}
    tell_outcomes(outcomes, "could be created" if options["dry_run"] else "created")


def _exists_already(error: BrokerError | None) -> bool:
    return error is not None and error.code is ErrorCode.TOPIC_ALREADY_EXISTS


@topic.command(
    epilog="""\b
Examples:
  ottla topic describe orders
  ottla topic describe orders --all-settings
  ottla topic describe orders payments -o json
""",
)
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@click.option("--all-settings", is_flag=True, help="Include configs with default values.")
@with_output_option
@with_broker_options
def describe(names: tuple[str, ...], *, reach: Reach, all_settings: bool, output: str) -> None:
    """Describe partitions and configs of topics."""
    described = run(_describe(reach, names))
    if output == "json":
        show_json([each.as_json(include_defaults=all_settings) for each in described])
        return
    for number, each in enumerate(described):
        if number:
            click.echo()
        show_heading(each.heading())
        click.echo()
        show_table(each.partition_rows(), PARTITION_COLUMNS)
        if rows := config_rows(each.configs.values(), include_defaults=all_settings):
            click.echo()
            show_table(rows, CONFIG_COLUMNS)


async def _describe(reach: Reach, names: tuple[str, ...]) -> list[DescribedTopic]:
    async with reach.client() as client:
        admin = client.admin
        views = [raise_if_error(view) for view in (await admin.describe_topics(names)).values()]
        partitions = [TopicPartition(view.name, index) for view in views for index in view.partitions]
        bounds = await known_bounds_of(admin, partitions)
        return [
            DescribedTopic(
                view,
                {
                    where: each
                    for where, each in bounds.items()
                    if where.topic == view.name and isinstance(each, Bounds)
                },
                await admin.describe_configs(ConfigResource.topic(view.name)),
            )
            for view in views
        ]


@topic.command(
    epilog="""\b
Examples:
  ottla topic delete orders
  ottla topic delete orders payments --yes
""",
)
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@with_yes_option
@with_broker_options
def delete(names: tuple[str, ...], *, reach: Reach, yes: bool) -> None:
    """Delete topics and all their messages."""
    confirm(f"Delete {', '.join(names)} with all messages at {reach.servers}?", yes=yes)
    tell_outcomes(reach.run(lambda client: TopicAdmin(client.router).delete_topics(dict.fromkeys(names))), "deleted")


@topic.command(
    epilog="""\b
Examples:
  ottla topic alter orders --partitions 12
  ottla topic alter orders --set retention.ms=1d --unset segment.bytes
  ottla topic alter orders --set cleanup.policy=compact --dry-run
""",
)
@click.argument("name", metavar="TOPIC")
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="New number of partitions; can only grow.")
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="Set a config; may be repeated.")
@click.option("--unset", metavar="NAME", multiple=True, help="Reset a config to its default; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Validate only; change nothing.")
@with_broker_options
def alter(name: str, *, reach: Reach, **options: Any) -> None:
    """Add partitions to a topic or change its configs.

    Adding partitions changes which partition a key maps to.
    """
    changes, unset, partitions = config_pairs("--set", options["settings"]), options["unset"], options["partitions"]
    if not (changes or unset or partitions):
        raise ConfigError("nothing to alter: give --partitions, --set or --unset")

    async def ask(client: Client) -> None:
        # Validate everything first, so that an error does not leave a partial change.
        for is_trial in (True,) if options["dry_run"] else (True, False):
            if changes or unset:
                await client.admin.alter_configs(
                    ConfigResource.topic(name), changes, delete=unset, validate_only=is_trial
                )
            if partitions:
                await client.admin.create_partitions(name, partitions, validate_only=is_trial)

    reach.run(ask)
    click.echo(f"{name} {'could be altered' if options['dry_run'] else 'altered'}")


@topic.command(
    "delete-records",
    epilog="""\b
Examples:
  ottla topic delete-records orders --before end         (all there is)
  ottla topic delete-records orders --before 7d          (what is older than a week)
  ottla topic delete-records orders --before -1000       (all but the last 1000 of each partition)
  ottla topic delete-records orders --before 42 -p 0 --yes
""",
)
@click.argument("name", metavar="TOPIC")
@click.option(
    "--before",
    metavar="WHERE",
    required=True,
    help="end, an offset, -N for all but the last N, 7d for what is older than seven days, or a time.",
)
@click.option("-p", "--partition", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this partition.")
@with_yes_option
@with_broker_options
def delete_records(name: str, *, reach: Reach, before: str, partitions: tuple[int, ...], yes: bool) -> None:
    """Delete the oldest messages of a topic."""
    run(_delete_records(reach, {name: sorted(set(partitions)) or None}, starting_point(before, option="--before"), yes))


async def _delete_records(
    reach: Reach,
    wanted: dict[str, list[int] | None],
    point: StartingPoint,
    yes: bool,
) -> None:
    async with reach.client() as client:
        admin = client.admin
        partitions = existing(wanted, await partitions_of(admin, wanted))
        bounds = await bounds_of(admin, partitions)
        found = await offsets_at_time(admin, point, partitions)
        below = {where: each.nearest(wanted_offset(point, each, found.get(where))) for where, each in bounds.items()}
        count = sum(below[where] - each.first for where, each in bounds.items())
        if not count:
            click.echo("there is nothing to delete")
            return
        confirm(f"Delete the oldest {counted(count, 'message')} of {', '.join(wanted)} at {reach.servers}?", yes=yes)
        _tell_deleted(await admin.delete_records(below))


def _tell_deleted(outcomes: dict[TopicPartition, int | BrokerError]) -> None:
    tell_outcomes(
        {
            where if isinstance(first, BrokerError) else f"{where} begins at {first}": first
            for where, first in outcomes.items()
        },
        "now",
    )
