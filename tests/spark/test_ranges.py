"""The size of micro-batches, and their split into tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.ids import TopicPartition
from ottla.spark.reader.ranges import LARGE_RANGE, SMALL_TASK, OffsetRange, grouped, is_enough, limited, split

A0, A1, A2 = (TopicPartition("a", partition) for partition in range(3))


def sizes(ranges: list[OffsetRange]) -> list[int]:
    return [each.size for each in ranges]


def test_a_range_is_one_task_unless_it_is_large() -> None:
    small, large = OffsetRange(A0, 10, 20), OffsetRange(A1, 0, 2 * LARGE_RANGE + 1)

    assert split([small], None, None) == [small]
    assert len(split([large], None, None)) == 3
    assert split([OffsetRange(A0, 5, 5)], None, None) == []


def test_large_ranges_get_most_of_the_tasks_that_were_asked_for() -> None:
    # The example of the connector's own tests: a small range stays whole, the large one takes the rest.
    assert sizes(split([OffsetRange(A0, 0, 1), OffsetRange(A1, 0, 1000)], 4, None)) == [1, 333, 333, 334]
    assert sizes(split([OffsetRange(A0, 0, 10)], 3, None)) == [3, 3, 4]


def test_no_more_tasks_are_made_than_there_are_offsets() -> None:
    assert sizes(split([OffsetRange(A0, 0, 2)], 5, None)) == [1, 1]


def test_a_limit_of_records_splits_every_range_that_has_more() -> None:
    assert sizes(split([OffsetRange(A0, 0, 10), OffsetRange(A1, 0, 3)], None, 4)) == [3, 3, 4, 3]


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), max_size=5),
    st.none() | st.integers(1, 50),
    st.none() | st.integers(1, 300),
)
def test_tasks_cover_every_offset_once(
    given_ranges: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    ranges = [OffsetRange(TopicPartition("a", i), start, start + size) for i, (start, size) in enumerate(given_ranges)]

    pieces = split(ranges, min_partitions, max_records)

    covered = [(piece.at, offset) for piece in pieces for offset in range(piece.start, piece.end)]
    assert covered == [(whole.at, offset) for whole in ranges for offset in range(whole.start, whole.end)]
    assert max_records is None or all(piece.size <= max_records for piece in pieces)


def test_small_ranges_share_a_task_unless_a_number_of_tasks_was_asked_for() -> None:
    a, b, c = OffsetRange(A0, 0, SMALL_TASK - 1), OffsetRange(A1, 0, 1), OffsetRange(A2, 0, 1)
    large = OffsetRange(A2, 0, SMALL_TASK + 1)

    assert grouped([a, b, c], None, None) == [(a, b), (c,)]
    assert grouped([b, large, c], None, None) == [(b,), (large,), (c,)]
    assert grouped([a, b, c], 1, None) == [(a,), (b,), (c,)]
    assert grouped([b, c, a], None, 2) == [(b, c), (a,)]
    assert grouped([], None, None) == []


def test_a_limited_micro_batch_takes_of_each_partition_in_proportion() -> None:
    start, end = {A0: 0, A1: 100, A2: 5}, {A0: 300, A1: 200, A2: 5}

    assert limited(start, end, 100) == {A0: 75, A1: 125, A2: 5}
    assert limited(start, end, 1000) == end
    # A partition with little is not left out forever.
    assert limited({A0: 0, A1: 0}, {A0: 1000, A1: 1}, 10) == {A0: 9, A1: 1}


@pytest.mark.parametrize(("least", "expected"), [(30, True), (31, False)])
def test_min_offsets_per_trigger_counts_all_partitions(least: int, expected: bool) -> None:  # noqa: FBT001
    assert is_enough({A0: 0, A1: 10}, {A0: 10, A1: 30}, least) is expected
