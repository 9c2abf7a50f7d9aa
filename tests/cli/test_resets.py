from __future__ import annotations

import pytest

from ottla.cli.messages.starting_points import AtOffset, AtTime, Beginning, End, LastFew, StartingPoint
from ottla.cli.offsets.resets import Bounds, Move, Shift, moves_to, wanted_offset
from ottla.core.ids import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
HELD = Bounds(10, 100)


@pytest.mark.parametrize(
    ("point", "at_time", "offset"),
    [
        (Beginning(), None, 10),
        (End(), None, 100),
        (AtOffset(42), None, 42),
        (LastFew(5), None, 95),
        (LastFew(500), None, 10),
        (AtTime(1), 77, 77),
        (AtTime(1), None, 100),
    ],
)
def test_a_position_resolves_to_an_offset_in_each_partition(
    point: StartingPoint, at_time: int | None, offset: int
) -> None:
    assert wanted_offset(point, HELD, at_time) == offset


@pytest.mark.parametrize(
    ("wanted", "new", "note"),
    [(10, 10, None), (100, 100, None), (9, 10, "begins at 10"), (101, 100, "ends at 100")],
)
def test_an_offset_out_of_range_becomes_the_nearest_one_with_a_note(wanted: int, new: int, note: str | None) -> None:
    assert Move(A, 50, wanted, HELD).row() == {
        "topic": "a",
        "partition": 0,
        "committed": 50,
        "new": new,
        "change": new - 50,
        "lag": 100 - new,
        "note": note,
    }


def test_a_shift_is_relative_to_committed_offsets_and_skips_partitions_without_one() -> None:
    moves = moves_to(Shift(-7), {A: 50}, {A: HELD, B: HELD}, {})
    assert [(move.where, move.new) for move in moves] == [(A, 43)]


def test_a_position_applies_to_every_partition_even_without_a_committed_offset() -> None:
    moves = moves_to(AtTime(1), {A: 50}, {A: HELD, B: HELD}, {A: 20, B: None})
    assert [(move.where, move.committed, move.new) for move in moves] == [(A, 50, 20), (B, None, 100)]
    assert moves[1].row()["change"] is None
