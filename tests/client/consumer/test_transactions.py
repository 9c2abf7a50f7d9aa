"""Filtering of aborted transactions with read_committed."""

from __future__ import annotations

from ottla.client.consumer.transactions import without_aborted
from ottla.records.batch import place
from ottla.records.control import EndMarker, build_end_marker
from ottla.records.reader import RecordReader
from ottla.wire.messages.fetch import AbortedTransaction

from .making import batch, offsets


def of(producer: int, first: int, count: int = 1) -> bytes:
    return batch(first, count, is_transactional=True, producer_id=producer, producer_epoch=0, base_sequence=first)


def end(producer: int, offset: int, *, is_commit: bool) -> bytes:
    marker = build_end_marker(EndMarker(is_commit, 0), producer, 0, 1000)
    place(marker, 0, offset, 0)
    return bytes(marker)


def seen(batches: bytes, *aborted: tuple[int, int]) -> list[int]:
    transactions = [AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in aborted]
    return offsets(list(RecordReader(without_aborted(memoryview(batches), transactions))))


def test_without_aborted_transactions_nothing_is_copied() -> None:
    batches = memoryview(of(1, 0) + end(1, 1, is_commit=True))

    assert without_aborted(batches, ()) is batches


def test_batches_of_an_aborted_transaction_are_filtered() -> None:
    assert seen(of(1, 0, 2) + batch(2) + of(1, 3) + end(1, 4, is_commit=False) + batch(5), (1, 0)) == [2, 5]


def test_the_next_transaction_of_the_same_producer_may_be_committed() -> None:
    batches = of(1, 0) + end(1, 1, is_commit=False) + of(1, 2) + end(1, 3, is_commit=True)

    assert seen(batches, (1, 0)) == [2]


def test_an_earlier_transaction_may_be_committed() -> None:
    batches = of(1, 0) + end(1, 1, is_commit=True) + of(1, 2) + end(1, 3, is_commit=False)

    assert seen(batches, (1, 2)) == [0]


def test_transactions_of_several_producers_overlap() -> None:
    batches = of(1, 0) + of(2, 1) + of(1, 2) + end(2, 3, is_commit=True) + of(2, 4) + end(1, 5, is_commit=False)
    batches += end(2, 6, is_commit=False)

    assert seen(batches, (1, 0), (2, 4)) == [1]


def test_an_aborted_transaction_that_started_before_the_fetch_is_filtered() -> None:
    assert seen(of(1, 7) + end(1, 8, is_commit=False) + of(1, 9), (1, 2)) == [9]


def test_the_marker_of_another_producer_ends_nothing() -> None:
    assert seen(of(1, 0) + end(2, 1, is_commit=False) + of(1, 2), (1, 0)) == []
