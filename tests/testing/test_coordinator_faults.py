"""Faults of coordinators: expired sessions and transactions, forced rebalances."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka import KafkaException
from msgspec.structs import replace

from ottla.broker.settings import Settings
from ottla.groups.config import GroupConfig
from ottla.testing import EphemeralBroker

from .clients import consumer, poll, producer, values

QUICK = {"heartbeat.interval.ms": 20, "session.timeout.ms": 6000}


def test_a_rebalance_can_be_forced_though_nothing_has_changed(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "x")
    revoked: list[object] = []
    with closing(consumer(ottla, "readers", **QUICK)) as reader:
        reader.subscribe(["t"], on_revoke=lambda _, partitions: revoked.extend(partitions))
        assert poll(reader) == b"x"
        ottla.wait_for_group("readers")
        fault = ottla.faults.force_rebalance("readers")
        while not revoked:
            assert reader.poll(0.05) is None
        ottla.produce("t", "y")
        assert poll(reader) == b"y"
    assert fault.struck == 1


def test_a_member_whose_session_expires_rejoins_with_another_id(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "x")
    lost: list[object] = []
    with closing(consumer(ottla, "readers", **QUICK, **{"client.id": "a"})) as reader:
        reader.subscribe(["t"], on_lost=lambda _, partitions: lost.extend(partitions))
        assert poll(reader) == b"x"
        ottla.wait_for_group("readers")
        fault = ottla.faults.expire_session("readers", client_id="a")
        ottla.wait_for_group("readers", members=0)
        while not lost:
            reader.poll(0.05)
        ottla.produce("t", "y")
        poll(reader)
        ottla.wait_for_group("readers", members=1)
    assert fault.struck == 1


def test_expiring_an_unknown_group_is_an_error(ottla: EphemeralBroker) -> None:
    with pytest.raises(LookupError, match="force_rebalance: nothing matches group='nobody'"):
        ottla.faults.force_rebalance("nobody")
    with pytest.raises(LookupError, match="expire_session"):
        ottla.faults.expire_session("nobody")
    with pytest.raises(LookupError, match="transactional_id='nobody'"):
        ottla.faults.expire_transaction("nobody")


def test_a_transaction_that_expires_is_aborted_and_its_producer_fenced(ottla: EphemeralBroker) -> None:
    client = producer(ottla, **{"transactional.id": "tx"})
    client.init_transactions(20)
    client.begin_transaction()
    client.produce("t", b"x")
    assert client.flush(20) == 0
    fault = ottla.faults.expire_transaction("tx")
    with pytest.raises(KafkaException) as refused:
        client.commit_transaction(20)
    assert refused.value.args[0].fatal() or refused.value.args[0].txn_requires_abort()
    assert (fault.struck, values(ottla, "t")) == (1, [])


def test_a_group_of_the_new_protocol_loses_its_sessions_too() -> None:
    often = replace(GroupConfig(), consumer_heartbeat_interval_ms=50, consumer_min_heartbeat_interval_ms=50)
    lost: list[object] = []
    with EphemeralBroker(Settings(groups=often)) as broker:
        broker.produce("t", "x")
        with closing(consumer(broker, "readers", **{"group.protocol": "consumer"})) as reader:
            reader.subscribe(["t"], on_lost=lambda _, partitions: lost.extend(partitions))
            assert poll(reader) == b"x"
            assert broker.faults.force_rebalance("readers").struck == 1
            assert broker.faults.expire_session("readers").struck == 1
            while not lost:
                reader.poll(0.05)
            broker.produce("t", "y")
            poll(reader)
