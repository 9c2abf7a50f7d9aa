"""Merging partitions in timestamp order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.ordered import OrderedMerge
from ottla.client.errors import SerializationFailed

from .making import A, B, C, batch, fill, queue


def stamped(records: list[object]) -> list[tuple[int, int]]:
    return [(record.timestamp, record.partition) for record in records]  # type: ignore[attr-defined]


def test_the_oldest_record_of_all_partitions_comes_first() -> None:
    one, two = queue(A), queue(B)
    fill(one, batch(0, 3, timestamps=[10, 40, 50]), end=3)
    fill(two, batch(0, 3, timestamps=[20, 30, 60]), end=3)

    taken = OrderedMerge().take([one, two], 9)

    assert stamped(taken) == [(10, 0), (20, 1), (30, 1), (40, 0), (50, 0), (60, 1)]


def test_equal_timestamps_are_ordered_by_offset() -> None:
    one, two = queue(A, offset=5), queue(B)
    fill(one, batch(5, 1, timestamps=[10]), end=6)
    fill(two, batch(0, 2, timestamps=[10, 10]), end=2)

    taken = OrderedMerge().take([one, two], 9)

    assert [(record.partition, record.offset) for record in taken] == [(1, 0), (1, 1), (0, 5)]


def test_a_partition_with_an_unknown_next_record_is_waited_for() -> None:
    one, two = queue(A), queue(B)
    fill(one, batch(0, 2, timestamps=[10, 30]), end=2)
    merge = OrderedMerge()
    assert merge.take([one, two], 9) == []

    fill(two, batch(0, 1, timestamps=[20]), end=5)
    assert stamped(merge.take([one, two], 9)) == [(10, 0), (20, 1)]
    assert merge.position(A) == 1
    assert merge.take([one, two], 9) == []

    fill(two, batch(1, 4, timestamps=[40, 40, 40, 40]), end=5)
    assert len(merge.take([one, two], 9)) == 5


def test_a_partition_at_its_end_is_not_waited_for() -> None:
    one, two = queue(A), queue(B)
    fill(one, batch(0, 2, timestamps=[10, 30]), end=2)
    fill(two, b"", end=0)

    assert stamped(OrderedMerge().take([one, two], 9)) == [(10, 0), (30, 0)]


@pytest.mark.parametrize("state", ["is_paused", "is_held_back", "is_failed"])
def test_a_paused_partition_does_not_block_the_others(state: str) -> None:
    one, two = queue(A), queue(B)
    fill(one, batch(0), end=1)
    setattr(two, state, True)

    assert len(OrderedMerge().take([one, two], 9)) == 1


def test_at_most_the_requested_number_is_merged() -> None:
    one, two = queue(A), queue(B)
    fill(one, batch(0, 3, timestamps=[1, 3, 5]), end=3)
    fill(two, batch(0, 3, timestamps=[2, 4, 6]), end=3)
    merge = OrderedMerge()

    assert [stamped(merge.take([one, two], 4)) for _ in range(2)] == [
        [(1, 0), (2, 1), (3, 0), (4, 1)],
        [(5, 0), (6, 1)],
    ]
    assert merge.position(A) is None


def test_buffered_records_are_dropped_with_their_partition() -> None:
    one, two = queue(A), queue(B)
    fill(one, batch(0, 2, timestamps=[10, 30]), end=2)
    merge = OrderedMerge()
    merge.take([one, two], 9)
    assert merge.position(A) == 0

    merge.drop(A)

    assert merge.position(A) is None


def test_an_error_is_raised_after_the_records_before_it() -> None:
    def refuse(data: bytes) -> bytes:
        if data == b"1":
            raise ValueError("not this one")
        return data

    one, two = queue(A, value_deserializer=refuse), queue(B)
    fill(one, batch(0, 2, timestamps=[10, 30]), end=2)
    fill(two, batch(0, 1, timestamps=[20]), end=1)
    merge = OrderedMerge()

    assert stamped(merge.take([one, two], 9)) == [(10, 0)]
    with pytest.raises(SerializationFailed):
        merge.take([one, two], 9)
    assert stamped(merge.take([one, two], 9)) == [(20, 1)]


@given(st.lists(st.lists(st.integers(0, 50), max_size=20), min_size=1, max_size=3), st.integers(1, 7))
def test_sorted_partitions_make_one_sorted_sequence(partitions: list[list[int]], step: int) -> None:
    queues = [queue(at) for at, _ in zip((A, B, C), partitions, strict=False)]
    for each, times in zip(queues, partitions, strict=True):
        fill(each, batch(0, len(times), timestamps=sorted(times)) if times else b"", end=len(times))
    merge = OrderedMerge()
    taken: list[object] = []
    while records := merge.take(queues, step):
        taken += records

    assert [time for time, _ in stamped(taken)] == sorted(time for times in partitions for time in times)
