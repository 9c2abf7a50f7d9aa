"""What a partition may send, and how it handles each response."""

from __future__ import annotations

import pytest

from ottla.client.errors import ConnectionLost, DeliveryFailed, RecordTooLarge
from ottla.client.producer.batch import Acknowledged, Batch, Identity, Refused
from ottla.core.errors import ErrorCode

from .making import LINGER_S, LOST, ME, TIMEOUT_S, Partition, error_of, refusal, rules, stamps, values


def sent(partition: Partition, *values: bytes) -> list[Batch]:
    """Batches of one record each, all in flight."""
    for value in values:
        partition.seal(value)
    return [partition.take() for _ in values]


# When something is due


def test_an_empty_partition_has_nothing_due() -> None:
    partition = Partition()

    assert partition.queue.due_at() is None
    assert partition.queue.is_idle


def test_an_open_batch_is_due_linger_after_its_first_record() -> None:
    partition = Partition()
    partition.append()
    partition.now += 0.05
    partition.append()

    assert partition.queue.due_at() == 100.0 + LINGER_S
    assert not partition.queue.is_urgent


def test_an_awaited_batch_is_due_at_once() -> None:
    partition = Partition()
    partition.append().batch.observe(0)

    assert partition.queue.due_at() == 100.0
    assert partition.queue.is_urgent
    assert len(partition.woken) == 2


def test_a_full_batch_is_due_at_once() -> None:
    partition = Partition()
    partition.seal(b"full")

    assert partition.queue.due_at() == 0.0
    assert partition.queue.is_urgent


def test_a_batch_keeps_filling_while_another_is_in_flight() -> None:
    partition = Partition()
    [first] = sent(partition, b"first")
    partition.append().batch.observe(0)

    assert partition.queue.due_at() is None
    partition.append(b"also")
    partition.queue.acknowledged(first, 0, -1)

    assert partition.take().count == 2


def test_the_first_batch_is_sent_alone_and_the_next_ones_together() -> None:
    partition = Partition()
    [first] = sent(partition, b"first")
    for i in range(6):
        partition.seal(b"%d" % i)

    assert partition.queue.due_at() is None
    partition.queue.acknowledged(first, 0, -1)
    for _ in range(5):
        partition.take()

    assert partition.queue.due_at() is None
    assert len(partition.queue.in_flight) == 5


def test_without_idempotence_only_one_batch_is_in_flight() -> None:
    partition = Partition(queue_rules=rules(is_idempotent=False))
    partition.seal(b"a"), partition.seal(b"b")
    first = partition.take()

    assert partition.queue.due_at() is None
    partition.queue.acknowledged(first, 0, -1)

    assert stamps(partition.take(), Identity()) == (-1, -1, -1)
    assert partition.queue.due_at() is None


# Sequence numbers


def test_batches_are_numbered_by_their_records() -> None:
    partition = Partition()
    partition.introduce()
    partition.seal(b"a", b"b", b"c"), partition.seal(b"d")

    assert [stamps(partition.take()) for _ in range(2)] == [(7, 0, 1), (7, 0, 4)]


def test_failed_batches_are_resent_in_order_with_the_same_sequence_numbers() -> None:
    partition = Partition()
    partition.introduce()
    one, two, three = sent(partition, b"1", b"2", b"3")
    before = [stamps(batch) for batch in (one, two, three)]
    partition.seal(b"new")

    partition.lose(two)
    assert partition.queue.due_at() is None, "others are in flight still"
    partition.lose(three, one)

    again = []
    for offset in range(3):
        batch = partition.take()
        assert (partition.queue.due_at() is None) == (offset < 2), "failed batches are resent one at a time"
        again.append((batch, stamps(batch)))
        partition.queue.acknowledged(batch, offset, -1)
    assert again == list(zip((one, two, three), before, strict=True))
    assert values(partition.take()) == [b"new"]


def test_after_a_failure_it_waits_for_the_backoff() -> None:
    partition = Partition()
    partition.lose(*sent(partition, b"1"))

    partition.queue.failed(retry_at=107.0)
    assert partition.queue.due_at() == 107.0
    assert partition.queue.failures == 1
    partition.now = 107.0
    partition.queue.acknowledged(partition.take(), 0, -1)

    assert partition.queue.failures == 0
    assert partition.queue.not_before == 0.0


def test_a_duplicate_is_a_success_with_an_unknown_offset() -> None:
    partition = Partition()
    [batch] = sent(partition, b"1")

    assert not partition.refuse(batch, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)

    assert batch.outcome == Acknowledged(-1, -1)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH],
)
def test_an_unknown_producer_id_starts_a_new_epoch_at_sequence_zero(code: ErrorCode) -> None:
    partition = Partition()
    partition.introduce()
    one, two = sent(partition, b"1", b"2")

    assert partition.refuse(one, code)
    assert partition.refuse(two, code)

    taken = []
    for _ in range(2):
        batch = partition.take()
        taken.append((batch, stamps(batch, partition.queue.identity)))
        partition.queue.acknowledged(batch, 0, -1)
    assert taken == [(one, (7, 1, 0)), (two, (7, 1, 1))]


def test_an_out_of_order_batch_behind_a_failed_one_is_only_resent() -> None:
    partition = Partition()
    partition.introduce()
    one, two = sent(partition, b"1", b"2")

    partition.refuse(one, ErrorCode.NOT_ENOUGH_REPLICAS)
    partition.refuse(two, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    assert stamps(partition.take()) == (7, 0, 1)


def test_after_the_last_epoch_another_producer_id_is_needed() -> None:
    partition = Partition()
    partition.queue.identify(Identity(7, 0x7FFF))
    [batch] = sent(partition, b"1")
    partition.refuse(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert partition.queue.needs_identity

    partition.queue.identify(Identity(8, 0))

    assert not partition.queue.needs_identity
    assert stamps(partition.take(), Identity(8, 0)) == (8, 0, 0)


def test_sequence_numbers_wrap_around() -> None:
    partition = Partition()
    partition.queue._renumber(0x7FFFFFFF)
    one = partition.seal(b"a", b"b")
    assert partition.take() is one
    partition.queue.acknowledged(one, 0, -1)

    partition.seal(b"c")

    assert stamps(partition.take()) == (7, 0, 1)


# Giving up


def test_a_refused_batch_fails_and_the_rest_is_renumbered() -> None:
    partition = Partition()
    partition.introduce()
    one, two = sent(partition, b"1", b"2")

    assert not partition.refuse(one, ErrorCode.INVALID_RECORD)
    assert error_of(one).code is ErrorCode.INVALID_RECORD  # type: ignore[attr-defined]
    assert partition.refuse(two, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    assert stamps(partition.take()) == (7, 0, 1), "the sequence number of the refused batch"


def test_record_errors_are_reported_per_record() -> None:
    partition = Partition()
    partition.seal(b"good", b"bad")
    batch = partition.take()
    bad = refusal(ErrorCode.INVALID_TIMESTAMP)

    partition.queue.answered_with(batch, refusal(ErrorCode.INVALID_RECORD), {1: bad})

    assert isinstance(batch.outcome, Refused)
    assert batch.outcome.error_of(1) is bad
    assert batch.outcome.error_of(0) is not bad


def test_an_expired_batch_fails_with_the_last_error() -> None:
    partition = Partition()
    partition.lose(*sent(partition, b"old"))
    partition.now += 1
    partition.append(b"young")

    assert partition.queue.expires_at() == 100.0 + TIMEOUT_S
    partition.queue.expire(100.0 + TIMEOUT_S - 0.1)
    assert partition.done == []
    partition.queue.expire(100.0 + TIMEOUT_S)

    [old] = partition.done
    assert isinstance(error_of(old), DeliveryFailed)
    assert str(error_of(old)) == f"t-0: not acknowledged within 120000 ms; last error: {LOST}"
    assert error_of(old).__cause__ is LOST
    assert partition.queue.expires_at() == 101.0 + TIMEOUT_S


def test_after_an_expired_batch_that_may_be_stored_the_rest_uses_a_new_epoch() -> None:
    partition = Partition()
    partition.introduce()
    partition.lose(*sent(partition, b"old"))
    partition.queue.expire(partition.now + TIMEOUT_S)

    partition.seal(b"next")

    batch = partition.take()
    assert stamps(batch, partition.queue.identity) == (7, 1, 0)


def test_an_expired_batch_that_was_never_sent_leaves_no_gap() -> None:
    partition = Partition()
    partition.introduce()
    partition.append(b"never sent")
    partition.queue.expire(partition.now + TIMEOUT_S)

    partition.seal(b"next")

    assert stamps(partition.take()) == (7, 0, 1)


def test_a_batch_in_flight_does_not_expire() -> None:
    partition = Partition()
    sent(partition, b"1")

    partition.queue.expire(partition.now + TIMEOUT_S)

    assert partition.queue.expires_at() is None
    assert partition.done == []


def test_abandoning_fails_everything_in_order_and_makes_room() -> None:
    partition = Partition(buffers=4)
    partition.introduce()
    flying = sent(partition, b"1", b"2")
    sealed = partition.seal(b"3")
    opened = partition.append(b"4").batch
    assert partition.filling.room == 0

    partition.queue.abandon(LOST)

    assert partition.done[1:] == [*flying, sealed, opened]
    assert {error_of(batch) for batch in partition.done[1:]} == {LOST}
    assert partition.queue.is_idle
    assert partition.filling.room == 4


# Splitting


def test_a_batch_too_large_for_the_broker_is_split_and_keeps_its_numbers() -> None:
    partition = Partition()
    partition.introduce()
    whole = partition.seal(b"a", b"b", b"c")
    later = partition.seal(b"d")
    partition.take(), partition.take()

    assert partition.refuse(whole, ErrorCode.MESSAGE_TOO_LARGE)
    assert partition.refuse(later, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    taken = []
    for offset in (10, 20, 30):
        batch = partition.take()
        taken.append((values(batch), stamps(batch)[2]))
        partition.queue.acknowledged(batch, offset, -1)
    assert taken == [([b"a"], 1), ([b"b", b"c"], 2), ([b"d"], 4)]
    assert whole.is_done
    assert [whole.outcome_of(i) for i in range(3)] == [
        (Acknowledged(10), 0),
        (Acknowledged(20), 0),
        (Acknowledged(20), 1),
    ]
    assert partition.filling.room == 10


def test_halves_that_fail_stay_in_order() -> None:
    partition = Partition()
    whole = partition.seal(b"a", b"b")
    partition.take()
    partition.refuse(whole, ErrorCode.MESSAGE_TOO_LARGE)

    partition.lose(partition.take())

    assert values(partition.take()) == [b"a"]


def test_later_batches_are_small_enough() -> None:
    partition = Partition()
    whole = partition.seal(*[b"x" * 100] * 20)
    partition.take()

    partition.refuse(whole, ErrorCode.MESSAGE_TOO_LARGE)

    assert partition.filling.max_bytes < whole.size * 0.6


def test_a_single_record_that_is_too_large_is_refused() -> None:
    partition = Partition()
    [batch] = sent(partition, b"alone")

    assert not partition.refuse(batch, ErrorCode.MESSAGE_TOO_LARGE)

    assert isinstance(error_of(batch), RecordTooLarge)


def test_the_callback_of_a_split_batch_runs_after_its_last_part() -> None:
    partition = Partition()
    whole = partition.seal(b"a", b"b")
    called: list[str] = []
    whole.when_done(lambda: called.append("done"))
    partition.take()
    partition.refuse(whole, ErrorCode.MESSAGE_TOO_LARGE)

    partition.queue.acknowledged(partition.take(), 0, -1)
    assert called == []
    partition.queue.acknowledged(partition.take(), 1, -1)

    assert called == ["done"]


def test_a_resent_batch_is_identical_to_the_byte() -> None:
    partition = Partition()
    [batch] = sent(partition, b"1")
    before = bytes(batch.encode(ME))

    partition.queue.came_back(batch, ConnectionLost("gone"))

    assert partition.take().encode(ME) == before


def test_unfinished_batches_are_listed_in_order() -> None:
    partition = Partition()
    partition.introduce()
    flying = sent(partition, b"1", b"2")
    partition.lose(flying[1])
    sealed = partition.seal(b"3")
    opened = partition.append(b"4").batch

    assert partition.queue.unfinished() == [*flying, sealed, opened]


def test_a_finished_batch_keeps_its_count_but_not_its_records() -> None:
    partition = Partition()
    partition.seal(b"1", b"2")
    partition.queue.abandon(LOST)
    [batch] = partition.done

    assert batch.count == 2
    with pytest.raises(RuntimeError, match="a finished batch holds no records"):
        batch.encode(ME)
