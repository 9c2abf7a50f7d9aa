"""Command groups with full help sentences."""

from __future__ import annotations

from typing import Final

import click

_UNCUT: Final = 1000
_ALIASES: Final = {"ls": "list", "rm": "delete"}


class CommandGroup(click.Group):
    """A group whose help has a whole sentence per command, and with `ls` for list and `rm` for delete."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or super().get_command(ctx, _ALIASES.get(cmd_name, cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_UNCUT)) for name, command in commands if command])
