"""Selecting batches by offset and size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import CorruptMessage, UnsupportedForMessageFormat

from .making import MAX_INT64, batch, is_released, record

if TYPE_CHECKING:
    from fuzz.forms import Form

TWO = record(0) + record(1)

# Two offsets each: 10-11, 12-13 and, after a gap as compaction leaves, 20-21.
ONE = batch(TWO, 2, base_offset=10)
NEXT = batch(TWO, 2, base_offset=12)
LATER = batch(TWO, 2, base_offset=20)
SIZE = len(ONE)
ALL = ONE + NEXT + LATER
END = MAX_INT64
ROOM = 1 << 20


@pytest.mark.parametrize(
    ("from_offset", "start", "end", "next_offset"),
    [
        (0, 0, 3, 22),
        (10, 0, 3, 22),
        (11, 0, 3, 22),
        (12, 1, 3, 22),
        (13, 1, 3, 22),
        (14, 2, 3, 22),
        (19, 2, 3, 22),
        (21, 2, 3, 22),
    ],
)
def test_the_first_batch_is_the_first_that_reaches_the_offset(
    form: Form, from_offset: int, start: int, end: int, next_offset: int
) -> None:
    found = form.batches.find_batches(ALL, from_offset, END, ROOM)

    assert found == (start * SIZE, end * SIZE, next_offset)


def test_an_offset_after_all_batches_is_at_the_end(form: Form) -> None:
    assert form.batches.find_batches(ALL, 22, END, ROOM) == (3 * SIZE, -1, 22)


def test_a_last_batch_that_is_not_whole_is_skipped_to_its_end(form: Form) -> None:
    cut = ALL[:-5]

    assert form.batches.find_batches(cut, 22, END, ROOM) == (3 * SIZE, -1, 22)


def test_nothing_is_found_in_an_empty_buffer(form: Form) -> None:
    assert form.batches.find_batches(b"", 0, END, ROOM) == (0, -1, 0)
    assert form.batches.find_batches(ONE[:60], 0, END, ROOM) == (0, -1, 0)


@pytest.mark.parametrize(
    ("until_offset", "batches", "next_offset"),
    [(10, 0, 0), (11, 1, 12), (12, 1, 12), (13, 2, 14), (20, 2, 14), (21, 3, 22)],
)
def test_a_batch_counts_if_it_begins_below_the_limit(
    form: Form, until_offset: int, batches: int, next_offset: int
) -> None:
    found = form.batches.find_batches(ALL, 0, until_offset, ROOM)

    assert found == (0, batches * SIZE, next_offset)


@pytest.mark.parametrize(
    ("max_bytes", "batches"), [(0, 1), (1, 1), (-5, 1), (2 * SIZE - 1, 1), (2 * SIZE, 2), (3 * SIZE, 3)]
)
def test_the_first_batch_is_returned_whatever_its_size_and_more_while_they_fit(
    form: Form, max_bytes: int, batches: int
) -> None:
    _, end, _ = form.batches.find_batches(ALL, 0, END, max_bytes)

    assert end == batches * SIZE


def test_only_whole_batches_count(form: Form) -> None:
    for cut in range(2 * SIZE, 3 * SIZE):
        assert form.batches.find_batches(ALL[:cut], 0, END, ROOM) == (0, 2 * SIZE, 14)


def test_a_first_batch_that_is_not_whole_has_no_end(form: Form) -> None:
    cut = ALL[: SIZE + 61]

    assert form.batches.find_batches(cut, 12, END, ROOM) == (SIZE, SIZE, 12)


def test_batches_before_a_corrupt_one_are_found(form: Form) -> None:
    damaged = bytearray(ALL)
    damaged[SIZE + 16] = 99

    assert form.batches.find_batches(damaged, 0, END, ROOM) == (0, SIZE, 12)
    with pytest.raises(CorruptMessage, match="unknown message format 99"):
        form.batches.find_batches(damaged, 12, END, ROOM)


def test_corruption_at_the_start_is_an_error(form: Form) -> None:
    damaged = bytearray(ALL)
    damaged[16] = 1

    with pytest.raises(UnsupportedForMessageFormat):
        form.batches.find_batches(damaged, 0, END, ROOM)
    assert is_released(damaged)


@pytest.mark.parametrize("numbers", [(1 << 63, 1, 1), (0, 1 << 63, 1), (0, 1, 1 << 63), (-(1 << 63) - 1, 1, 1)])
def test_numbers_of_more_than_64_bits_are_overflow_errors(form: Form, numbers: tuple[int, int, int]) -> None:
    data = bytearray(ALL)

    with pytest.raises(OverflowError):
        form.batches.find_batches(data, *numbers)
    assert is_released(data)
