"""`ottla queue`: queues in a folder, without a broker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.output import show_json, show_rows, show_table, with_output_option
from ottla.cli.queues.serve import serve
from ottla.cli.queues.topics import export_queue, import_topic
from ottla.cli.security.key_files import with_key_file
from ottla.cli.summaries import CommandGroup
from ottla.core.errors import OttlaError
from ottla.queue import NotFound, Queue, list_queues
from ottla.queue import repair as repair_queue
from ottla.queue import verify as verify_queue
from ottla.queue.part_reader import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.queue import Consumer, KeyRing, Message
    from ottla.queue.config import Fsync

FOLDER = click.argument("folder", type=click.Path(path_type=Path))
NAME = click.argument("name")
FSYNC = click.option(
    "--fsync", type=click.Choice(["push", "batch", "never"]), default="batch", show_default=True, help="When to fsync."
)
_PUSHED_TOGETHER = 1000
_TAIL_WAIT_MS = 60_000


@click.group(cls=CommandGroup)
def queue() -> None:
    """Use file queues without a broker."""


queue.add_command(serve)
queue.add_command(import_topic)
queue.add_command(export_queue)


@queue.command(
    "list",
    epilog="""\b
Examples:
  ottla queue list queues
  ottla queue list queues -o json
""",
)
@FOLDER
@with_key_file
@with_output_option
def list_all(folder: Path, keys: KeyRing | None, output: str) -> None:
    """List queues in FOLDER."""
    rows = []
    for name in list_queues(folder):
        with Queue(folder, name, "read", keys=keys) as opened:
            rows.append({"queue": name, "messages": len(opened), "parts": len(opened.folder.parts())})
    show_rows(rows, ("queue", "messages", "parts"), output)


@queue.command(
    epilog="""\b
Examples:
  ottla queue info queues jobs
  ottla queue info queues jobs -o json
""",
)
@FOLDER
@NAME
@with_key_file
@with_output_option
def info(folder: Path, name: str, keys: KeyRing | None, output: str) -> None:
    """Describe the parts and consumers of a queue."""
    with Queue(folder, name, "read", keys=keys) as opened:
        parts = [_part_row(opened, part) for part in opened.folder.parts()]
        consumers = [_consumer_row(opened, consumer) for consumer in opened.consumers()]
    if output == "json":
        show_json({"queue": name, "parts": parts, "consumers": consumers})
        return
    show_table(parts, ("part", "messages", "bytes", "is_newest"))
    if consumers:
        click.echo()
        show_table(consumers, ("consumer", "part", "byte", "lag"))


def _part_row(opened: Queue, part: int) -> dict[str, object]:
    data = opened.folder.data(part)
    return {
        "part": part,
        "messages": count_of(opened.folder, part),
        "bytes": data.stat().st_size if data.exists() else 0,
        "is_newest": part == opened.part,
    }


def _consumer_row(opened: Queue, name: str) -> dict[str, object]:
    with opened.consumer(name, mode="read") as reading:
        at = reading.position
        return {"consumer": name, "part": at.part, "byte": at.offset, "lag": reading.lag}


@queue.command(
    epilog="""\b
Examples:
  ottla queue push queues jobs first second
  ottla queue push queues jobs --fsync push < jobs.txt
""",
)
@FOLDER
@NAME
@click.argument("messages", nargs=-1)
@FSYNC
@with_key_file
def push(folder: Path, name: str, messages: tuple[str, ...], fsync: Fsync, keys: KeyRing | None) -> None:
    """Push MESSAGES, or lines of standard input."""
    with Queue(folder, name, fsync=fsync, keys=keys) as opened:
        count = opened.push_many(messages or _lines())
    click.echo(f"{count} message{'' if count == 1 else 's'} pushed to {name}", err=True)


@queue.command(
    epilog="""\b
Examples:
  ottla queue pop queues jobs
  ottla queue pop queues jobs -c worker --all
""",
)
@FOLDER
@NAME
@click.option("-c", "--consumer", "consumer_name", default="cli", show_default=True, help="Consumer name.")
@click.option("--max", "limit", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--all", "takes_all", is_flag=True, help="All there are.")
@click.option(
    "--from",
    "start",
    type=click.Choice(["earliest", "latest-part"]),
    default="earliest",
    show_default=True,
    help="Where a new consumer starts: at the first message, or with the newest part.",
)
@click.option("--no-commit", is_flag=True, help="Do not commit.")
@with_key_file
def pop(  # noqa: PLR0913
    folder: Path,
    name: str,
    consumer_name: str,
    limit: int,
    keys: KeyRing | None,
    *,
    start: str,
    takes_all: bool,
    no_commit: bool,
) -> None:
    """Pop the next messages, one per line, and commit."""
    with (
        Queue(folder, name, "read", keys=keys) as opened,
        opened.consumer(consumer_name, "earliest" if start == "earliest" else "latest_part") as consumer,
    ):
        while messages := consumer.pop_many(_PUSHED_TOGETHER if takes_all else limit):
            _show(messages)
            if not no_commit:
                consumer.commit()
            if not takes_all:
                break


@queue.command(
    epilog="""\b
Examples:
  ottla queue tail queues jobs
  ottla queue tail queues jobs --from earliest --max 10
""",
)
@FOLDER
@NAME
@click.option(
    "--from",
    "start",
    type=click.Choice(["earliest", "latest"]),
    default="latest",
    show_default=True,
    help="Where to start.",
)
@click.option("--max", "limit", type=click.IntRange(min=1), help="Stop after this many messages.")
@with_key_file
def tail(folder: Path, name: str, limit: int | None, keys: KeyRing | None, *, start: str) -> None:
    """Print new messages as they arrive, without committing."""
    with Queue(folder, name, "read", keys=keys) as opened, opened.reader() as reading:
        reading.seek("earliest" if start == "earliest" else "end")
        shown = 0
        for messages in _batches(reading, limit):
            shown += len(messages)
            _show(messages)
            if shown == limit:
                return


def _batches(reading: Consumer, limit: int | None) -> Iterator[list[Message]]:
    left = limit
    while True:
        count = _PUSHED_TOGETHER if left is None else min(left, _PUSHED_TOGETHER)
        messages = reading.pop_many(count, timeout_ms=_TAIL_WAIT_MS)
        if left is not None:
            left -= len(messages)
        yield messages


@queue.command(
    epilog="""\b
Examples:
  ottla queue verify queues
  ottla queue verify queues jobs
""",
)
@FOLDER
@click.argument("name", required=False)
@with_key_file
def verify(folder: Path, name: str | None, keys: KeyRing | None) -> None:
    """Verify every message and info file; exits with 1 on damage."""
    names = _names(folder, name)
    problems = [problem for one in names for problem in verify_queue(folder, one, keys)]
    for problem in problems:
        click.echo(str(problem))
    if problems:
        lost = sum(problem.messages for problem in problems)
        raise OttlaError(
            f"{len(problems)} problems, {lost} messages lost; run `ottla queue repair` to rebuild info files"
        )
    click.echo(f"{', '.join(names)}: intact")


@queue.command(
    epilog="""\b
Examples:
  ottla queue repair queues jobs
""",
)
@FOLDER
@click.argument("name", required=False)
@with_key_file
def repair(folder: Path, name: str | None, keys: KeyRing | None) -> None:
    """Rebuild damaged info files from the parts; stop all writers first."""
    for one in _names(folder, name):
        done = repair_queue(folder, one, keys)
        for line in done:
            click.echo(f"{one}: {line}")
        if not done:
            click.echo(f"{one}: nothing to repair")


def _names(folder: Path, name: str | None) -> list[str]:
    names = list_queues(folder) if name is None else [name]
    if not names:
        raise NotFound(f"there are no queues in {folder}")
    return names


def _lines() -> Iterator[str | bytes]:
    for line in sys.stdin.buffer:
        body = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield body.decode()
        except UnicodeDecodeError:
            yield body


def _show(messages: list[Message]) -> None:
    out = sys.stdout.buffer
    for message in messages:
        out.write(message.body + b"\n")
    out.flush()
