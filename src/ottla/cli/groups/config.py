"""`ottla group config`: show and change the configs of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ottla.cli.arguments import config_pairs
from ottla.cli.connecting import with_broker_options
from ottla.cli.output import show_rows, with_output_option
from ottla.cli.topics.rows import CONFIG_COLUMNS, config_rows
from ottla.client.admin.configs import ConfigResource

if TYPE_CHECKING:
    from ottla.cli.connecting import Reach
    from ottla.client.admin.configs import ConfigEntry
    from ottla.client.client import Client


@click.command(
    "config",
    epilog="""\b
Examples:
  ottla group config workers
  ottla group config workers --set share.record.lock.duration.ms=60000
  ottla group config workers --set dead.letter.topic=jobs-dead --set share.delivery.count.limit=3
  ottla group config workers --unset dead.letter.topic
""",
)
@click.argument("name", metavar="GROUP")
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="Set a config; may be repeated.")
@click.option("--unset", metavar="NAME", multiple=True, help="Reset a config to its default; may be repeated.")
@with_output_option
@with_broker_options
def group_config(name: str, *, reach: Reach, settings: tuple[str, ...], unset: tuple[str, ...], output: str) -> None:
    """Show the configs of a group, after changing them. The group need not exist."""
    changes = config_pairs("--set", settings)

    async def ask(client: Client) -> dict[str, ConfigEntry]:
        resource = ConfigResource.group(name)
        if changes or unset:
            await client.admin.alter_configs(resource, changes, delete=unset)
        return await client.admin.describe_configs(resource)

    show_rows(config_rows(reach.run(ask).values(), include_defaults=True), CONFIG_COLUMNS, output)
