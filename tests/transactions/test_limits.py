"""The memory of transactional ids is bounded and counted."""

from __future__ import annotations

from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.transactions.config import TransactionConfig

from .making import MINUTE_MS, NEW, A, B, Written


def full(written: Written) -> int:
    """Register ids until one is refused; how many there are."""
    for number in range(1_000_000):
        told = written.done(written.rules.init_producer_id(f"id-{number}", MINUTE_MS, None, 0))
        if told.error:
            assert told.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
            return number
    raise AssertionError("never full")


def test_new_ids_are_refused_when_the_memory_is_used_up_and_known_ones_continue() -> None:
    written = Written(TransactionConfig(max_memory_bytes=100_000))
    count = full(written)
    assert 50 < count < 200
    assert written.rules.memory.held_bytes <= 100_000
    assert written.rules.memory.refused == 1
    assert not written.rules.init_producer_id("id-0", MINUTE_MS, None, 0).error


def test_an_id_that_expires_makes_room() -> None:
    written = Written(TransactionConfig(max_memory_bytes=100_000, id_expiration_ms=1000))
    full(written)
    for change in written.rules.forget(now_ms=1000):
        written.write(change)
    assert written.rules.memory.held_bytes == 0
    assert not written.rules.init_producer_id("new", MINUTE_MS, None, 1000).error


def test_the_partitions_of_a_transaction_are_limited_and_it_can_still_end() -> None:
    written = Written(TransactionConfig(max_memory_bytes=5_000))
    producer = written.producer()
    written.begin(producer, A, B)
    many = [TopicPartition("a", index) for index in range(100)]
    assert written.rules.add_partitions("t", producer, many, NEW, 0).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    ended = written.done(written.rules.end("t", producer, 0, is_commit=True, client_version=NEW))
    assert not ended.error
    before = written.rules.memory.held_bytes
    written.restart()
    assert written.rules.memory.held_bytes == before


def test_what_was_stored_before_the_limit_is_kept() -> None:
    written = Written()
    for number in range(100):
        written.producer(f"id-{number}")
    written._config = TransactionConfig(max_memory_bytes=1)
    written.restart()
    assert len(list(written.rules)) == 100
    assert written.rules.init_producer_id("new", MINUTE_MS, None, 0).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    written.rules.drop(lambda _: True)
    assert written.rules.memory.held_bytes == 0


def test_an_id_that_is_too_long_is_an_invalid_request() -> None:
    written = Written()
    assert written.rules.init_producer_id("x" * 1025, MINUTE_MS, None, 0).error is ErrorCode.INVALID_REQUEST
    assert not written.rules.init_producer_id("x" * 1024, MINUTE_MS, None, 0).error


def test_deadlines_of_transactions_that_have_ended_do_not_pile_up() -> None:
    written = Written()
    producer = written.producer()
    for now_ms in range(5000):
        written.begin(producer, A, now_ms=now_ms)
        told = written.done(written.rules.end("t", producer, now_ms, is_commit=True, client_version=NEW), now_ms)
        producer = told.producer_id, told.epoch
    assert len(written.rules._wake_ups) < 1100
    written.begin(producer, A, now_ms=5000)
    assert written.rules.next_deadline_ms() == 5000 + MINUTE_MS
