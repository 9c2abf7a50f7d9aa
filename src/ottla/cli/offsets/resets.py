"""Rules for offset resets and record deletion, given the bounds of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ottla.cli.messages.starting_points import AtOffset, AtTime, Beginning, End, LastFew, StartingPoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.core.ids import TopicPartition

MOVE_COLUMNS: Final = ("topic", "partition", "committed", "new", "change", "lag", "note")


class Bounds(Struct, frozen=True):
    """The offsets that a partition holds: from the first up to, and without, the end."""

    first: int
    end: int

    def nearest(self, offset: int) -> int:
        return min(max(offset, self.first), self.end)


class Shift(Struct, frozen=True):
    """Shift by this number of messages; backwards if negative."""

    by: int


class Move(Struct, frozen=True):
    """A change of a group's offset in a partition; `None` without a committed offset."""

    where: TopicPartition
    committed: int | None
    wanted: int
    bounds: Bounds

    @property
    def new(self) -> int:
        return self.bounds.nearest(self.wanted)

    def row(self) -> dict[str, Any]:
        return {
            "topic": self.where.topic,
            "partition": self.where.partition,
            "committed": self.committed,
            "new": self.new,
            "change": None if self.committed is None else self.new - self.committed,
            "lag": self.bounds.end - self.new,
            "note": self._note(),
        }

    def _note(self) -> str | None:
        if self.wanted < self.bounds.first:
            return f"begins at {self.bounds.first}"
        if self.wanted > self.bounds.end:
            return f"ends at {self.bounds.end}"
        return None


def wanted_offset(point: StartingPoint, bounds: Bounds, at_time: int | None) -> int:
    """The offset of a point in a partition; `at_time` is the first at or after its time, None if there is none."""
    match point:
        case Beginning():
            return bounds.first
        case End():
            return bounds.end
        case AtOffset(offset):
            return offset
        case LastFew(count):
            return max(bounds.first, bounds.end - count)
        case AtTime():
            return bounds.end if at_time is None else at_time


def moves_to(
    point: StartingPoint | Shift,
    committed: Mapping[TopicPartition, int],
    bounds: Mapping[TopicPartition, Bounds],
    at_time: Mapping[TopicPartition, int | None],
) -> list[Move]:
    """The change of each partition. A partition without a committed offset cannot be shifted and is left out."""
    moves = []
    for where, each in bounds.items():
        now = committed.get(where)
        if not isinstance(point, Shift):
            moves.append(Move(where, now, wanted_offset(point, each, at_time.get(where)), each))
        elif now is not None:
            moves.append(Move(where, now, now + point.by, each))
    return moves
