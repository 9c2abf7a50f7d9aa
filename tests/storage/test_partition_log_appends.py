"""Appends that a log accepts and refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import (
    ApiError,
    CorruptMessage,
    ErrorCode,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTimestamp,
    InvalidTxnState,
    MessageTooLarge,
    OutOfOrderSequenceNumber,
    RecordListTooLarge,
    TransactionCoordinatorFenced,
    UnsupportedForMessageFormat,
)
from ottla.records.batch import check_batch
from ottla.records.control import EndMarker, read_end_marker
from ottla.records.reader import RecordReader
from ottla.storage.segment_files.txn_index import AbortedTransaction

from .making import NOW, Partition, Producing, batch, changed, offset_for_timestamp, offsets, read_all, values

if TYPE_CHECKING:
    from collections.abc import Callable

    OpenPartition = Callable[..., Partition]

HOUR_MS = 3_600_000
COMMIT = EndMarker(is_commit=True, coordinator_epoch=0)
ABORT = EndMarker(is_commit=False, coordinator_epoch=0)


# Offsets


def test_batches_get_offsets_one_after_the_other(partition: OpenPartition) -> None:
    log = partition().log

    appended = [log.append(batch(*[b"v"] * count)) for count in (1, 3, 2)]

    assert [(one.base_offset, one.last_offset) for one in appended] == [(0, 0), (1, 3), (4, 5)]
    assert log.next_offset == 6
    assert offsets(read_all(log)) == list(range(6))


def test_the_batch_is_stored_unchanged_except_for_its_offset(partition: OpenPartition) -> None:
    log = partition().log
    log.append(batch())
    made = batch(b"a", b"b", at=[NOW, NOW - 5], compression=4)
    sent = bytes(made)

    log.append(made, leader_epoch=7)

    stored = log.read(1, 1000)
    assert bytes(stored[16:]) == sent[16:]
    header = check_batch(stored)
    assert (header.base_offset, header.leader_epoch) == (1, 7)
    assert log.epochs.entries == [(0, 0), (7, 1)]


def test_a_memoryview_is_accepted_like_a_bytearray(partition: OpenPartition) -> None:
    log = partition().log
    frame = bytearray(b"head") + batch(b"v") + b"tail"

    log.append(memoryview(frame)[4:-4])

    assert values(read_all(log)) == [b"v"]


# Refusals. Nothing of a refused batch is in the log, and the next one is accepted.

REFUSED: dict[str, tuple[type[ApiError], ErrorCode, Callable[[], bytearray]]] = {
    "nothing": (CorruptMessage, ErrorCode.CORRUPT_MESSAGE, bytearray),
    "half a header": (CorruptMessage, ErrorCode.CORRUPT_MESSAGE, lambda: bytearray(16) + b"\2" * 10),
    "truncated": (CorruptMessage, ErrorCode.CORRUPT_MESSAGE, lambda: batch()[:-1]),
    "a wrong checksum": (CorruptMessage, ErrorCode.CORRUPT_MESSAGE, lambda: batch()[:-1] + b"\x55"),
    "format v1": (
        UnsupportedForMessageFormat,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        lambda: changed(batch(), ">b", 16, 1),
    ),
    "two batches": (InvalidRecord, ErrorCode.INVALID_RECORD, lambda: batch() + batch()),
    "a wrong count": (InvalidRecord, ErrorCode.INVALID_RECORD, lambda: changed(batch(), ">i", 57, 2)),
    "no records": (InvalidRecord, ErrorCode.INVALID_RECORD, lambda: changed(batch(), ">i", 57, 0)),
    "a control batch": (InvalidRecord, ErrorCode.INVALID_RECORD, lambda: changed(batch(), ">h", 21, 0x20)),
    "a stamped batch": (InvalidTimestamp, ErrorCode.INVALID_TIMESTAMP, lambda: changed(batch(), ">h", 21, 0x08)),
    "no such codec": (ApiError, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, lambda: changed(batch(), ">h", 21, 5)),
    "a producer without a sequence": (
        InvalidRecord,
        ErrorCode.INVALID_RECORD,
        lambda: batch(by=Producing(1, 0, -1)),
    ),
    "a transaction without a producer": (
        InvalidRecord,
        ErrorCode.INVALID_RECORD,
        lambda: batch(by=Producing(-1, -1, -1, is_transactional=True)),
    ),
    "too large": (MessageTooLarge, ErrorCode.MESSAGE_TOO_LARGE, lambda: batch(size=601)),
    "from the future": (InvalidTimestamp, ErrorCode.INVALID_TIMESTAMP, lambda: batch(at=NOW + HOUR_MS + 1)),
    "from the past": (InvalidTimestamp, ErrorCode.INVALID_TIMESTAMP, lambda: batch(at=NOW - 5001)),
    "begun in the past": (InvalidTimestamp, ErrorCode.INVALID_TIMESTAMP, lambda: batch(b"", b"", at=[NOW - 5001, NOW])),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_batch_is_refused_with_kafkas_error(partition: OpenPartition, what: str) -> None:
    log = partition(max_message_bytes=600, message_timestamp_before_max_ms=5000).log
    log.append(batch(b"before"))
    size = log.size
    error, code, make = REFUSED[what]

    with pytest.raises(error) as refused:
        log.append(make(), leader_epoch=3)

    assert refused.value.code == code
    assert (log.next_offset, log.size, log.epochs.latest) == (1, size, 0)
    assert log.append(batch(b"after")).base_offset == 1
    assert values(read_all(log)) == [b"before", b"after"]


def test_the_largest_batch_and_the_outermost_timestamps_are_accepted(partition: OpenPartition) -> None:
    log = partition(max_message_bytes=600, message_timestamp_before_max_ms=5000).log

    log.append(batch(size=600))
    log.append(batch(at=NOW + HOUR_MS))
    log.append(batch(at=NOW - 5000))
    log.append(batch(at=-1))

    assert log.next_offset == 4


def test_a_batch_larger_than_a_segment_is_refused(partition: OpenPartition) -> None:
    log = partition(segment_bytes=1024).log
    log.append(batch(size=1024))

    with pytest.raises(RecordListTooLarge):
        log.append(batch(size=1025))
    assert log.next_offset == 1


# Timestamps


def test_with_log_append_time_every_record_gets_the_time_of_the_append(partition: OpenPartition) -> None:
    opened = partition(message_timestamp_type="LogAppendTime", message_timestamp_after_max_ms=0)
    opened.clock.advance(5)

    appended = opened.log.append(batch(b"a", b"b", at=[1, NOW + 10**9]))

    assert appended.log_append_time == NOW + 5000
    header = check_batch(read_all(opened.log))
    assert (header.base_timestamp, header.max_timestamp, header.is_log_append_time) == (1, NOW + 5000, True)
    assert [record.timestamp for record in RecordReader(read_all(opened.log))] == [NOW + 5000] * 2
    assert offset_for_timestamp(opened.log, NOW + 5000) == (NOW + 5000, 0, 0)


def test_with_create_time_no_time_of_append_is_answered(partition: OpenPartition) -> None:
    assert partition().log.append(batch()).log_append_time == -1


def test_a_duplicate_is_answered_with_the_time_at_which_the_original_was_appended(partition: OpenPartition) -> None:
    opened = partition(message_timestamp_type="LogAppendTime")
    opened.log.append(batch(by=Producing(1, 0, 0)))
    opened.clock.advance(9)

    assert opened.log.append(batch(by=Producing(1, 0, 0))).log_append_time == NOW


# Producers


def test_a_duplicate_is_answered_with_the_offsets_of_the_original_and_not_stored(partition: OpenPartition) -> None:
    log = partition().log
    for sequence in range(5):
        log.append(batch(b"x", b"y", by=Producing(1, 0, 2 * sequence)))
        log.append(batch(b"noise"))
    size = log.size

    for sequence in range(5):
        appended = log.append(batch(b"x", b"y", by=Producing(1, 0, 2 * sequence)), leader_epoch=9)
        assert (appended.base_offset, appended.last_offset) == (3 * sequence, 3 * sequence + 1)
        assert appended.is_duplicate
    assert log.size == size
    assert log.epochs.latest == 0


def test_producer_protocol_violations_are_refused(partition: OpenPartition) -> None:
    log = partition().log
    log.append(batch(by=Producing(1, 3, 0, is_transactional=True)))

    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(batch(by=Producing(1, 3, 2, is_transactional=True)))
    with pytest.raises(InvalidProducerEpoch):
        log.append(batch(by=Producing(1, 2, 1)))
    with pytest.raises(InvalidTxnState):
        log.append(batch(by=Producing(1, 3, 1)))
    with pytest.raises(InvalidProducerEpoch):
        log.append_end_marker(1, 2, COMMIT)
    log.append_end_marker(1, 3, EndMarker(is_commit=True, coordinator_epoch=5))
    with pytest.raises(TransactionCoordinatorFenced):
        log.append_end_marker(1, 3, EndMarker(is_commit=True, coordinator_epoch=4))
    assert log.next_offset == 2


def test_expired_producers_are_removed_on_request(partition: OpenPartition) -> None:
    opened = partition(producer_id_expiration_ms=1000)
    opened.log.append(batch(by=Producing(1, 0, 0)))

    opened.log.producers.expire(NOW + 999, 1000)
    assert opened.log.append(batch(by=Producing(1, 0, 0))).is_duplicate
    opened.log.producers.expire(NOW + 1000, 1000)
    assert not opened.log.append(batch(by=Producing(1, 0, 0))).is_duplicate


# Transactions


def test_markers_are_written_as_kafka_writes_them(partition: OpenPartition) -> None:
    log = partition().log
    log.append(batch(by=Producing(1, 2, 0, is_transactional=True)))

    appended = log.append_end_marker(1, 2, EndMarker(is_commit=False, coordinator_epoch=9), leader_epoch=4)

    assert (appended.base_offset, appended.last_offset) == (1, 1)
    stored = log.read(1, 1000)
    header = check_batch(stored)
    assert len(stored) == 78
    assert (header.attributes, header.leader_epoch, header.base_sequence, header.max_timestamp) == (0x30, 4, -1, NOW)
    assert read_end_marker(stored) == EndMarker(is_commit=False, coordinator_epoch=9)


def test_the_last_stable_offset_is_that_of_the_oldest_open_transaction(partition: OpenPartition) -> None:
    log = partition().log
    log.append(batch())
    assert log.last_stable_offset == 1
    log.append(batch(by=Producing(1, 0, 0, is_transactional=True)))
    log.append(batch(by=Producing(2, 0, 0, is_transactional=True)))
    log.append(batch())
    assert log.last_stable_offset == 1

    log.append_end_marker(1, 0, ABORT)
    assert log.last_stable_offset == 2
    log.append_end_marker(2, 0, COMMIT)
    assert log.last_stable_offset == log.next_offset == 6


def test_aborted_transactions_are_found_across_segments_by_the_offsets_they_span(partition: OpenPartition) -> None:
    log = partition().log
    log.append(batch(by=Producing(1, 0, 0, is_transactional=True)))  # 0
    log.append(batch(by=Producing(2, 0, 0, is_transactional=True)))  # 1
    log.roll()
    log.append_end_marker(2, 0, ABORT)  # 2
    log.roll()
    log.append_end_marker(1, 0, ABORT)  # 3
    log.append(batch(by=Producing(1, 0, 1, is_transactional=True)))  # 4
    log.append_end_marker(1, 0, ABORT)  # 5

    first, second, third = (
        AbortedTransaction(1, 0, 3, 4),
        AbortedTransaction(2, 1, 2, 0),
        AbortedTransaction(1, 4, 5, 6),
    )
    assert log.aborted_transactions(0, 6) == [first, second, third]
    assert log.aborted_transactions(0, 1) == [first]
    assert log.aborted_transactions(2, 3) == [first, second]
    assert log.aborted_transactions(3, 4) == [first]
    assert log.aborted_transactions(4, 6) == [third]
    assert log.aborted_transactions(6, 9) == []


def test_the_last_stable_offset_is_never_below_the_start(partition: OpenPartition) -> None:
    log = partition().log
    log.append(batch(by=Producing(1, 0, 0, is_transactional=True)))
    log.append(batch())
    log.raise_start(1)

    assert log.last_stable_offset == 1
