"""Parsing records of a fetch response."""

from __future__ import annotations

from itertools import count

import pytest

from ottla.broker.interfaces.fetched import records_in
from ottla.core.errors import CorruptMessage
from ottla.records.batch import place
from ottla.records.control import EndMarker, build_end_marker
from ottla.records.encode import BatchBuilder
from ottla.wire.messages.fetch import AbortedTransaction, PartitionData


def batch(base_offset: int, *values: bytes, producer_id: int = -1) -> bytearray:
    builder = BatchBuilder()
    for value in values:
        builder.append(0, None, value)
    is_transactional = producer_id >= 0
    epoch = 0 if is_transactional else -1
    made = builder.build(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=epoch, is_transactional=is_transactional
    )
    place(made, 0, base_offset, 0)
    return made


def end_of_transaction(base_offset: int, producer_id: int, *, is_commit: bool) -> bytearray:
    made = build_end_marker(EndMarker(is_commit, 0), producer_id, 0, 0)
    place(made, 0, base_offset, 0)
    return made


def fetched(*batches: bytearray, aborted: tuple[AbortedTransaction, ...] = ()) -> PartitionData:
    return PartitionData(
        partition_index=0,
        error_code=0,
        high_watermark=100,
        aborted_transactions=aborted,
        records=b"".join(batches),
    )


def values(data: PartitionData, from_offset: int = 0) -> list[bytes | None]:
    return [record.value for piece in records_in(data, from_offset) for record in piece.records]


def test_records_start_at_the_offset_and_give_the_next_position() -> None:
    data = fetched(batch(0, b"a", b"b", b"c"), batch(3, b"d"))
    [piece] = records_in(data, 1)
    assert [record.value for record in piece.records] == [b"b", b"c", b"d"]
    assert piece.next_offset == 4


def test_many_records_are_returned_in_chunks() -> None:
    numbers = count()
    data = fetched(*(batch(100 * n, *(b"%d" % next(numbers) for _ in range(100))) for n in range(7)))
    pieces = list(records_in(data, 0))
    assert [len(piece.records) for piece in pieces] == [200, 200, 200, 100]
    assert [piece.next_offset for piece in pieces] == [200, 400, 600, 700]


def test_an_empty_fetch_has_no_records() -> None:
    assert list(records_in(fetched(), 5)) == []


def test_aborted_transactions_are_left_out_and_others_are_not() -> None:
    data = fetched(
        batch(0, b"plain"),
        batch(1, b"aborted", producer_id=7),
        batch(2, b"committed", producer_id=8),
        batch(3, b"aborted too", producer_id=7),
        end_of_transaction(4, 7, is_commit=False),
        end_of_transaction(5, 8, is_commit=True),
        batch(6, b"a later one", producer_id=7),
        end_of_transaction(7, 7, is_commit=True),
        aborted=(AbortedTransaction(producer_id=7, first_offset=1),),
    )
    assert values(data) == [b"plain", b"committed", b"a later one"]
    assert list(records_in(data, 0))[-1].next_offset == 8


def test_records_before_a_corrupt_batch_are_read_and_the_batch_is_an_error() -> None:
    broken = batch(2, b"broken")
    broken[-1] ^= 1
    assert values(fetched(batch(0, b"a", b"b"), broken)) == [b"a", b"b"]
    with pytest.raises(CorruptMessage):
        list(records_in(fetched(broken), 2))
