"""The broker's clock can be moved, and timers fire at once."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException

from ottla.testing.clock import MovableClock

from .clients import consumer, poll, producer

if TYPE_CHECKING:
    from ottla.testing import EphemeralBroker

HOUR_S = 3600


def test_a_silent_member_expires_at_once(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "x")
    quiet = {"session.timeout.ms": 600_000, "heartbeat.interval.ms": 300_000, "max.poll.interval.ms": 600_000}
    with closing(consumer(ottla, "readers", **quiet)) as reader:
        reader.subscribe(["t"])
        poll(reader)
        ottla.wait_for_group("readers", members=1)
        ottla.clock.advance(601)
        ottla.wait_for_group("readers", members=0)


def test_old_records_are_deleted_at_once(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t", configs={"retention.ms": str(HOUR_S * 1000)})
    ottla.produce("t", "old")
    ottla.clock.advance(HOUR_S - 60)
    assert len(ottla.records("t")) == 1
    ottla.clock.advance(120)
    assert ottla.records("t") == []


def test_records_bear_the_time_of_the_clock(ottla: EphemeralBroker) -> None:
    ottla.clock.freeze()
    ottla.produce("t", "a", "b")
    ottla.clock.advance(HOUR_S)
    ottla.produce("t", "c")
    first, second, third = (record.timestamp for record in ottla.records("t"))
    assert second == first
    assert third - first == pytest.approx(HOUR_S * 1000, abs=2)


def test_a_frozen_clock_continues_where_it_stopped() -> None:
    moves: list[None] = []
    clock = MovableClock(lambda: moves.append(None))
    clock.freeze()
    clock.freeze()
    stood_ms, stood_s = clock.now_ms(), clock.monotonic_s()
    clock.advance(5)
    assert clock.monotonic_s() == pytest.approx(stood_s + 5, abs=1e-6)
    assert clock.now_ms() == pytest.approx(stood_ms + 5000, abs=2)
    clock.resume()
    assert stood_s + 5 <= clock.monotonic_s() < stood_s + 15
    assert len(moves) == 1


def test_the_clock_never_goes_back() -> None:
    with pytest.raises(ValueError, match="can only move forward"):
        MovableClock(lambda: None).advance(-1)


def test_a_transaction_that_takes_too_long_is_aborted_at_once(ottla: EphemeralBroker) -> None:
    client = producer(ottla, **{"transactional.id": "shop", "transaction.timeout.ms": 60_000})
    client.init_transactions(20)
    client.begin_transaction()
    client.produce("t", b"x")
    assert client.flush(20) == 0
    ottla.clock.advance(61)
    with pytest.raises(KafkaException):
        client.commit_transaction(20)
    # Would not be seen while the transaction before it is open.
    ottla.produce("t", "after")
    assert [record.value for record in ottla.wait_for_records("t")] == [b"after"]
