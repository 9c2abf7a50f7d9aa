"""Snapshots and restarts of a test broker."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ottla.core.ids import TopicPartition
from ottla.testing import broker as testing_broker

from .clients import consumer, poll, producer, send, values

if TYPE_CHECKING:
    from ottla.testing import EphemeralBroker

QUICK = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 20}


def test_records_offsets_and_topics_come_back_as_they_were(ottla: EphemeralBroker) -> None:
    ottla.create_topic("orders", partitions=2, configs={"retention.ms": "3600000"})
    ottla.produce("orders", "a", "b")
    with closing(consumer(ottla, "readers")) as reader:
        reader.subscribe(["orders"])
        assert poll(reader) == b"a"
        reader.commit(asynchronous=False)
    before = ottla.committed("readers")
    snapshot = ottla.snapshot()

    ottla.produce("orders", "c")
    ottla.produce("new", "d")
    ottla.restore(snapshot)

    assert ottla.topics() == ["orders"]
    assert values(ottla, "orders") == [b"a", b"b"]
    assert ottla.committed("readers") == before == {TopicPartition("orders", 0): 1}


def test_a_snapshot_can_be_restored_more_than_once(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "a")
    snapshot = ottla.snapshot()
    for value in ("b", "c"):
        assert ottla.produce("t", value) == 1
        ottla.restore(snapshot)
        assert values(ottla, "t") == [b"a"]


def test_clients_find_the_broker_again_at_the_same_address(ottla: EphemeralBroker) -> None:
    client = producer(ottla, **QUICK)
    send(client, "t", b"a")
    snapshot, address = ottla.snapshot(), ottla.bootstrap_servers
    send(client, "t", b"b")
    ottla.restore(snapshot)
    assert ottla.bootstrap_servers == address
    send(client, "t", b"c")
    assert values(ottla, "t") == [b"a", b"c"]


def test_faults_history_and_clock_are_not_part_of_it(ottla: EphemeralBroker) -> None:
    fault = ottla.faults.error("NOT_LEADER_OR_FOLLOWER", api="Produce", times=1)
    ottla.clock.advance(3600)
    ahead_ms = ottla.broker.clock.now_ms()
    ottla.restore(ottla.snapshot())
    assert ottla.broker.clock.now_ms() >= ahead_ms
    send(producer(ottla), "t", b"a")
    assert fault.struck == 1
    assert len(ottla.requests.of(api="Produce")) == 2


def test_after_a_restart_everything_is_still_there(ottla: EphemeralBroker) -> None:
    client = producer(ottla, **QUICK)
    send(client, "t", b"a")
    ottla.restart()
    send(client, "t", b"b")
    assert values(ottla, "t") == [b"a", b"b"]


def test_a_snapshot_of_another_broker_is_refused_and_nothing_is_lost(ottla: EphemeralBroker) -> None:
    with testing_broker() as other:
        foreign = other.snapshot()
    ottla.produce("orders", "a")

    with pytest.raises(ValueError, match="this snapshot was made by another broker"):
        ottla.restore(foreign)

    assert values(ottla, "orders") == [b"a"]
