"""Faults in responses: delayed, truncated, corrupted, or from a former leader."""

from __future__ import annotations

import asyncio
from contextlib import closing
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CorruptRecordException
from confluent_kafka import TopicPartition
from tests.broker.raw_client import RawClient

from ottla.broker.interfaces.in_process_requests import LocalClient, Refused
from ottla.wire.messages.list_groups import ListGroupsRequest

from .clients import consumer, poll, producer, send, values

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from ottla.testing import EphemeralBroker


def reading(broker: EphemeralBroker, topic: str, **options: object) -> Consumer:
    """A consumer of the first partition, without a group's delays."""
    client = consumer(broker, "readers", **options)
    client.assign([TopicPartition(topic, 0, 0)])
    return client


def test_a_throttled_client_gets_throttle_time_and_is_not_served_meanwhile(ottla: EphemeralBroker) -> None:
    fault = ottla.faults.throttle(0.15, api="ListGroups", times=1)
    request = ListGroupsRequest(states_filter=(), types_filter=())
    with RawClient(ottla.bootstrap_servers) as client:
        began_s = monotonic()
        assert client.ask(request, version=4).throttle_time_ms == 150
        assert client.ask(request, version=4).throttle_time_ms == 0
        assert monotonic() - began_s >= 0.15
    assert fault.struck == 1


def test_a_throttled_producer_still_delivers(ottla: EphemeralBroker) -> None:
    told: list[int] = []
    client = producer(ottla, throttle_cb=lambda event: told.append(round(event.throttle_time * 1000)))
    fault = ottla.faults.throttle(0.02, api="Produce", times=1)
    send(client, "t", b"x")
    send(client, "t", b"y")
    client.poll(0)
    assert (fault.struck, told[:1], values(ottla, "t")) == (1, [20], [b"x", b"y"])


def test_a_truncated_response_closes_the_connection(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t")
    fault = ottla.faults.truncate(api="Produce", times=1)
    send(producer(ottla, **{"enable.idempotence": True, "reconnect.backoff.ms": 10}), "t", b"x")
    assert (fault.struck, values(ottla, "t")) == (1, [b"x"])
    assert len(ottla.requests.of(api="Produce")) == 2


def test_over_rest_a_dropped_connection_is_an_error(ottla: EphemeralBroker) -> None:
    ottla.faults.truncate(api="ListGroups")

    async def ask() -> None:
        other = LocalClient(ottla.broker, "another door", ("127.0.0.1", 0))
        await other.ask(ListGroupsRequest(states_filter=(), types_filter=()))

    with pytest.raises(Refused, match="dropped"):
        ottla.call(ask())


def test_a_corrupted_batch_is_detected_and_the_next_fetch_is_intact(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "x")
    fault = ottla.faults.corrupt(topic="t", times=1)

    async def read() -> None:
        options = {"auto_offset_reset": "earliest", "check_crcs": True}
        async with AIOKafkaConsumer("t", bootstrap_servers=ottla.bootstrap_servers, **options) as client:
            with pytest.raises(CorruptRecordException):
                await asyncio.wait_for(client.getone(), 20)
            assert (await asyncio.wait_for(client.getone(), 20)).value == b"x"

    asyncio.run(read())
    assert fault.struck == 1


def test_only_batches_of_the_selected_partition_are_corrupted(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t", partitions=2)
    ottla.produce("t", "x")
    fault = ottla.faults.corrupt(topic="t", partition=1)
    with closing(reading(ottla, "t", **{"check.crcs": True})) as client:
        assert poll(client) == b"x"
    assert fault.struck == 0


def test_clients_retry_until_a_lost_leader_is_back(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t", partitions=2)
    client = producer(ottla)
    fault = ottla.faults.lose_leadership("t", 0)
    client.produce("t", b"held up", partition=0)
    client.produce("t", b"goes on", partition=1)
    fault.wait(times=2)
    ottla.wait_for_records("t", 1)
    assert values(ottla, "t") == [b"goes on"]
    fault.remove()
    assert client.flush(20) == 0
    assert values(ottla, "t") == [b"held up", b"goes on"]


def test_a_consumer_waits_for_a_leader_too(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "x")
    fault = ottla.faults.lose_leadership("t", times=2)
    with closing(reading(ottla, "t", **{"retry.backoff.ms": 10})) as client:
        assert poll(client) == b"x"
    assert fault.struck == 2


def test_a_paused_broker_answers_nothing_and_serves_everything_when_resumed(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t")
    client = producer(ottla)
    with ottla.faults.pause() as fault:
        client.produce("t", b"x")
        client.poll(0)
        fault.wait()
        assert len(client) == 1
        assert ottla.records("t") == []
    assert client.flush(20) == 0
    assert values(ottla, "t") == [b"x"]


def test_a_broker_can_be_stopped_while_it_is_paused(ottla: EphemeralBroker) -> None:
    fault = ottla.faults.pause()
    client = producer(ottla)
    client.produce("t", b"x")
    client.poll(0)
    fault.wait()
    ottla.stop()
    assert list(ottla.faults) == []
