"""Confirmation of destructive commands, and reporting of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.tables import printable
from ottla.core.errors import ConfigError, OttlaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")


def with_yes_option(command: Decorated) -> Decorated:
    """Give a command `--yes`, as `yes`."""
    return click.option("-y", "--yes", is_flag=True, help="Skip the confirmation.")(command)


def confirm(question: str, *, yes: bool) -> None:
    """Exit unless the user confirms."""
    if yes:
        return
    try:
        is_meant = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        raise ConfigError("no terminal to confirm on; pass --yes to skip the confirmation") from None
    if not is_meant:
        raise OttlaError("nothing was changed")


def tell_outcomes(outcomes: Mapping[Any, object], done: str) -> None:
    """Print a line for each success and each error; fail if there was an error."""
    failed = [outcome for outcome in outcomes.values() if isinstance(outcome, OttlaError)]
    for name, outcome in outcomes.items():
        if not isinstance(outcome, OttlaError):
            click.echo(f"{printable(str(name))} {done}")
    for error in failed[:-1]:
        click.echo(f"ottla: {printable(str(error))}", err=True)
    if failed:
        raise failed[-1]
