"""Produce in every version: what is accepted, what is refused and as what, and that neighbours do not suffer."""

from __future__ import annotations

import os
import secrets
import select
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import cramjam
import pytest
from tests.records.making import CONTROL, LOG_APPEND_TIME, LZ4, TRANSACTIONAL, record
from tests.records.making import batch as any_batch

import ottla
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode, StorageError
from ottla.wire.apis import INIT_PRODUCER_ID, PRODUCE
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

from .making import batch, create_topic, delete_topic, fetch, values_in
from .raw_client import HungUpError, RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

VERSIONS = range(PRODUCE.first, PRODUCE.last + 1)
EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
BY_ID_SINCE = 13


class Topic(NamedTuple):
    name: str
    id: bytes


@pytest.fixture
def made(client: RawClient, name: str) -> Topic:
    """A topic with three partitions."""
    return Topic(name, create_topic(client, name, partitions=3))


def request(topic: Topic, records: Mapping[int, bytes | None], version: int, acks: int = -1) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=index, records=part) for index, part in records.items())
    named = (
        TopicProduceData(topic_id=topic.id, partition_data=data)
        if version >= BY_ID_SINCE
        else TopicProduceData(name=topic.name, partition_data=data)
    )
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=(named,))


def produce(
    client: RawClient, topic: Topic, records: Mapping[int, bytes | None], version: int = PRODUCE.last, acks: int = -1
) -> dict[int, PartitionProduceResponse]:
    [answer] = client.ask(request(topic, records, version, acks), version).responses
    assert (answer.name, answer.topic_id) == (("", topic.id) if version >= BY_ID_SINCE else (topic.name, bytes(16)))
    return {result.index: result for result in answer.partition_responses}


def send(
    client: RawClient, topic: Topic, records: bytes | None, version: int = PRODUCE.last
) -> PartitionProduceResponse:
    return produce(client, topic, {0: records}, version)[0]


# Appending


@EACH_VERSION
@pytest.mark.parametrize("acks", [1, -1])
def test_records_get_the_next_offsets(client: RawClient, made: Topic, version: int, acks: int) -> None:
    for expected in (0, 2):
        result = produce(client, made, {0: batch(b"a", b"b")}, version, acks)[0]
        assert (result.error_code, result.base_offset, result.log_append_time_ms) == (ErrorCode.NONE, expected, -1)
        assert result.log_start_offset == (0 if version >= 5 else -1)
        assert result.error_message is None
    assert values_in(client, made.name) == [b"a", b"b", b"a", b"b"]


@EACH_VERSION
def test_without_acks_there_is_no_answer_and_records_are_there_all_the_same(
    client: RawClient, made: Topic, version: int
) -> None:
    client.send(request(made, {0: batch(b"a"), 1: batch(b"b")}, version, acks=0), version)
    # The next answer is to the next request.
    assert client.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
    assert values_in(client, made.name) == [b"a"]
    assert values_in(client, made.name, partition=1) == [b"b"]


@EACH_VERSION
def test_without_acks_an_error_hangs_up(client: RawClient, broker: ottla.Broker, made: Topic, version: int) -> None:
    client.send(request(made, {0: batch(b"good"), 9: batch(b"lost")}, version, acks=0), version)
    with pytest.raises(HungUpError):
        client.receive_frame()
    with RawClient(broker.bootstrap_servers) as another:
        assert values_in(another, made.name) == [b"good"]


@EACH_VERSION
@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
def test_other_acks_are_refused_and_nothing_is_appended(
    client: RawClient, made: Topic, version: int, acks: int
) -> None:
    results = produce(client, made, {0: batch(b"a"), 1: batch(b"b")}, version, acks)
    assert [result.error_code for result in results.values()] == [ErrorCode.INVALID_REQUIRED_ACKS] * 2
    assert values_in(client, made.name) == []


@pytest.mark.parametrize("codec", range(5))
def test_compressed_batches_pass_through_as_they_came(client: RawClient, made: Topic, codec: int) -> None:
    values = [b"value %d" % number * 20 for number in range(100)]
    records = batch(*values, codec=codec)
    assert send(client, made, records).error_code == ErrorCode.NONE
    data = fetch(client, made.name)
    assert bytes(data.records or b"")[61:] == records[61:]
    assert values_in(client, made.name) == values


def test_the_time_of_the_append_is_told_where_the_topic_wants_it(client: RawClient, name: str) -> None:
    topic = Topic(name, create_topic(client, name, configs={"message.timestamp.type": "LogAppendTime"}))
    before_ms = time.time_ns() // 1_000_000
    result = send(client, topic, batch(b"a", timestamp_ms=5))
    assert before_ms <= result.log_append_time_ms <= time.time_ns() // 1_000_000


# Refusals: each of one partition, never of its neighbours

NOW = {"base_timestamp": 1_700_000_000_000, "max_timestamp": 1_700_000_000_000}
YEAR_3000 = 32_503_680_000_000

REFUSED: dict[str, tuple[bytes | None, ErrorCode]] = {
    "null": (None, ErrorCode.INVALID_RECORD),
    "empty": (b"", ErrorCode.INVALID_RECORD),
    "garbage": (b"\xff" * 100, ErrorCode.CORRUPT_MESSAGE),
    "short": (bytes(any_batch()[:60]), ErrorCode.CORRUPT_MESSAGE),
    "half": (bytes(any_batch(record(value=b"x" * 100))[:-50]), ErrorCode.CORRUPT_MESSAGE),
    "wrong-crc": (bytes(any_batch())[:-1] + b"\xaa", ErrorCode.CORRUPT_MESSAGE),
    "wrong-length": (bytes(any_batch(batch_length=1000)), ErrorCode.CORRUPT_MESSAGE),
    "negative-length": (bytes(any_batch(batch_length=-1)), ErrorCode.CORRUPT_MESSAGE),
    "short-length": (bytes(any_batch(batch_length=48)), ErrorCode.CORRUPT_MESSAGE),
    "magic-0": (bytes(any_batch(magic=0)), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    "magic-1": (bytes(any_batch(magic=1)), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    "magic-3": (bytes(any_batch(magic=3)), ErrorCode.CORRUPT_MESSAGE),
    "no-records": (bytes(any_batch(b"", 0)), ErrorCode.INVALID_RECORD),
    "wrong-count": (bytes(any_batch(record_count=5)), ErrorCode.INVALID_RECORD),
    "negative-count": (bytes(any_batch(record_count=-1)), ErrorCode.CORRUPT_MESSAGE),
    "two-billion-records": (
        bytes(any_batch(record_count=2**31 - 1, last_offset_delta=2**31 - 2)),
        ErrorCode.INVALID_RECORD,
    ),
    "offsets-that-do-not-add-up": (bytes(any_batch(last_offset_delta=7)), ErrorCode.INVALID_RECORD),
    "negative-delta": (bytes(any_batch(last_offset_delta=-1)), ErrorCode.CORRUPT_MESSAGE),
    "unknown-codec": (bytes(any_batch(attributes=7)), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "control": (bytes(any_batch(attributes=CONTROL)), ErrorCode.INVALID_RECORD),
    "log-append-time": (bytes(any_batch(attributes=LOG_APPEND_TIME)), ErrorCode.INVALID_TIMESTAMP),
    "transactional": (
        bytes(any_batch(attributes=TRANSACTIONAL, producer_id=5, producer_epoch=0, base_sequence=0)),
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    "producer-without-epoch": (bytes(any_batch(producer_id=5)), ErrorCode.INVALID_RECORD),
    "far-future": (bytes(any_batch(base_timestamp=YEAR_3000, max_timestamp=YEAR_3000)), ErrorCode.INVALID_TIMESTAMP),
    "two-batches": (bytes(any_batch() * 2), ErrorCode.INVALID_RECORD),
    "trailing-bytes": (bytes(any_batch()) + b"x", ErrorCode.INVALID_RECORD),
    "too-large": (batch(bytes(1_100_000)), ErrorCode.MESSAGE_TOO_LARGE),
    "linked-lz4-blocks": (
        bytes(any_batch(bytes(cramjam.lz4.compress(record())), attributes=LZ4)),
        ErrorCode.CORRUPT_MESSAGE,
    ),
}


@pytest.fixture(scope="module")
def refusing(broker: ottla.Broker) -> Topic:
    with RawClient(broker.bootstrap_servers) as client:
        return Topic("refusing", create_topic(client, "refusing", partitions=3))


@EACH_VERSION
@pytest.mark.parametrize(("records", "code"), REFUSED.values(), ids=REFUSED)
def test_a_bad_batch_is_refused_and_its_neighbours_are_not(
    client: RawClient, refusing: Topic, version: int, records: bytes | None, code: ErrorCode
) -> None:
    results = produce(client, refusing, {0: batch(b"before"), 1: records, 2: batch(b"after")}, version)
    assert [results[index].error_code for index in range(3)] == [ErrorCode.NONE, code, ErrorCode.NONE]
    assert results[1].base_offset == -1
    assert results[0].base_offset == results[2].base_offset >= 0
    if version >= 8:
        assert results[1].error_message
    assert fetch(client, refusing.name, partition=1).high_watermark == 0


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_a_topic_that_does_not_exist_is_refused_and_not_created(client: RawClient, name: str, version: int) -> None:
    for _ in range(2):
        result = send(client, Topic(name, b""), batch(b"a"), version)
        assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_id_that_does_not_exist_is_refused(client: RawClient, made: Topic) -> None:
    result = send(client, Topic("", secrets.token_bytes(16)), batch(b"a"))
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert send(client, Topic("", bytes(16)), batch(b"a")).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    delete_topic(client, made.name)
    assert send(client, made, batch(b"a")).error_code == ErrorCode.UNKNOWN_TOPIC_ID


@EACH_VERSION
@pytest.mark.parametrize("partition", [3, -1, 2**31 - 1, -(2**31)])
def test_a_partition_that_does_not_exist_is_refused(
    client: RawClient, refusing: Topic, version: int, partition: int
) -> None:
    results = produce(client, refusing, {partition: batch(b"a"), 0: batch(b"b")}, version)
    assert results[partition].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert results[0].error_code == ErrorCode.NONE


@EACH_VERSION
def test_clients_do_not_write_to_internal_topics(client: RawClient, version: int) -> None:
    asked = MetadataRequest(topics=(MetadataRequestTopic(name="__consumer_offsets"),))
    [offsets] = client.ask(asked).topics
    assert offsets.is_internal
    result = send(client, Topic("__consumer_offsets", offsets.topic_id), batch(b"a"), version)
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@EACH_VERSION
def test_a_request_without_topics_or_partitions_is_answered(client: RawClient, made: Topic, version: int) -> None:
    assert client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=()), version).responses == ()
    [answer] = client.ask(request(made, {}, version), version).responses
    assert answer.partition_responses == ()


def test_the_largest_batch_is_a_setting_of_the_topic(client: RawClient, name: str) -> None:
    topic = Topic(name, create_topic(client, name, configs={"max.message.bytes": "500"}))
    assert send(client, topic, batch(bytes(300))).error_code == ErrorCode.NONE
    assert send(client, topic, batch(bytes(500))).error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("acks", [1, -1])
def test_no_more_replicas_can_be_asked_for_than_there_are(client: RawClient, name: str, acks: int) -> None:
    # As in Kafka 4 (Partition.effectiveMinIsr): settings of a large cluster work on a small one.
    topic = Topic(name, create_topic(client, name, configs={"min.insync.replicas": "2"}))
    assert produce(client, topic, {0: batch(b"a")}, acks=acks)[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("timestamp", [0, -1, 1])
def test_timestamps_far_in_the_past_are_accepted(client: RawClient, made: Topic, timestamp: int) -> None:
    records = bytes(any_batch(base_timestamp=timestamp, max_timestamp=timestamp))
    assert send(client, made, records).error_code == ErrorCode.NONE


def test_one_partition_twice_in_a_request_is_appended_twice(client: RawClient, made: Topic) -> None:
    data = tuple(PartitionProduceData(index=0, records=batch(value)) for value in (b"a", b"b"))
    topic = TopicProduceData(topic_id=made.id, partition_data=data)
    [answer] = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(topic,))).responses
    assert [result.base_offset for result in answer.partition_responses] == [0, 1]


# Idempotent producers


def numbered(sequence: int, *, count: int = 1, producer: int = 77, epoch: int = 0) -> bytes:
    payload = b"".join(record(offset_delta=delta) for delta in range(count))
    return bytes(any_batch(payload, count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, **NOW))


@EACH_VERSION
def test_a_repeated_batch_is_answered_with_the_offset_of_the_original(
    client: RawClient, made: Topic, version: int
) -> None:
    offsets = [send(client, made, numbered(sequence, count=2), version).base_offset for sequence in range(0, 10, 2)]
    assert offsets == [0, 2, 4, 6, 8]
    for sequence in range(0, 10, 2):
        again = send(client, made, numbered(sequence, count=2), version)
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, sequence)
    assert fetch(client, made.name).high_watermark == 10


def test_a_gap_in_the_sequence_is_refused_and_can_be_filled(client: RawClient, made: Topic) -> None:
    assert send(client, made, numbered(0)).error_code == ErrorCode.NONE
    assert send(client, made, numbered(2)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, made, numbered(1)).error_code == ErrorCode.NONE
    assert send(client, made, numbered(2)).error_code == ErrorCode.NONE


def test_a_duplicate_that_is_too_old_to_be_remembered_is_out_of_order(client: RawClient, made: Topic) -> None:
    for sequence in range(6):
        send(client, made, numbered(sequence))
    assert send(client, made, numbered(0)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_anew(client: RawClient, made: Topic) -> None:
    assert send(client, made, numbered(0, epoch=3)).error_code == ErrorCode.NONE
    assert send(client, made, numbered(1, epoch=2)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(client, made, numbered(1, epoch=4)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, made, numbered(0, epoch=4)).error_code == ErrorCode.NONE


def test_sequence_numbers_go_on_from_zero_after_the_highest(client: RawClient, made: Topic) -> None:
    assert send(client, made, numbered(2**31 - 2, count=3)).error_code == ErrorCode.NONE
    assert send(client, made, numbered(1)).error_code == ErrorCode.NONE
    assert send(client, made, numbered(2**31 - 2, count=3)).base_offset == 0


def test_producers_and_partitions_are_numbered_each_by_itself(client: RawClient, made: Topic) -> None:
    for partition in range(3):
        for producer in (1, 2):
            result = produce(client, made, {partition: numbered(0, producer=producer)})[partition]
            assert result.error_code == ErrorCode.NONE
    assert fetch(client, made.name, partition=2).high_watermark == 2


@pytest.mark.parametrize("version", range(INIT_PRODUCER_ID.first, INIT_PRODUCER_ID.last + 1))
def test_each_producer_gets_an_id_of_its_own(client: RawClient, version: int) -> None:
    asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    answers = [client.ask(asked, version) for _ in range(3)]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    assert {answer.producer_epoch for answer in answers} == {0}
    assert len({answer.producer_id for answer in answers}) == 3


def test_ids_are_not_given_out_again_after_a_restart(tmp_path: Path) -> None:
    asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    seen = set()
    for _ in range(3):
        with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
            seen |= {client.ask(asked).producer_id for _ in range(3)}
    assert len(seen) == 9


@pytest.mark.parametrize("version", range(INIT_PRODUCER_ID.first, INIT_PRODUCER_ID.last + 1))
def test_an_empty_transactional_id_is_an_invalid_request(client: RawClient, version: int) -> None:
    answer = client.ask(InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000), version)
    assert (answer.error_code, answer.producer_id) == (ErrorCode.INVALID_REQUEST, -1)


def test_a_producer_gets_no_id_from_a_disk_that_refuses(
    client: RawClient, broker: ottla.Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise StorageError("no space left")

    monkeypatch.setattr(broker.broker.producer_ids, "next", refuse)
    answer = client.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
    assert (answer.error_code, answer.producer_id) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


# Acknowledged only when it is on the disk


class Disk:
    """os.fsync that can be held up, and can fail."""

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


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[ottla.Broker]:
    settings = Settings()
    settings = settings._replace(net=replace(settings.net, port=0), log=replace(settings.log, flush="ack"))
    with ottla.Broker(tmp_path, settings) as broker:
        yield broker


def has_answer(client: RawClient) -> bool:
    return bool(select.select([client.socket], [], [], 0)[0])


@EACH_VERSION
def test_a_produce_is_answered_and_its_records_are_seen_only_once_they_are_synced(
    disk: Disk, durable: ottla.Broker, version: int
) -> None:
    with RawClient(durable.bootstrap_servers) as producer, RawClient(durable.bootstrap_servers) as consumer:
        topic = Topic("t", create_topic(producer, "t", partitions=2))
        # Their folders are made when they are first needed, which syncs, too.
        assert values_in(consumer, "t") == values_in(consumer, "t", partition=1) == []
        disk.hold()
        sent = producer.send(request(topic, {0: batch(b"a"), 1: batch(b"b")}, version), version)
        # Meanwhile the loop is not held up.
        for _ in range(5):
            assert fetch(consumer, "t").high_watermark == 0
            assert values_in(consumer, "t") == []
        assert not has_answer(producer)

        disk.release()
        [answer] = producer.receive(sent).responses
        assert [result.error_code for result in answer.partition_responses] == [ErrorCode.NONE] * 2
        assert values_in(consumer, "t") == [b"a"]
        assert values_in(consumer, "t", partition=1) == [b"b"]


def test_one_sync_serves_everybody_who_waits(disk: Disk, durable: ottla.Broker) -> None:
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


def test_a_failing_sync_is_a_storage_error_for_all_who_wait_and_all_who_come(disk: Disk, durable: ottla.Broker) -> None:
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
        # It stays so: the kernel may have dropped the pages. The other partition goes on.
        results = produce(client, topic, {0: batch(b"lost"), 1: batch(b"more")})
        assert results[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert results[1].error_code == ErrorCode.NONE
        assert values_in(client, "t", partition=1) == [b"good", b"more"]


def test_a_duplicate_is_answered_only_once_its_original_is_synced(disk: Disk, durable: ottla.Broker) -> None:
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


def test_a_producer_that_goes_away_while_it_waits_for_the_disk_harms_nobody(disk: Disk, durable: ottla.Broker) -> None:
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
