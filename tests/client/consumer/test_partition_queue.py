"""One partition: where it is, what it has, and what it makes of answers."""

from __future__ import annotations

import pytest

from ottla.client.consumer.partition_queue import PartitionQueue, Reading, Start
from ottla.core.errors import CorruptMessage, UnsupportedForMessageFormat

from .making import A, answer, batch, fill, offsets, queue


def test_records_are_handed_out_in_order_and_the_position_follows() -> None:
    one = queue()
    assert fill(one, batch(0, 3) + batch(3, 2), end=5)

    assert offsets(one.take(2)) == [0, 1]
    assert one.position == 2
    assert offsets(one.take(10)) == [2, 3, 4]
    assert one.position == 5
    assert one.take(10) == []


def test_records_say_where_they_are_from() -> None:
    one = queue()
    fill(one, batch(0))

    [record] = one.take(1)

    assert (record.topic, record.partition, record.value) == ("t", 0, b"0")


def test_the_next_fetch_begins_after_the_last_whole_batch() -> None:
    one = queue()
    fill(one, batch(0, 3) + batch(3, 2)[:-1])

    assert one.fetch_offset == 3
    assert offsets(one.take(10)) == [0, 1, 2]


def test_a_fetch_from_the_middle_of_a_batch_hands_out_only_the_rest() -> None:
    one = queue(offset=4)
    fill(one, batch(0, 6))

    assert offsets(one.take(10)) == [4, 5]
    assert one.fetch_offset == 6


def test_a_batch_that_was_cut_is_asked_for_whole() -> None:
    one = queue(max_bytes=100)
    whole = batch(0, 50)

    assert not fill(one, whole[:100])
    assert one.max_bytes == len(whole)
    assert fill(one, whole)
    assert one.max_bytes == 100


def test_a_batch_that_was_cut_in_its_header_is_asked_for_with_twice_the_room() -> None:
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


def test_a_buffer_that_ends_in_control_batches_is_emptied_by_its_last_record() -> None:
    one = queue(max_buffers=2)
    fill(one, batch(0) + batch(1, is_control=True, is_transactional=True, producer_id=1, producer_epoch=0))
    fill(one, batch(2))

    assert offsets(one.take(5)) == [0]
    assert offsets(one.take(5)) == [2]
    assert one.position == 3


def test_an_answer_from_before_a_seek_is_dropped() -> None:
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


def test_a_seek_forgets_what_was_fetched() -> None:
    one = queue()
    fill(one, batch(0, 3))

    one.seek(1)

    assert not one.has_records
    assert one.position == 1


def test_an_offset_that_was_looked_up_counts_only_if_nobody_sought_meanwhile() -> None:
    one = queue(offset=None)
    assert one.needs_start
    era = one.era
    one.seek(3)
    one.begin_at(era, 100)
    assert one.position == 3

    one.seek_to(Start.EARLIEST)
    one.begin_at(one.era, 8)
    assert (one.position, one.fetch_offset) == (8, 8)


def test_what_is_here_is_handed_out_before_a_reset_takes_effect() -> None:
    one = queue()
    fill(one, batch(0, 2))
    one.reset(one.ask())
    assert one.start is Start.RESET
    one.begin_at(one.era, 50)

    assert offsets(one.take(5)) == [0, 1]
    fill(one, batch(50))
    assert offsets(one.take(5)) == [50]


@pytest.mark.parametrize("state", ["is_paused", "is_held_back", "is_failed"])
def test_nothing_is_handed_out_or_fetched_of_a_partition_that_is_held_up(state: str) -> None:
    one = queue()
    fill(one, batch(0))

    setattr(one, state, True)
    assert not one.has_records
    assert not one.is_wanted

    setattr(one, state, False)
    assert offsets(one.take(1)) == [0]


def test_lag_is_what_is_still_to_come() -> None:
    one = queue()
    assert one.lag is None
    fill(one, batch(0, 3), end=10)
    one.take(2)

    assert one.lag == 8


def test_the_lag_of_a_reader_of_committed_records_ends_at_the_last_stable_offset() -> None:
    one = queue(is_committed_only=True)
    fill(one, batch(0, 3), end=10, stable=3)
    one.take(3)

    assert one.lag == 0
    assert one.is_at_end


def test_a_partition_is_at_its_end_when_nothing_is_left_of_it() -> None:
    one = queue()
    assert not one.is_at_end
    fill(one, batch(0, 2), end=2)
    assert not one.is_at_end
    one.take(2)

    assert one.is_at_end


def test_nothing_in_an_answer_means_caught_up_only_at_the_end() -> None:
    one = queue()
    fill(one, b"", end=5)
    assert not one.is_caught_up  # the answer was full before it was this partition's turn
    fill(one, batch(0, 5), end=5)
    fill(one, b"", end=5)
    assert one.is_caught_up

    one.seek(0)
    assert not one.is_caught_up


def test_aborted_records_are_not_handed_out_to_a_reader_of_committed_ones() -> None:
    aborted = batch(0, 2, is_transactional=True, producer_id=9, producer_epoch=0, base_sequence=0)
    one = queue(is_committed_only=True)
    fill(one, aborted + batch(2), end=3, aborted=[(9, 0)])
    two = queue()
    fill(two, aborted + batch(2), end=3, aborted=[(9, 0)])

    assert offsets(one.take(5)) == [2]
    assert offsets(two.take(5)) == [0, 1, 2]


def test_the_position_passes_over_records_that_are_not_handed_out() -> None:
    aborted = batch(0, 2, is_transactional=True, producer_id=9, producer_epoch=0, base_sequence=0)
    one = queue(is_committed_only=True)
    fill(one, aborted, end=2, aborted=[(9, 0)])

    assert one.take(5) == []
    assert one.position == 2


def test_a_record_that_cannot_be_read_is_named_by_the_position() -> None:
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


def test_damage_after_the_first_batch_is_found_when_it_is_reached() -> None:
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


def test_a_checksum_is_looked_at_unless_it_is_not_to_be() -> None:
    damaged = bytearray(batch(0))
    damaged[-2] ^= 1
    checking, trusting = queue(), queue(check_crcs=False)
    for each in (checking, trusting):
        fill(each, bytes(damaged))

    assert len(trusting.take(1)) == 1
    with pytest.raises(CorruptMessage, match="checksum"):
        checking.take(1)


def test_a_retriable_error_is_waited_out_and_forgotten() -> None:
    one = queue()
    one.retry_later(one.ask(), 12.5)
    assert (one.failures, one.not_before, one.is_pending) == (1, 12.5, False)

    fill(one, b"", end=0)

    assert one.failures == 0


def test_a_buffer_is_handed_out_as_it_is_from_where_it_is_new() -> None:
    one = queue(offset=1)
    data = batch(0, 3)
    fill(one, data)
    one.take(1)

    batches, from_offset = one.first_buffer
    assert (bytes(batches), from_offset) == (data, 2)
    one.pass_over(len(data))
    assert one.position == 3
    assert not one.has_records


def test_part_of_a_buffer_can_be_passed_over() -> None:
    one = queue()
    first, second = batch(0, 3), batch(3, 2)
    fill(one, first + second)

    one.pass_over(len(first))

    assert one.position == 3
    assert one.first_buffer == (second, 3)
    assert offsets(one.take(5)) == [3, 4]


@pytest.mark.parametrize(("share", "is_copied"), [(1, False), (20, True)])
def test_a_small_part_of_an_answer_does_not_keep_all_of_it_in_memory(share: int, is_copied: bool) -> None:
    records = batch(0)
    frame = bytearray(records * share)
    one = queue()

    one.fill(one.ask(), answer(memoryview(frame)[: len(records)]))

    assert (bytes(one.first_buffer[0]), one.first_buffer[0].obj is not frame) == (records, is_copied)


def test_a_queue_says_where_it_is() -> None:
    assert repr(PartitionQueue(A, Reading())) == "<t-0 at None, 0 buffers, next fetch from None>"
