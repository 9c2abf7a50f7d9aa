"""The queue of one partition: position, buffers, and handling of fetch responses."""

from __future__ import annotations

import pytest

from ottla.client.consumer.partition_queue import PartitionQueue, Reading, Start
from ottla.core.errors import CorruptMessage, UnsupportedForMessageFormat

from .making import A, answer, batch, fill, offsets, queue


def test_records_are_returned_in_order_and_advance_the_position() -> None:
    one = queue()
    assert fill(one, batch(0, 3) + batch(3, 2), end=5)

    assert offsets(one.take(2)) == [0, 1]
    assert one.position == 2
    assert offsets(one.take(10)) == [2, 3, 4]
    assert one.position == 5
    assert one.take(10) == []


def test_records_have_topic_partition_and_offset() -> None:
    one = queue()
    fill(one, batch(0))

    [record] = one.take(1)

    assert (record.topic, record.partition, record.value) == ("t", 0, b"0")


def test_the_next_fetch_starts_after_the_last_whole_batch() -> None:
    one = queue()
    fill(one, batch(0, 3) + batch(3, 2)[:-1])

    assert one.fetch_offset == 3
    assert offsets(one.take(10)) == [0, 1, 2]


def test_a_fetch_from_the_middle_of_a_batch_returns_only_the_rest() -> None:
    one = queue(offset=4)
    fill(one, batch(0, 6))

    assert offsets(one.take(10)) == [4, 5]
    assert one.fetch_offset == 6


def test_a_truncated_batch_is_fetched_with_its_full_size() -> None:
    one = queue(max_bytes=100)
    whole = batch(0, 50)

    assert not fill(one, whole[:100])
    assert one.max_bytes == len(whole)
    assert fill(one, whole)
    assert one.max_bytes == 100


def test_a_batch_truncated_in_its_header_doubles_the_fetch_size() -> None:
    one = queue(max_bytes=30)

    fill(one, batch(0)[:30])

    assert one.max_bytes == 60


def test_there_is_room_until_all_buffers_are_full() -> None:
    one = queue(max_buffers=2)
    fill(one, batch(0))
    assert one.has_room
    fill(one, batch(1))
    assert not one.has_room

    one.take(1)

    assert one.has_room


def test_trailing_control_batches_are_consumed_with_the_last_record() -> None:
    one = queue(max_buffers=2)
    fill(one, batch(0) + batch(1, is_control=True, is_transactional=True, producer_id=1, producer_epoch=0))
    fill(one, batch(2))

    assert offsets(one.take(5)) == [0]
    assert offsets(one.take(5)) == [2]
    assert one.position == 3


def test_a_response_from_before_a_seek_is_dropped() -> None:
    one = queue()
    era = one.ask()
    one.seek(7)

    assert not one.fill(era, answer(batch(0, 3), 9))
    assert (one.position, one.fetch_offset, one.take(1)) == (7, 7, [])


def test_an_error_from_before_a_seek_is_dropped() -> None:
    one = queue()
    era = one.ask()
    one.seek(7)
    one.ask()

    one.reset(era)
    one.retry_later(era, 99.0)
    one.unanswered(era)

    assert one.fetch_offset == 7
    assert one.not_before == 0.0
    assert one.is_pending


def test_a_seek_drops_fetched_records() -> None:
    one = queue()
    fill(one, batch(0, 3))

    one.seek(1)

    assert not one.has_records
    assert one.position == 1


def test_a_looked_up_offset_is_ignored_after_a_seek() -> None:
    one = queue(offset=None)
    assert one.needs_start
    era = one.era
    one.seek(3)
    one.begin_at(era, 100)
    assert one.position == 3

    one.seek_to(Start.EARLIEST)
    one.begin_at(one.era, 8)
    assert (one.position, one.fetch_offset) == (8, 8)


def test_buffered_records_are_returned_before_a_reset() -> None:
    one = queue()
    fill(one, batch(0, 2))
    one.reset(one.ask())
    assert one.start is Start.RESET
    one.begin_at(one.era, 50)

    assert offsets(one.take(5)) == [0, 1]
    fill(one, batch(50))
    assert offsets(one.take(5)) == [50]


@pytest.mark.parametrize("state", ["is_paused", "is_held_back", "is_failed"])
def test_a_paused_partition_is_neither_fetched_nor_returned(state: str) -> None:
    one = queue()
    fill(one, batch(0))

    setattr(one, state, True)
    assert not one.has_records
    assert not one.is_wanted

    setattr(one, state, False)
    assert offsets(one.take(1)) == [0]


def test_lag_is_the_number_of_records_to_come() -> None:
    one = queue()
    assert one.lag is None
    fill(one, batch(0, 3), end=10)
    one.take(2)

    assert one.lag == 8


def test_the_lag_with_read_committed_ends_at_the_last_stable_offset() -> None:
    one = queue(is_committed_only=True)
    fill(one, batch(0, 3), end=10, stable=3)
    one.take(3)

    assert one.lag == 0
    assert one.is_at_end


def test_a_partition_is_at_its_end_when_all_records_are_returned() -> None:
    one = queue()
    assert not one.is_at_end
    fill(one, batch(0, 2), end=2)
    assert not one.is_at_end
    one.take(2)

    assert one.is_at_end


def test_an_empty_response_means_caught_up_only_at_the_log_end() -> None:
    one = queue()
    fill(one, b"", end=5)
    assert not one.is_caught_up  # the response was full before this partition's turn
    fill(one, batch(0, 5), end=5)
    fill(one, b"", end=5)
    assert one.is_caught_up

    one.seek(0)
    assert not one.is_caught_up


def test_aborted_records_are_not_returned_with_read_committed() -> None:
    aborted = batch(0, 2, is_transactional=True, producer_id=9, producer_epoch=0, base_sequence=0)
    one = queue(is_committed_only=True)
    fill(one, aborted + batch(2), end=3, aborted=[(9, 0)])
    two = queue()
    fill(two, aborted + batch(2), end=3, aborted=[(9, 0)])

    assert offsets(one.take(5)) == [2]
    assert offsets(two.take(5)) == [0, 1, 2]


def test_the_position_advances_past_filtered_records() -> None:
    aborted = batch(0, 2, is_transactional=True, producer_id=9, producer_epoch=0, base_sequence=0)
    one = queue(is_committed_only=True)
    fill(one, aborted, end=2, aborted=[(9, 0)])

    assert one.take(5) == []
    assert one.position == 2


def test_an_error_has_the_offset_of_the_unreadable_record() -> None:
    one = queue(value_deserializer=lambda data: 1 // int(data))
    fill(one, batch(5))
    one.seek(5)
    bad = queue(value_deserializer=lambda data: 1 // (int(data) - 6), offset=5)
    fill(bad, batch(5, 3))
    assert offsets(bad.take(3)) == [5]
    with pytest.raises(ZeroDivisionError):
        bad.take(3)

    bad.fail()

    assert bad.position == 6
    assert not bad.has_records
    bad.seek(7)
    fill(bad, batch(5, 3))
    assert offsets(bad.take(3)) == [7]


def test_a_corrupt_later_batch_is_reported_when_reached() -> None:
    one = queue()
    damaged = bytearray(batch(1))
    damaged[16] = 9
    fill(one, batch(0) + bytes(damaged))
    assert offsets(one.take(5)) == [0]

    with pytest.raises(CorruptMessage, match="unknown message format 9"):
        fill(one, bytes(damaged))


def test_old_message_formats_are_refused() -> None:
    old = bytearray(batch(0))
    old[16] = 1

    with pytest.raises(UnsupportedForMessageFormat):
        fill(queue(), bytes(old))


def test_checksums_are_validated_unless_disabled() -> None:
    damaged = bytearray(batch(0))
    damaged[-2] ^= 1
    checking, trusting = queue(), queue(check_crcs=False)
    for each in (checking, trusting):
        fill(each, bytes(damaged))

    assert len(trusting.take(1)) == 1
    with pytest.raises(CorruptMessage, match="checksum"):
        checking.take(1)


def test_a_retriable_error_is_retried_after_a_backoff() -> None:
    one = queue()
    one.retry_later(one.ask(), 12.5)
    assert (one.failures, one.not_before, one.is_pending) == (1, 12.5, False)

    fill(one, b"", end=0)

    assert one.failures == 0


def test_a_whole_buffer_is_returned_with_the_offset_of_its_first_new_record() -> None:
    one = queue(offset=1)
    data = batch(0, 3)
    fill(one, data)
    one.take(1)

    batches, from_offset = one.first_buffer
    assert (bytes(batches), from_offset) == (data, 2)
    one.pass_over(len(data))
    assert one.position == 3
    assert not one.has_records


def test_part_of_a_buffer_can_be_skipped() -> None:
    one = queue()
    first, second = batch(0, 3), batch(3, 2)
    fill(one, first + second)

    one.pass_over(len(first))

    assert one.position == 3
    assert one.first_buffer == (second, 3)
    assert offsets(one.take(5)) == [3, 4]


@pytest.mark.parametrize(("share", "is_copied"), [(1, False), (20, True)])
def test_a_small_part_of_a_response_does_not_keep_it_in_memory(share: int, is_copied: bool) -> None:
    records = batch(0)
    frame = bytearray(records * share)
    one = queue()

    one.fill(one.ask(), answer(memoryview(frame)[: len(records)]))

    assert (bytes(one.first_buffer[0]), one.first_buffer[0].obj is not frame) == (records, is_copied)


def test_the_repr_of_a_queue_shows_its_position() -> None:
    assert repr(PartitionQueue(A, Reading())) == "<t-0 at None, 0 buffers, next fetch from None>"
