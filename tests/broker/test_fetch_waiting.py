"""Fetches wait for more data, without polling and no longer than necessary."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.broker.handlers import fetch as handlers
from ottla.broker.interfaces.in_process_requests import LocalClient
from ottla.broker.requests.context import Context
from ottla.core.errors import ErrorCode
from ottla.wire.apis import FETCH
from ottla.wire.header import RequestHeader

from .fetching import (
    EACH_VERSION,
    LONG_MS,
    fetch,
    has_waits,
    in_the_loop,
    offsets,
    partition_of,
    request,
    wanted,
)
from .making import Topic, ask_until, batch, create_topic, delete_topic, produce
from .raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.wire.messages.fetch import FetchResponse


def test_a_fetch_waits_for_an_append_and_not_longer(broker: ottla.Broker, client: RawClient, made: Topic) -> None:
    latencies_ms = []
    with RawClient(broker.bootstrap_servers) as producer:
        for offset in range(20):
            sent = client.send(request(made, [wanted(offset)], FETCH.last, max_wait_ms=LONG_MS))
            ask_until(producer, lambda: has_waits(broker, made))
            begun = time.perf_counter()
            produce(producer, made.name, b"x")
            [answer] = client.receive(sent).responses
            latencies_ms.append((time.perf_counter() - begun) * 1000)
            assert offsets(answer.partitions[0]) == [offset]
            assert not has_waits(broker, made)
    # Produced, answered, woken and received. Polling would be slower: it would not poll every few milliseconds.
    assert sorted(latencies_ms)[5] < 5, latencies_ms


@EACH_VERSION
def test_a_fetch_without_new_data_is_answered_at_its_timeout(client: RawClient, filled: Topic, version: int) -> None:
    begun = time.monotonic()
    [data] = fetch(client, filled, wanted(10), version=version, max_wait_ms=20)
    assert 0.015 <= time.monotonic() - begun < 5
    assert (data.error_code, data.records) == (ErrorCode.NONE, b"")


def test_a_fetch_waits_for_min_bytes_over_all_its_partitions(
    broker: ottla.Broker, client: RawClient, made: Topic
) -> None:
    produce(client, made.name, bytes(1000))
    parts = [wanted(partition=index) for index in range(3)]
    sent = client.send(request(made, parts, FETCH.last, max_wait_ms=LONG_MS, min_bytes=4000))
    with RawClient(broker.bootstrap_servers) as producer:
        ask_until(producer, lambda: has_waits(broker, made))
        for partition in (1, 2):
            produce(producer, made.name, bytes(1000), partition=partition)
            assert has_waits(broker, made)
        produce(producer, made.name, bytes(1000), partition=2)
    [answer] = client.receive(sent).responses
    assert [len(offsets(data)) for data in answer.partitions] == [1, 1, 2]


@pytest.mark.parametrize("min_bytes", [0, -1])
def test_a_fetch_with_min_bytes_zero_does_not_wait(client: RawClient, filled: Topic, min_bytes: int) -> None:
    [data] = fetch(client, filled, wanted(10), min_bytes=min_bytes, max_wait_ms=LONG_MS)
    assert data.records == b""


@pytest.mark.parametrize("max_wait_ms", [0, -1, -(2**31)])
def test_a_fetch_with_max_wait_zero_does_not_wait(client: RawClient, filled: Topic, max_wait_ms: int) -> None:
    [data] = fetch(client, filled, wanted(10), max_wait_ms=max_wait_ms)
    assert data.records == b""


def test_an_append_between_reading_and_waiting_is_not_missed(
    broker: ottla.Broker, client: RawClient, made: Topic
) -> None:
    """The record is appended after the fetch has read and before its task starts to wait."""
    partition = partition_of(broker, made)
    header = RequestHeader(FETCH, FETCH.last, 1, None, 0)
    asked = request(made, [wanted()], FETCH.last, max_wait_ms=LONG_MS)
    records = bytearray(batch(b"x"))

    async def fetch_and_append_in_one_turn() -> FetchResponse:
        waiting = handlers.fetch(broker.broker, asked, Context(header, LocalClient(broker.broker, "test", ("", 0))))
        assert asyncio.iscoroutine(waiting)
        partition.append(records)
        return await asyncio.wait_for(waiting, 5)

    produce(client, made.name, b"y", partition=1)
    assert offsets(in_the_loop(broker, fetch_and_append_in_one_turn()).responses[0].partitions[0]) == [0]


def test_a_wait_that_is_never_awaited_is_removed(broker: ottla.Broker, made: Topic, client: RawClient) -> None:
    with RawClient(broker.bootstrap_servers) as leaving:
        leaving.send(request(made, [wanted()], FETCH.last, max_wait_ms=LONG_MS))
        ask_until(client, lambda: has_waits(broker, made))
    ask_until(client, lambda: not has_waits(broker, made))
    assert broker.broker.listener.counts["failed"] == 0


def test_deleting_a_topic_ends_its_waiting_fetches(broker: ottla.Broker, client: RawClient, made: Topic) -> None:
    with RawClient(broker.bootstrap_servers) as by_name, RawClient(broker.bootstrap_servers) as by_id:
        waiting = [
            (each, each.send(request(made, [wanted()], version, max_wait_ms=LONG_MS), version))
            for each, version in ((by_name, 12), (by_id, 13))
        ]
        ask_until(client, lambda: len(broker.broker.topics.by_name[made.name].partitions[0].waits) == 2)
        delete_topic(client, made.name)
        codes = [each.receive(sent).responses[0].partitions[0].error_code for each, sent in waiting]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_stopping_broker_answers_waiting_fetches_at_once(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker:
        client, other = RawClient(broker.bootstrap_servers), RawClient(broker.bootstrap_servers)
        topic = Topic("t", create_topic(client, "t"))
        sent = client.send(request(topic, [wanted()], FETCH.last, max_wait_ms=LONG_MS))
        ask_until(other, lambda: has_waits(broker, topic))
        begun = time.monotonic()
    assert time.monotonic() - begun < 3
    [answer] = client.receive(sent).responses
    assert answer.partitions[0].error_code == ErrorCode.NONE
    client.close()
    other.close()


def test_many_waiting_fetches_are_all_woken(broker: ottla.Broker, client: RawClient, made: Topic) -> None:
    waiting = [RawClient(broker.bootstrap_servers) for _ in range(50)]
    sent = [each.send(request(made, [wanted()], FETCH.last, max_wait_ms=LONG_MS)) for each in waiting]
    ask_until(client, lambda: len(broker.broker.topics.by_name[made.name].partitions[0].waits) == 50)
    produce(client, made.name, b"for all")
    for each, fetched in zip(waiting, sent, strict=True):
        assert offsets(each.receive(fetched).responses[0].partitions[0]) == [0]
        each.close()


def test_with_flush_ack_a_fetch_also_waits_for_min_bytes(durable: ottla.Broker) -> None:
    with RawClient(durable.bootstrap_servers) as client, RawClient(durable.bootstrap_servers) as producer:
        topic = Topic("t", create_topic(client, "t"))
        sent = client.send(request(topic, [wanted()], FETCH.last, max_wait_ms=LONG_MS, min_bytes=3000))
        for count in range(1, 4):
            ask_until(producer, lambda: has_waits(durable, topic))
            produce(producer, "t", bytes(1000))
            assert durable.broker.topics.partition("t", 0).high_watermark == count
        assert offsets(client.receive(sent).responses[0].partitions[0]) == [0, 1, 2]
