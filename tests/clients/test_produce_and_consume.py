"""Every client reads what every client writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from tests.broker.making import set_topic_config
from tests.broker.raw_client import RawClient

from ottla.core.errors import ErrorCode

from .adapters.base import PATIENCE_S, ConsumerOptions, ProducerOptions, Refused, values
from .conftest import CLIENTS
from .making import create_topic, receive

if TYPE_CHECKING:
    import ottla
    from ottla.core.ids import TopicPartition

    from .adapters.base import Client

KIB: Final = 1 << 10
MIB: Final = 1 << 20
LARGEST_BATCH: Final = 1_048_588
"""max.message.bytes, by default."""
ATTRIBUTES_AT: Final = 22
"""The lower byte of the attributes of a batch, which names the codec."""


def test_a_record_arrives_with_its_key_headers_and_timestamp(
    client: Client, servers: str, topic: str, at: TopicPartition
) -> None:
    headers = (("trace", b"\x00\xff"), ("trace", b"again"), ("empty", b""))
    with client.producer(servers) as producer, client.consumer(servers) as consumer:
        sent = producer.send(topic, b"value", b"key", headers, timestamp=1_700_000_000_123)
        producer.flush()
        consumer.assign(at)
        [received] = receive(consumer, 1)

    assert sent.result(PATIENCE_S) == (0, 0)
    assert received == (topic, 0, 0, 1_700_000_000_123, b"key", b"value", headers)


def test_null_and_empty_are_not_the_same(client: Client, servers: str, topic: str, at: TopicPartition) -> None:
    with client.producer(servers) as producer, client.consumer(servers) as consumer:
        producer.send(topic, None, b"deleted")
        producer.send(topic, b"", b"")
        producer.send(topic, b"no key", None)
        producer.flush()
        consumer.assign(at)
        received = receive(consumer, 3)

    assert [(record.key, record.value) for record in received] == [
        (b"deleted", None),
        (b"", b""),
        (None, b"no key"),
    ]


def test_records_of_a_partition_arrive_in_the_order_they_were_sent(client: Client, servers: str, name: str) -> None:
    create_topic(servers, name, partitions=3)
    with client.producer(servers, ProducerOptions(linger_ms=5)) as producer:
        for number in range(300):
            producer.send(name, b"%d" % number, partition=number % 3)
        producer.flush()
    with client.consumer(servers, options=ConsumerOptions(group=name)) as consumer:
        consumer.subscribe(name)
        received = receive(consumer, 300)

    for partition in range(3):
        of_one = [record for record in received if record.partition == partition]
        assert [int(record.value or b"") for record in of_one] == list(range(partition, 300, 3))
        assert [record.offset for record in of_one] == list(range(100))


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_records_arrive_with_any_acks(client: Client, acks: int, servers: str, topic: str, at: TopicPartition) -> None:
    with client.producer(servers, ProducerOptions(acks=acks)) as producer, client.consumer(servers) as consumer:
        for number in range(10):
            producer.send(topic, b"%d" % number)
        producer.flush()
        consumer.assign(at)
        assert values(receive(consumer, 10)) == [b"%d" % number for number in range(10)]


def test_an_idempotent_producer_writes_every_record_once(
    client: Client, servers: str, topic: str, at: TopicPartition
) -> None:
    options = ProducerOptions(is_idempotent=True, linger_ms=1)
    with client.producer(servers, options) as producer, client.consumer(servers) as consumer:
        sent = [producer.send(topic, b"%d" % number) for number in range(500)]
        producer.flush()
        consumer.assign(at)
        received = receive(consumer, 500)

    assert [future.result(PATIENCE_S).offset for future in sent] == list(range(500))
    assert values(received) == [b"%d" % number for number in range(500)]


@pytest.mark.parametrize(("codec", "code"), [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)])
@pytest.mark.parametrize("writer", CLIENTS, ids=lambda client: f"by-{client}")
def test_every_client_reads_every_codec_of_every_client(
    writer: Client, codec: str, code: int, broker: ottla.Broker, servers: str, topic: str, at: TopicPartition
) -> None:
    # Large enough for several blocks of each codec, small enough for one batch.
    sent = [b"%d " % number * 2000 for number in range(64)]
    options = ProducerOptions(compression=codec, linger_ms=20)
    with writer.producer(servers, options) as producer:
        for value in sent:
            producer.send(topic, value)
        producer.flush()

    log = broker.broker.data_dir.path / str(at) / f"{0:020}.log"
    assert log.read_bytes()[ATTRIBUTES_AT] & 0b111 == code
    for reader in CLIENTS:
        with reader.consumer(servers) as consumer:
            consumer.assign(at)
            assert values(receive(consumer, 64)) == sent, reader


def test_a_topic_with_its_own_codec_accepts_batches_of_every_client(
    client: Client, broker: ottla.Broker, servers: str, at: TopicPartition
) -> None:
    with RawClient(servers) as raw:
        set_topic_config(raw, at.topic, "compression.type", "zstd")
    sent = [b"%d " % number * 200 for number in range(100)]
    options = ProducerOptions(compression="gzip", is_idempotent=True, linger_ms=20)
    with client.producer(servers, options) as producer, client.consumer(servers) as consumer:
        acknowledged = [producer.send(at.topic, value) for value in sent]
        producer.flush()
        consumer.assign(at)
        assert values(receive(consumer, 100)) == sent

    assert [future.result(PATIENCE_S).offset for future in acknowledged] == list(range(100))
    log = broker.broker.data_dir.path / str(at) / f"{0:020}.log"
    assert log.read_bytes()[ATTRIBUTES_AT] & 0b111 == 4


def test_a_record_of_almost_one_mebibyte_passes_and_a_larger_one_is_refused(
    client: Client, servers: str, topic: str, at: TopicPartition
) -> None:
    # The batch around one record without key and headers takes 61 bytes, the record itself up to 12.
    largest = b"x" * (LARGEST_BATCH - 73)
    options = ProducerOptions(max_request_bytes=4 * MIB)
    with client.producer(servers, options) as producer, client.consumer(servers) as consumer:
        producer.place(topic, largest)
        too_large = producer.send(topic, largest + b"x" * KIB)
        producer.flush()
        after = producer.send(topic, b"after")
        producer.flush()
        consumer.assign(at)
        received = receive(consumer, 2)

    with pytest.raises(Refused) as refused:
        too_large.result(PATIENCE_S)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert after.result(PATIENCE_S).offset == 1
    assert values(received) == [largest, b"after"]


def test_a_record_larger_than_the_fetch_size_is_received(client: Client, servers: str, name: str) -> None:
    create_topic(servers, name, configs={"max.message.bytes": str(8 * MIB)})
    large = bytes(5 * MIB)
    options = ProducerOptions(max_request_bytes=8 * MIB)
    with (
        client.producer(servers, options) as producer,
        client.consumer(servers, ConsumerOptions(group=name)) as consumer,
    ):
        producer.place(name, large)
        consumer.subscribe(name)
        [received] = receive(consumer, 1)
    assert received.value == large


def test_log_append_time_replaces_the_clock_of_the_producer(client: Client, servers: str, name: str) -> None:
    create_topic(servers, name, configs={"message.timestamp.type": "LogAppendTime"})
    with client.producer(servers) as producer, client.consumer(servers, ConsumerOptions(group=name)) as consumer:
        producer.send(name, b"", timestamp=1_000)
        producer.flush()
        consumer.subscribe(name)
        [received] = receive(consumer, 1)
    assert received.timestamp > 1_700_000_000_000
