"""Records taken from queues, being processed, and returned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.consumer.handout import Handout
from ottla.records.reader import Record, RecordReader

from .making import A, B, batch, offsets

if TYPE_CHECKING:
    from ottla.core.ids import TopicPartition


def records(at: TopicPartition, first: int, count: int) -> list[Record]:
    return list(RecordReader(batch(first, count), topic=at.topic, partition=at.partition))


def holding(*taken: list[Record]) -> Handout:
    handout = Handout()
    handout.keep([record for each in taken for record in each])
    return handout


def test_records_polled_together_are_in_processing_until_the_next_call() -> None:
    handout = holding(records(A, 0, 2), records(B, 5, 2))
    assert offsets(handout.all_left(10)) == [0, 1, 5, 6]

    assert handout.has_any
    assert handout.positions_in_hand() == {A: 0, B: 5}
    assert handout.positions_left() == {}

    handout.come_back()

    assert not handout.has_any
    assert handout.positions_in_hand() == {}


def test_at_most_the_requested_number_is_taken() -> None:
    handout = holding(records(A, 0, 3))

    assert offsets(handout.all_left(2)) == [0, 1]
    assert handout.positions_left() == {A: 2}
    assert offsets(handout.all_left(2)) == [2]
    assert handout.positions_in_hand() == {A: 2}


def test_only_the_last_record_is_in_processing_while_iterating() -> None:
    handout = holding(records(A, 0, 2), records(B, 5, 1))
    iterator = handout.iterate()
    assert handout.positions_in_hand() == {A: 0, B: 5}

    next(iterator)
    next(iterator)

    assert handout.positions_in_hand() == {A: 1, B: 5}
    assert handout.positions_left() == {B: 5}


def test_a_poll_while_iterating_returns_the_rest() -> None:
    handout = holding(records(A, 0, 3))
    iterator = handout.iterate()
    next(iterator)

    assert offsets(handout.all_left(10)) == [1, 2]
    assert list(iterator) == []


def test_dropping_a_partition_continues_with_the_others() -> None:
    handout = holding(records(A, 0, 2), records(B, 5, 2))
    iterator = handout.iterate()
    next(iterator)

    handout.drop([A])

    assert list(iterator) == []
    assert handout.positions_in_hand() == {A: 0, B: 5}
    assert offsets(list(handout.iterate())) == [5, 6]


def test_columns_are_in_processing_too() -> None:
    handout = Handout()
    handout.columns({A: 7})

    assert handout.has_any
    assert handout.positions_in_hand() == {A: 7}


def test_an_empty_handout_has_nothing_left() -> None:
    handout: Any = Handout()

    assert not handout.has_left
    assert handout.all_left(5) == []
