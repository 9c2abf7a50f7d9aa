"""Rules of the transaction coordinator."""

from __future__ import annotations

import pytest

from ottla.core.errors import ErrorCode
from ottla.transactions.config import TransactionConfig
from ottla.transactions.decisions import Change
from ottla.transactions.states import State
from ottla.transactions.transaction import LAST_EPOCH, Transaction

from .making import MINUTE_MS, NEW, OLD, A, B, Written


def state_of(written: Written) -> State:
    known = written.rules.get("t")
    assert known is not None
    return known.state


def test_a_new_id_gets_a_producer_id_and_epoch_0() -> None:
    assert Written().producer() == (1000, 0)


def test_a_later_producer_gets_the_next_epoch_and_fences_the_previous_one() -> None:
    written = Written()
    first = written.producer()
    assert written.producer() == (1000, 1)
    assert written.rules.add_partitions("t", first, [A], NEW, 0).error is ErrorCode.PRODUCER_FENCED
    assert written.end(first).error is ErrorCode.PRODUCER_FENCED
    assert written.rules.verify("t", *first, A) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("timeout_ms", [0, -1, 15 * MINUTE_MS + 1])
def test_an_invalid_timeout_is_refused(timeout_ms: int) -> None:
    refused = Written().rules.init_producer_id("t", timeout_ms, None, 0)
    assert (refused.error, refused.change) == (ErrorCode.INVALID_TRANSACTION_TIMEOUT, None)


def test_an_empty_id_is_an_invalid_request() -> None:
    rules = Written().rules
    assert rules.init_producer_id("", 1, None, 0).error is ErrorCode.INVALID_REQUEST
    assert rules.add_partitions("", (1, 0), [A], NEW, 0).error is ErrorCode.INVALID_REQUEST
    assert rules.end("", (1, 0), 0, is_commit=True, client_version=NEW).error is ErrorCode.INVALID_REQUEST


def test_an_unknown_id_has_no_producer() -> None:
    rules = Written().rules
    assert rules.add_partitions("t", (1, 0), [A], NEW, 0).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert rules.end("t", (1, 0), 0, is_commit=True, client_version=NEW).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_partitions_are_added_once() -> None:
    written = Written()
    producer = written.producer()
    written.begin(producer, A)
    assert written.rules.add_partitions("t", producer, [A], NEW, 1).change is None
    assert written.rules.verify("t", *producer, A) is ErrorCode.NONE
    assert written.rules.verify("t", *producer, B) is ErrorCode.TRANSACTION_ABORTABLE


@pytest.mark.parametrize(("is_commit", "state"), [(True, State.COMPLETE_COMMIT), (False, State.COMPLETE_ABORT)])
def test_before_kip_890_the_epoch_stays_and_since_then_it_is_bumped(is_commit: bool, state: State) -> None:
    for version, epoch in ((OLD, 0), (NEW, 1)):
        written = Written()
        producer = written.producer()
        written.begin(producer, A, version=version)
        ended = written.end(producer, is_commit=is_commit, version=version)
        assert (ended.error, ended.producer_id, ended.epoch) == (ErrorCode.NONE, producer[0], epoch)
        assert state_of(written) is state


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_repeated_end_gets_the_same_response(version: int) -> None:
    written = Written()
    producer = written.producer()
    written.begin(producer, A, version=version)
    first = written.end(producer, version=version)
    again = written.end(producer, version=version)
    assert (again.error, again.producer_id, again.epoch) == (ErrorCode.NONE, first.producer_id, first.epoch)
    assert again.change is None
    assert written.end(producer, is_commit=False, version=version).error is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("version", [OLD, NEW])
def test_requests_are_concurrent_while_markers_are_being_written(version: int) -> None:
    written = Written()
    producer = written.producer()
    written.begin(producer, A, version=version)
    decided = written.rules.end("t", producer, 0, is_commit=True, client_version=version)
    assert decided.change is not None
    written.write(decided.change)
    now = decided.producer_id, decided.epoch
    assert written.rules.unfinished() == ["t"]
    assert written.rules.init_producer_id("t", 1, None, 0).error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert written.rules.add_partitions("t", now, [B], version, 0).error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert written.end(producer, version=version).error is ErrorCode.CONCURRENT_TRANSACTIONS


def test_before_kip_890_ending_without_a_transaction_is_refused() -> None:
    written = Written()
    producer = written.producer()
    for is_commit in (True, False):
        assert written.end(producer, is_commit=is_commit, version=OLD).error is ErrorCode.INVALID_TXN_STATE


def test_since_kip_890_an_empty_abort_bumps_the_epoch() -> None:
    written = Written()
    producer = written.producer()
    assert written.end(producer).error is ErrorCode.INVALID_TXN_STATE
    aborted = written.end(producer, is_commit=False)
    assert (aborted.error, aborted.epoch) == (ErrorCode.NONE, 1)


def test_an_open_transaction_is_aborted_when_its_producer_restarts() -> None:
    written = Written()
    producer = written.producer()
    written.begin(producer, A)
    aborting = written.done(written.rules.init_producer_id("t", MINUTE_MS, None, 0))
    assert aborting.error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert state_of(written) is State.COMPLETE_ABORT
    assert written.producer() == (producer[0], 2)


def test_a_producer_that_recovers_from_an_error_sends_its_previous_epoch() -> None:
    written = Written()
    producer = written.producer()
    moved = written.done(written.rules.init_producer_id("t", MINUTE_MS, producer, 0))
    assert (moved.producer_id, moved.epoch) == (producer[0], 1)
    # It missed the response and asks again.
    again = written.done(written.rules.init_producer_id("t", MINUTE_MS, producer, 0))
    assert (again.producer_id, again.epoch) == (producer[0], 1)


def test_a_replaced_producer_is_fenced() -> None:
    written = Written()
    producer = written.producer()
    written.producer()
    assert written.rules.init_producer_id("t", MINUTE_MS, producer, 0).error is ErrorCode.PRODUCER_FENCED
    assert written.rules.init_producer_id("t", MINUTE_MS, (7, 0), 0).error is ErrorCode.PRODUCER_FENCED


def test_a_producer_of_the_previous_epoch_is_not_mistaken_for_a_retry() -> None:
    written = Written()
    before = written.producer()
    now = written.producer()
    written.begin(now, A, version=OLD)
    written.end(now, is_commit=False, version=OLD)
    assert written.end(before, is_commit=False).error is ErrorCode.PRODUCER_FENCED


def at_epoch(written: Written, epoch: int) -> tuple[int, int]:
    written.write(Change("t", Transaction(producer_id=7, epoch=epoch, timeout_ms=MINUTE_MS, updated_ms=0)))
    return 7, epoch


def test_with_exhausted_epochs_a_producer_gets_another_id() -> None:
    written = Written()
    at_epoch(written, LAST_EPOCH)
    assert written.producer() == (1000, 0)


def test_with_exhausted_epochs_the_end_of_a_transaction_assigns_another_id() -> None:
    written = Written()
    producer = at_epoch(written, LAST_EPOCH)
    written.begin(producer, A)
    ended = written.end(producer)
    assert (ended.producer_id, ended.epoch) == (1000, 0)
    again = written.end(producer)
    assert (again.error, again.producer_id, again.epoch) == (ErrorCode.NONE, 1000, 0)
    written.restart()
    assert written.end(producer).producer_id == 1000


def test_a_timed_out_transaction_is_aborted_and_its_producer_fenced() -> None:
    written = Written()
    producer = written.producer()
    written.begin(producer, A, version=OLD, now_ms=1000)
    assert written.rules.next_deadline_ms() == 1000 + MINUTE_MS
    assert written.rules.expire(999 + MINUTE_MS) == []
    [late] = written.rules.expire(1000 + MINUTE_MS)
    assert late.is_ending
    written.write(late)
    written.write(written.rules.completed("t", 0))
    assert state_of(written) is State.COMPLETE_ABORT
    assert written.end(producer, version=OLD).error is ErrorCode.PRODUCER_FENCED
    assert written.rules.next_deadline_ms() is None


def test_a_transaction_can_be_expired_early() -> None:
    written = Written()
    producer = written.producer()
    assert written.rules.expire_now("t", 0) == []
    written.begin(producer, A, version=OLD)
    [late] = written.rules.expire_now("t", 0)
    written.write(late)
    assert written.end(producer, version=OLD).error is ErrorCode.PRODUCER_FENCED
    assert written.rules.expire_now("t", 0) == []


def test_a_transaction_that_ended_in_time_does_not_expire() -> None:
    written = Written()
    producer = written.producer()
    written.begin(producer, A)
    written.end(producer)
    assert written.rules.expire(10 * MINUTE_MS) == []


def test_an_abort_that_could_not_be_written_is_retried() -> None:
    written = Written()
    written.begin(written.producer(), A)
    assert len(written.rules.expire(MINUTE_MS)) == 1
    written.rules.try_again("t", MINUTE_MS + 500)
    assert written.rules.next_deadline_ms() == MINUTE_MS + 500
    assert len(written.rules.expire(MINUTE_MS + 500)) == 1


def test_an_unused_transactional_id_expires() -> None:
    written = Written(TransactionConfig(id_expiration_ms=10))
    producer = written.producer()
    assert written.rules.forget(9) == []
    assert written.rules.forget(10) == [Change("t", None)]
    written.begin(producer, A)
    assert written.rules.forget(1000) == []
    written.end(producer)
    [forgotten] = written.rules.forget(1000)
    written.write(forgotten)
    written.restart()
    assert written.rules.get("t") is None


def test_written_states_survive_a_restart() -> None:
    written = Written()
    producer = written.producer()
    written.begin(producer, A, B)
    before = written.rules.get("t")
    written.restart()
    assert written.rules.get("t") == before
    assert written.rules.next_deadline_ms() == MINUTE_MS


def test_ids_coordinated_by_another_broker_are_unloaded_but_not_expired() -> None:
    written = Written()
    written.begin(written.producer(), A)
    written.producer("other")

    assert written.rules.drop(lambda each: each == "t") == ["t"]

    assert written.rules.get("t") is None
    assert written.rules.get("other") is not None
    assert written.rules.next_deadline_ms() is None
    assert written.rules.expire(2 * MINUTE_MS) == []
