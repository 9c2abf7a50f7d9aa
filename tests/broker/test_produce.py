"""Produce in every version: accepted and refused batches, their error codes, and unaffected other partitions."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

import cramjam
import pytest
from tests.records.making import CONTROL, LOG_APPEND_TIME, LZ4, TRANSACTIONAL, record
from tests.records.making import batch as any_batch

from ottla.core.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

from .making import Topic, batch, create_topic, delete_topic, fetch, values_in
from .producing import EACH_VERSION, VERSIONS, produce, request, send
from .raw_client import HungUpError, RawClient

if TYPE_CHECKING:
    import ottla

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
def test_with_acks_0_there_is_no_response_but_the_records_are_appended(
    client: RawClient, made: Topic, version: int
) -> None:
    client.send(request(made, {0: batch(b"a"), 1: batch(b"b")}, version, acks=0), version)
    # The next response belongs to the next request.
    assert client.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
    assert values_in(client, made.name) == [b"a"]
    assert values_in(client, made.name, partition=1) == [b"b"]


@EACH_VERSION
def test_with_acks_0_an_error_closes_the_connection(
    client: RawClient, broker: ottla.Broker, made: Topic, version: int
) -> None:
    client.send(request(made, {0: batch(b"good"), 9: batch(b"lost")}, version, acks=0), version)
    with pytest.raises(HungUpError):
        client.receive_frame()
    with RawClient(broker.bootstrap_servers) as another:
        assert values_in(another, made.name) == [b"good"]


@EACH_VERSION
@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
def test_invalid_acks_are_refused_and_nothing_is_appended(
    client: RawClient, made: Topic, version: int, acks: int
) -> None:
    results = produce(client, made, {0: batch(b"a"), 1: batch(b"b")}, version, acks)
    assert [result.error_code for result in results.values()] == [ErrorCode.INVALID_REQUIRED_ACKS] * 2
    assert values_in(client, made.name) == []


@pytest.mark.parametrize("codec", range(5))
def test_compressed_batches_pass_through_unchanged(client: RawClient, made: Topic, codec: int) -> None:
    values = [b"value %d" % number * 20 for number in range(100)]
    records = batch(*values, codec=codec)
    assert send(client, made, records).error_code == ErrorCode.NONE
    data = fetch(client, made.name)
    assert bytes(data.records or b"")[61:] == records[61:]
    assert values_in(client, made.name) == values


def test_log_append_time_is_returned_if_the_topic_uses_it(client: RawClient, name: str) -> None:
    topic = Topic(name, create_topic(client, name, configs={"message.timestamp.type": "LogAppendTime"}))
    before_ms = time.time_ns() // 1_000_000
    result = send(client, topic, batch(b"a", timestamp_ms=5))
    assert before_ms <= result.log_append_time_ms <= time.time_ns() // 1_000_000


# Errors affect one partition, never the others

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
def test_a_bad_batch_is_refused_and_the_others_are_not(
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
def test_clients_cannot_write_to_internal_topics(client: RawClient, version: int) -> None:
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


def test_the_maximum_batch_size_is_a_topic_config(client: RawClient, name: str) -> None:
    topic = Topic(name, create_topic(client, name, configs={"max.message.bytes": "500"}))
    assert send(client, topic, batch(bytes(300))).error_code == ErrorCode.NONE
    assert send(client, topic, batch(bytes(500))).error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("acks", [1, -1])
def test_min_insync_replicas_is_capped_at_the_replication_factor(client: RawClient, name: str, acks: int) -> None:
    # As in Kafka 4 (Partition.effectiveMinIsr): settings of a large cluster work on a small one.
    topic = Topic(name, create_topic(client, name, configs={"min.insync.replicas": "2"}))
    assert produce(client, topic, {0: batch(b"a")}, acks=acks)[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("timestamp", [0, -1, 1])
def test_timestamps_far_in_the_past_are_accepted(client: RawClient, made: Topic, timestamp: int) -> None:
    records = bytes(any_batch(base_timestamp=timestamp, max_timestamp=timestamp))
    assert send(client, made, records).error_code == ErrorCode.NONE


def test_a_partition_named_twice_in_a_request_is_appended_to_twice(client: RawClient, made: Topic) -> None:
    data = tuple(PartitionProduceData(index=0, records=batch(value)) for value in (b"a", b"b"))
    topic = TopicProduceData(topic_id=made.id, partition_data=data)
    [answer] = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(topic,))).responses
    assert [result.base_offset for result in answer.partition_responses] == [0, 1]
