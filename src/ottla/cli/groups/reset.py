"""`ottla group reset-offsets`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from ottla.cli.arguments import existing, topics_and_partitions
from ottla.cli.connecting import with_broker_options
from ottla.cli.groups.offsets import found_group, offsets_of, set_offsets
from ottla.cli.messages.starting_points import StartingPoint, starting_point
from ottla.cli.offsets.bounds import bounds_of, offsets_at_time, partitions_of
from ottla.cli.offsets.files import from_lines
from ottla.cli.offsets.resets import MOVE_COLUMNS, Move, Shift, moves_to
from ottla.cli.output import show_rows, with_output_option
from ottla.cli.tables import counted
from ottla.core.errors import ConfigError, OttlaError
from ottla.core.ids import TopicPartition
from ottla.event_loop import run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.cli.connecting import Reach
    from ottla.client.admin.admin import Admin
    from ottla.client.admin.groups import GroupDescription

Goal: TypeAlias = StartingPoint | Shift | dict[TopicPartition, int]
"""A place in every partition, a way to go in each, or an offset for each."""


@click.command(
    "reset-offsets",
    epilog="""\b
Examples:
  ottla group reset-offsets billing --to earliest                 (a preview; nothing is changed)
  ottla group reset-offsets billing --to earliest --execute
  ottla group reset-offsets billing --to 2026-11-15T09:30 -t orders
  ottla group reset-offsets billing --to 2h -t orders:0,1         (two hours ago)
  ottla group reset-offsets billing --shift-by -100 --execute     (the last hundred again)
  ottla group reset-offsets billing --from-file offsets.csv --execute
""",
)
@click.argument("name", metavar="GROUP")
@click.option(
    "--to",
    metavar="WHERE",
    help="earliest, latest, an offset, -N for N before the end, 15m for fifteen minutes ago, or a time.",
)
@click.option("--shift-by", metavar="N", type=int, help="Shift by this many messages; negative goes back.")
@click.option(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Offsets from a file of lines topic,partition,offset.",
)
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="TOPIC[:0,1…]",
    multiple=True,
    help="Only this topic; may be repeated [default: all topics with commits].",
)
@click.option("--dry-run/--execute", default=True, help="Preview or apply.  [default: dry-run]")
@with_output_option
@with_broker_options
def reset_offsets(name: str, *, reach: Reach, dry_run: bool, output: str, **options: Any) -> None:
    """Reset an inactive group's offsets.

    An offset outside a partition's range becomes the nearest valid one.
    """
    goal = _goal(options["to"], options["shift_by"], options["from_file"])
    wanted = topics_and_partitions("--topic", options["topics"])
    if wanted and isinstance(goal, dict):
        raise ConfigError("--topic cannot be used with --from-file")
    moves = run(_reset(reach, name, goal, wanted, is_preview=dry_run))
    show_rows([move.row() for move in moves], MOVE_COLUMNS, output)
    if dry_run:
        click.echo("nothing was changed; pass --execute to apply", err=True)


def _goal(to: str | None, shift_by: int | None, from_file: Path | None) -> Goal:
    if sum(given is not None for given in (to, shift_by, from_file)) != 1:
        raise ConfigError("give one of --to, --shift-by and --from-file")
    if to is not None:
        return starting_point(to, option="--to")
    if from_file is not None:
        try:
            return from_lines(from_file.read_text().splitlines(), str(from_file))
        except (OSError, UnicodeDecodeError):
            raise ConfigError(f"--from-file: {from_file} cannot be read as text") from None
    return Shift(shift_by or 0)


async def _reset(
    reach: Reach, name: str, goal: Goal, wanted: Mapping[str, list[int] | None], *, is_preview: bool
) -> list[Move]:
    async with reach.client() as client:
        admin = client.admin
        about = await found_group(admin, name)
        moves = await _moves(admin, name, goal, wanted, await offsets_of(admin, name, about))
        _refuse_if_read(name, about, is_preview=is_preview)
        if not is_preview:
            await set_offsets(admin, name, about, {move.where: move.new for move in moves})
        return moves


async def _moves(
    admin: Admin,
    name: str,
    goal: Goal,
    wanted: Mapping[str, list[int] | None],
    committed: Mapping[TopicPartition, int],
) -> list[Move]:
    if isinstance(goal, dict):
        by_topic: dict[str, list[int] | None] = {}
        for where in sorted(goal):
            by_topic[where.topic] = [*(by_topic.get(where.topic) or []), where.partition]
        bounds = await bounds_of(admin, existing(by_topic, await partitions_of(admin, by_topic)))
        return [Move(where, committed.get(where), goal[where], each) for where, each in bounds.items()]
    partitions = existing(wanted, await partitions_of(admin, wanted)) if wanted else sorted(committed)
    bounds = await bounds_of(admin, partitions)
    moves = moves_to(goal, committed, bounds, await offsets_at_time(admin, goal, partitions))
    if not moves:
        advice = "" if wanted else "; name topics with --topic"
        raise OttlaError(f"group {name!r} has committed no offsets there{advice}")
    return moves


def _refuse_if_read(name: str, about: GroupDescription | None, *, is_preview: bool) -> None:
    """Refuse a group with members: they would continue at their positions and overwrite the reset."""
    if about is not None and about.members:
        members = counted(len(about.members), "member")
        problem = f"group {name!r} is {about.state} with {members}; stop its members first"
        if not is_preview:
            raise OttlaError(problem)
        click.echo(f"ottla: {problem}", err=True)
