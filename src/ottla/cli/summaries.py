"""Command groups with full help sentences."""

from __future__ import annotations

from typing import Final

import click

_UNCUT: Final = 1000


class Verbs(click.Group):
    """A group whose help says of each command a whole sentence; click cuts it where the line ends."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_UNCUT)) for name, command in commands if command])
