"""What commands print: tables for people, JSON for programs, colours where they help."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from ottla.cli.tables import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")


def with_output_option(command: Decorated) -> Decorated:
    """Give a command `-o`, as `output`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="Output format.",
    )(command)


def show_rows(rows: Sequence[Mapping[str, object]], columns: Sequence[str], output: str) -> None:
    """A listing: some columns of it as a table, or all it holds as JSON."""
    if output == "json":
        show_json(rows)
    else:
        show_table(rows, columns)


def show_table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    heading, *lines = layout(columns, rows, terminal_width(sys.stdout))
    click.echo(painted(heading, sys.stdout, bold=True))
    for line in lines:
        click.echo(line)


def show_json(content: object) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())


def show_heading(text: str) -> None:
    click.echo(painted(text, sys.stdout, bold=True))


def painted(text: str, stream: TextIO, **style: Any) -> str:
    return click.style(text, **style) if is_coloured(stream, os.environ) else text


def is_coloured(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Only on a terminal that supports colours, and unless NO_COLOR is set (https://no-color.org)."""
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def terminal_width(stream: TextIO) -> int | None:
    """The width of the terminal; None for a file or pipe, which get untruncated output."""
    if not stream.isatty():
        return None
    import shutil  # only here: it imports every compression format

    return shutil.get_terminal_size().columns


@contextmanager
def progress(label: str, length: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal; call the result after each step."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
        yield bar.update
