"""Faults affect the selected requests the given number of times, and are counted."""

from __future__ import annotations

from contextlib import closing
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from tests.broker.making import batch
from tests.broker.raw_client import HungUpError, RawClient

from ottla.testing import ErrorCode
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from .clients import consumer, failure_of, poll, producer, send, values

if TYPE_CHECKING:
    from ottla.testing import EphemeralBroker


def test_an_error_is_injected_the_given_number_of_times_and_the_client_retries(ottla: EphemeralBroker) -> None:
    fault = ottla.faults.error("NOT_LEADER_OR_FOLLOWER", api="Produce", topic="t", times=2)
    send(producer(ottla), "t", b"x")
    assert fault.struck == 2
    assert values(ottla, "t") == [b"x"]
    assert len(ottla.requests.of(api="Produce", topic="t")) == 3


def test_an_error_has_no_effect_on_the_log(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t")
    with ottla.faults.error(ErrorCode.MESSAGE_TOO_LARGE, api="Produce") as fault:
        assert failure_of(producer(ottla), "t", b"x").code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert fault.struck == 1
    assert ottla.records("t") == []
    send(producer(ottla), "t", b"y")
    assert values(ottla, "t") == [b"y"]


def test_a_fault_for_one_partition_leaves_the_others_alone(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t", partitions=2)
    ottla.faults.error("INVALID_RECORD", api="Produce", topic="t", partition=1)
    client = producer(ottla, **{"linger.ms": 50})
    told: dict[int, Any] = {}
    for partition in (0, 1):
        client.produce(
            "t", b"x", partition=partition, on_delivery=lambda error, on: told.update({on.partition(): error})
        )
    assert client.flush(20) == 0
    assert told[0] is None
    assert told[1].code() == KafkaError.INVALID_RECORD
    assert [record.partition for record in ottla.records("t")] == [0]


def test_a_fault_for_one_client_leaves_the_others_alone(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t")
    fault = ottla.faults.error("INVALID_RECORD", api="Produce", client_id="bad")
    send(producer(ottla, **{"client.id": "good"}), "t", b"x")
    assert failure_of(producer(ottla, **{"client.id": "bad"}), "t", b"y").code() == KafkaError.INVALID_RECORD
    assert fault.struck == 1


@pytest.mark.parametrize(
    ("after_effect", "kept"), [(False, [b"x"]), (True, [b"x", b"x"])], ids=["before", "after the effect"]
)
def test_a_dropped_connection_makes_duplicates_only_after_the_effect(
    ottla: EphemeralBroker, after_effect: bool, kept: list[bytes]
) -> None:
    fault = ottla.faults.drop(api="Produce", times=1, after_effect=after_effect)
    send(producer(ottla, **{"reconnect.backoff.ms": 10}), "t", b"x")
    assert fault.struck == 1
    assert values(ottla, "t") == kept


def test_an_idempotent_producer_makes_no_duplicates(ottla: EphemeralBroker) -> None:
    ottla.faults.drop(api="Produce", times=1, after_effect=True)
    send(producer(ottla, **{"enable.idempotence": True, "reconnect.backoff.ms": 10}), "t", b"x")
    assert values(ottla, "t") == [b"x"]


def test_a_delay_holds_an_answer_back(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t")
    client = producer(ottla)
    send(client, "t", b"warm")
    fault = ottla.faults.delay(0.2, api="Produce", times=1)
    began_s = monotonic()
    send(client, "t", b"x")
    assert monotonic() - began_s >= 0.2
    assert fault.struck == 1


def test_with_acks_0_an_error_closes_the_connection(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t")
    fault = ottla.faults.error("INVALID_RECORD", api="Produce", times=1)
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch(b"x")),))
    with RawClient(ottla.bootstrap_servers) as client:
        client.send(ProduceRequest(acks=0, timeout_ms=1000, topic_data=(data,)), version=12)
        with pytest.raises((HungUpError, ConnectionResetError)):
            client.receive_frame()
    assert (fault.struck, values(ottla, "t")) == (1, [])


def test_a_topic_can_be_missing_from_the_metadata_for_a_while(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t")
    fault = ottla.faults.error("LEADER_NOT_AVAILABLE", api="Metadata", topic="t", times=1)
    send(producer(ottla, **{"topic.metadata.refresh.fast.interval.ms": 10}), "t", b"x")
    assert fault.struck == 1


def test_a_commit_is_refused_for_one_group(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "x")
    fault = ottla.faults.error("OFFSET_METADATA_TOO_LARGE", api="OffsetCommit", group="readers", times=1)
    with closing(consumer(ottla, "readers", **{"enable.auto.commit": False})) as reader:
        reader.subscribe(["t"])
        poll(reader)
        with pytest.raises(KafkaException, match="metadata"):
            reader.commit(asynchronous=False)
        assert (fault.struck, ottla.committed("readers")) == (1, {})
        reader.commit(asynchronous=False)
        ottla.wait_for_lag_zero("readers")


@pytest.mark.parametrize(
    ("api", "code"),
    [
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("SyncGroup", "REBALANCE_IN_PROGRESS"),
        ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("ListOffsets", "LEADER_NOT_AVAILABLE"),
        ("Fetch", "NOT_LEADER_OR_FOLLOWER"),
    ],
)
def test_a_consumer_survives_a_transient_error(ottla: EphemeralBroker, api: str, code: str) -> None:
    ottla.produce("t", "x")
    fault = ottla.faults.error(code, api=api, times=1)
    with closing(consumer(ottla, "readers", **{"retry.backoff.ms": 10})) as reader:
        reader.subscribe(["t"])
        assert poll(reader) == b"x"
    assert fault.struck == 1


def test_waiting_for_a_fault_that_never_matches_is_an_error(ottla: EphemeralBroker) -> None:
    fault = ottla.faults.drop(api="Produce", topic="t", times=3)
    with pytest.raises(
        TimeoutError, match=r"not 1 times: <drop before the effect for api='Produce', topic='t', struck 0"
    ):
        fault.wait(timeout_s=0.01)


def test_the_first_of_two_faults_applies_until_used_up(ottla: EphemeralBroker) -> None:
    first = ottla.faults.error("NOT_LEADER_OR_FOLLOWER", api="Produce", times=1)
    second = ottla.faults.error("REQUEST_TIMED_OUT", api="Produce", times=1)
    send(producer(ottla), "t", b"x")
    assert (first.struck, second.struck) == (1, 1)


def test_an_invalid_fault_is_refused(ottla: EphemeralBroker) -> None:
    with pytest.raises(ValueError, match="times must be at least 1"):
        ottla.faults.drop(times=0)
    with pytest.raises(
        ValueError, match="no such error code: NOT_LEADER_OR_FOLOWER; did you mean 'NOT_LEADER_OR_FOLLOWER'"
    ):
        ottla.faults.error("NOT_LEADER_OR_FOLOWER")
    with pytest.raises(ValueError, match="seconds must be 0 or more, got -1"):
        ottla.faults.delay(-1)
