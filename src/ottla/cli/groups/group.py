"""`ottla group`: list, describe and reset consumer groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.arguments import existing, topics_and_partitions
from ottla.cli.confirming import confirm, tell_outcomes, with_yes_option
from ottla.cli.connecting import with_broker_options
from ottla.cli.groups.config import group_config
from ottla.cli.groups.offsets import forget_offsets, found_group, is_share, offsets_of
from ottla.cli.groups.reset import reset_offsets
from ottla.cli.groups.rows import GROUP_COLUMNS, LAG_COLUMNS, DescribedGroup, group_row
from ottla.cli.offsets.bounds import known_bounds_of, partitions_of
from ottla.cli.offsets.files import to_lines
from ottla.cli.output import show_heading, show_json, show_rows, show_table, with_output_option
from ottla.cli.summaries import CommandGroup
from ottla.cli.tables import counted
from ottla.core.errors import OttlaError
from ottla.event_loop import run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.cli.connecting import Reach
    from ottla.client.client import Client
    from ottla.client.errors import BrokerError
    from ottla.core.ids import TopicPartition


@click.group(cls=CommandGroup)
def group() -> None:
    """Inspect consumer groups and reset their offsets."""


group.add_command(reset_offsets)
group.add_command(group_config)


@group.command(
    "list",
    epilog="""\b
Examples:
  ottla group list
  ottla group list --state Stable --state Empty
  ottla group list -o json
""",
)
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only this state; may be repeated.")
@with_output_option
@with_broker_options
def list_groups(*, reach: Reach, states: tuple[str, ...], output: str) -> None:
    """List groups."""

    async def ask(client: Client) -> list[dict[str, Any]]:
        from ottla.client.admin.groups import GroupAdmin  # `client.admin` imports all messages

        return [group_row(each) for each in await GroupAdmin(client.router).list_groups(states=states)]

    show_rows(reach.run(ask), GROUP_COLUMNS, output)


@group.command(
    epilog="""\b
Examples:
  ottla group describe billing
  ottla group describe billing shipping -o json
""",
)
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@with_output_option
@with_broker_options
def describe(names: tuple[str, ...], *, reach: Reach, output: str) -> None:
    """Describe groups: members, assignments and lag."""
    described = run(_describe(reach, names))
    if output == "json":
        show_json([each.as_json() for each in described])
        return
    for number, each in enumerate(described):
        if number:
            click.echo()
        show_heading(each.heading())
        for rows, columns in ((each.member_rows(), each.member_columns), (each.lag_rows(), LAG_COLUMNS)):
            if rows:
                click.echo()
                show_table(rows, columns)


async def _describe(reach: Reach, names: tuple[str, ...]) -> list[DescribedGroup]:
    described = []
    async with reach.client() as client:
        admin = client.admin
        for name in dict.fromkeys(names):
            about = await admin.describe_group(name)
            lags: dict[TopicPartition, int | None] = {}
            if is_share(about):
                shared = await admin.share_group_offsets(name)
                committed = {where: each.start for where, each in shared.items()}
                lags = {where: each.lag for where, each in shared.items()}
            else:
                committed = await offsets_of(admin, name, about)
            read = {where for member in about.members for where in member.partitions}
            bounds = await known_bounds_of(admin, sorted({*committed, *read}))
            described.append(DescribedGroup(about, committed, bounds, lags))
    return described


@group.command(
    epilog="""\b
Examples:
  ottla group delete billing
  ottla group delete billing shipping --yes
""",
)
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@with_yes_option
@with_broker_options
def delete(names: tuple[str, ...], *, reach: Reach, yes: bool) -> None:
    """Delete inactive groups and their offsets."""
    confirm(f"Delete the groups {', '.join(names)} and their offsets at {reach.servers}?", yes=yes)
    tell_outcomes(reach.run(lambda client: client.admin.delete_groups(dict.fromkeys(names))), "deleted")


@group.command(
    "delete-offsets",
    epilog="""\b
Examples:
  ottla group delete-offsets billing --topic orders
  ottla group delete-offsets billing --topic orders:0,1 --yes
""",
)
@click.argument("name", metavar="GROUP")
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="TOPIC[:0,1…]",
    multiple=True,
    required=True,
    help="Topic or TOPIC:0,1,2; may be repeated.",
)
@with_yes_option
@with_broker_options
def delete_offsets(name: str, *, reach: Reach, topics: tuple[str, ...], yes: bool) -> None:
    """Delete a group's offsets of topics without active members."""
    wanted = topics_and_partitions("--topic", topics)
    confirm(f"Delete the offsets of group {name} in {', '.join(topics)} at {reach.servers}?", yes=yes)

    async def ask(client: Client) -> Mapping[TopicPartition, BrokerError | None] | Mapping[str, BrokerError | None]:
        partitions = existing(wanted, await partitions_of(client.admin, wanted))
        return await forget_offsets(client.admin, name, wanted, partitions)

    tell_outcomes(reach.run(ask), "forgotten")


@group.command(
    "export-offsets",
    epilog="""\b
Examples:
  ottla group export-offsets billing > offsets.csv
  ottla group export-offsets billing --file offsets.csv
  ottla group reset-offsets billing --from-file offsets.csv --execute    (and back again)
""",
)
@click.argument("name", metavar="GROUP")
@click.option(
    "-f", "--file", type=click.Path(dir_okay=False, path_type=Path), help="Output file [default: standard output]."
)
@with_broker_options
def export_offsets(name: str, *, reach: Reach, file: Path | None) -> None:
    """Export a group's offsets as lines of topic,partition,offset."""

    async def ask(client: Client) -> dict[TopicPartition, int]:
        return await offsets_of(client.admin, name, await found_group(client.admin, name))

    offsets = reach.run(ask)
    if not offsets:
        raise OttlaError(f"group {name!r} has committed no offsets")
    if file is None:
        click.echo(to_lines(offsets), nl=False)
        return
    try:
        file.write_text(to_lines(offsets))
    except OSError as refused:
        raise OttlaError(f"{file} cannot be written: {refused.strerror}") from None
    click.echo(f"{counted(len(offsets), 'offset')} written to {file}", err=True)
