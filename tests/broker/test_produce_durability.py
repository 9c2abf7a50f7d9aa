"""With flush = "ack" a produce is acknowledged only after fsync."""

from __future__ import annotations

import os
import select
import threading
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ErrorCode
from ottla.wire.apis import PRODUCE
from ottla.wire.messages.api_versions import ApiVersionsRequest

from .making import Topic, batch, create_topic, fetch, values_in
from .producing import EACH_VERSION, numbered, produce, request, send
from .raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    import ottla


class Disk:
    """An os.fsync that tests can block or make fail."""

    def __init__(self) -> None:
        self.synced = 0
        self.error: OSError | None = None
        self._real = os.fsync
        self._gate = threading.Event()
        self._gate.set()

    def fsync(self, fd: int) -> None:
        self._gate.wait(5)
        self._gate.set()
        self.synced += 1
        if self.error is not None:
            raise self.error
        self._real(fd)

    def hold(self) -> None:
        self._gate.clear()

    def release(self) -> None:
        self._gate.set()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(os, "fsync", disk.fsync)
    yield disk
    disk.release()


def has_answer(client: RawClient) -> bool:
    return bool(select.select([client.socket], [], [], 0)[0])


@EACH_VERSION
def test_a_produce_is_answered_and_its_records_become_visible_only_after_fsync(
    disk: Disk, durable: ottla.Broker, version: int
) -> None:
    with RawClient(durable.bootstrap_servers) as producer, RawClient(durable.bootstrap_servers) as consumer:
        topic = Topic("t", create_topic(producer, "t", partitions=2))
        # Their folders are created on first use, which also syncs.
        assert values_in(consumer, "t") == values_in(consumer, "t", partition=1) == []
        disk.hold()
        sent = producer.send(request(topic, {0: batch(b"a"), 1: batch(b"b")}, version), version)
        # The event loop is not blocked meanwhile.
        for _ in range(5):
            assert fetch(consumer, "t").high_watermark == 0
            assert values_in(consumer, "t") == []
        assert not has_answer(producer)

        disk.release()
        [answer] = producer.receive(sent).responses
        assert [result.error_code for result in answer.partition_responses] == [ErrorCode.NONE] * 2
        assert values_in(consumer, "t") == [b"a"]
        assert values_in(consumer, "t", partition=1) == [b"b"]


def test_one_fsync_serves_all_waiting_producers(disk: Disk, durable: ottla.Broker) -> None:
    with RawClient(durable.bootstrap_servers) as client:
        topic = Topic("t", create_topic(client, "t"))
        assert send(client, topic, batch(b"first")).error_code == ErrorCode.NONE
        producers = [RawClient(durable.bootstrap_servers) for _ in range(20)]
        disk.hold()
        before = disk.synced
        sent = [producer.send(request(topic, {0: batch(b"x")}, PRODUCE.last)) for producer in producers]
        while fetch(client, "t").high_watermark < 1 or durable.broker.topics.partition("t", 0).log.next_offset < 21:
            pass
        disk.release()
        for producer, each in zip(producers, sent, strict=True):
            [answer] = producer.receive(each).responses
            assert answer.partition_responses[0].error_code == ErrorCode.NONE
            producer.close()
        assert disk.synced - before <= 4


def test_a_failed_fsync_is_a_storage_error_for_waiting_and_later_producers(disk: Disk, durable: ottla.Broker) -> None:
    with RawClient(durable.bootstrap_servers) as client, RawClient(durable.bootstrap_servers) as another:
        topic = Topic("t", create_topic(client, "t", partitions=2))
        assert produce(client, topic, {0: batch(b"good"), 1: batch(b"good")})[0].error_code == ErrorCode.NONE
        disk.error = OSError(5, "Input/output error")
        disk.hold()
        sent = [each.send(request(topic, {0: batch(b"lost")}, PRODUCE.last)) for each in (client, another)]
        disk.release()
        for each, waiting in zip((client, another), sent, strict=True):
            [answer] = each.receive(waiting).responses
            assert answer.partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert answer.partition_responses[0].base_offset == -1
        disk.error = None
        # The error stays: the kernel may have dropped the pages. The other partition still works.
        results = produce(client, topic, {0: batch(b"lost"), 1: batch(b"more")})
        assert results[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert results[1].error_code == ErrorCode.NONE
        assert values_in(client, "t", partition=1) == [b"good", b"more"]


def test_a_duplicate_is_answered_only_after_its_original_is_synced(disk: Disk, durable: ottla.Broker) -> None:
    with RawClient(durable.bootstrap_servers) as client, RawClient(durable.bootstrap_servers) as another:
        topic = Topic("t", create_topic(client, "t"))
        assert values_in(client, "t") == []
        disk.hold()
        sent = client.send(request(topic, {0: numbered(0)}, PRODUCE.last))
        while durable.broker.topics.partition("t", 0).log.next_offset < 1:
            pass
        again = another.send(request(topic, {0: numbered(0)}, PRODUCE.last))
        with RawClient(durable.bootstrap_servers) as third:
            for _ in range(5):
                third.ask(ApiVersionsRequest(), 0)
        assert not has_answer(client)
        assert not has_answer(another)
        disk.release()
        assert client.receive(sent).responses[0].partition_responses[0].base_offset == 0
        assert another.receive(again).responses[0].partition_responses[0].base_offset == 0


def test_a_producer_that_disconnects_during_fsync_does_not_affect_others(disk: Disk, durable: ottla.Broker) -> None:
    with RawClient(durable.bootstrap_servers) as client:
        topic = Topic("t", create_topic(client, "t"))
        assert values_in(client, "t") == []
        disk.hold()
        with RawClient(durable.bootstrap_servers) as leaving:
            leaving.send(request(topic, {0: batch(b"a")}, PRODUCE.last))
            while durable.broker.topics.partition("t", 0).log.next_offset < 1:
                pass
        sent = client.send(request(topic, {0: batch(b"b")}, PRODUCE.last))
        disk.release()
        assert client.receive(sent).responses[0].partition_responses[0].base_offset == 1
        assert values_in(client, "t") == [b"a", b"b"]
        assert durable.broker.listener.counts["failed"] == 0
