"""Ottla's producer with Apache Kafka, verified by librdkafka."""

import asyncio
from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.client.producer.reading import read_all, values

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from ottla.client import Client
from ottla.client.admin.topics import NewTopic
from ottla.client.config import Acks, CompressionName
from ottla.client.errors import BrokerError, RecordTooLarge
from ottla.client.producer.accumulator import Delivery
from ottla.client.producer.delivery import RecordMetadata
from ottla.core.errors import ErrorCode
from ottla.records.murmur2 import partition_of


@pytest.fixture(scope="module")
def broker(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(kafka, tmp_path_factory.mktemp("kafka-producing")) as broker:
        yield broker


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_accepted(broker: KafkaBroker, compression: CompressionName) -> None:
    sent = [b"record %d " % i * 20 for i in range(5000)]

    async def scenario() -> None:
        async with Client(broker.bootstrap) as client:
            await client.admin.create_topic(compression)
            async with client.producer(compression=compression, producer_max_bytes=64 * 1024) as producer:
                for value in sent:
                    await producer.send(compression, value)

    asyncio.run(scenario())

    assert values(broker.bootstrap, compression) == sent


@pytest.mark.parametrize(("acks", "idempotence"), [(0, False), (1, False), ("all", False), ("all", True)])
def test_every_acks_setting_keeps_the_order(broker: KafkaBroker, acks: Acks, idempotence: bool) -> None:
    topic = f"acks-{acks}-{idempotence}"
    sent = [b"%d" % i * 100 for i in range(5000)]

    async def scenario() -> list[int]:
        async with Client(broker.bootstrap) as client:
            await client.admin.create_topic(topic)
            options = {"producer_max_bytes": 16 * 1024, "producer_queue_buffers": 8}
            async with client.producer(acks=acks, idempotence=idempotence, **options) as producer:
                deliveries = [await producer.send(topic, value) for value in sent]
                places = await asyncio.gather(*deliveries)
                # With acks=0 this alone says that what went before has arrived.
                await client.admin.describe_topic(topic)
                return [place.offset for place in places]

    offsets = asyncio.run(scenario())

    assert offsets == ([-1] * 5000 if acks == 0 else list(range(5000)))
    if acks != 0:
        assert values(broker.bootstrap, topic) == sent


def test_a_record_refused_by_a_compacted_topic_gets_its_own_error(broker: KafkaBroker) -> None:
    async def scenario() -> tuple[BaseException | RecordMetadata, ...]:
        async with Client(broker.bootstrap) as client:
            await client.admin.create_topic("compacted", configs={"cleanup.policy": "compact"})
            async with client.producer() as producer:
                deliveries = [
                    await producer.send("compacted", b"1", key=b"k"),
                    await producer.send("compacted", b"2"),
                ]
                errors = await asyncio.gather(*map(outcome, deliveries), return_exceptions=True)
                place = await (await producer.send("compacted", b"3", key=b"k"))
                return (*errors, place)

    innocent, guilty, place = asyncio.run(scenario())

    assert isinstance(innocent, BrokerError)
    assert isinstance(guilty, BrokerError)
    assert innocent.code is guilty.code is ErrorCode.INVALID_RECORD
    assert "without key" in str(guilty)
    assert str(innocent) != str(guilty)
    assert isinstance(place, RecordMetadata)
    assert place.offset == 0


def test_batches_larger_than_the_topic_takes_are_split_and_single_records_refused(broker: KafkaBroker) -> None:
    sent = [b"%03d" % i * 30 for i in range(500)]

    async def scenario() -> list[int]:
        async with Client(broker.bootstrap) as client:
            await client.admin.create_topic("narrow", configs={"max.message.bytes": "2000"})
            async with client.producer(producer_max_bytes=16 * 1024) as producer:
                deliveries = [await producer.send("narrow", value) for value in sent]
                with pytest.raises(RecordTooLarge):
                    await (await producer.send("narrow", b"x" * 3000))
                return [place.offset for place in await asyncio.gather(*deliveries)]

    assert asyncio.run(scenario()) == list(range(500))
    assert values(broker.bootstrap, "narrow") == sent


def test_log_append_time_is_the_brokers(broker: KafkaBroker) -> None:
    async def scenario() -> RecordMetadata:
        async with Client(broker.bootstrap) as client:
            await client.admin.create_topic("stamped", configs={"message.timestamp.type": "LogAppendTime"})
            async with client.producer() as producer:
                return await (await producer.send("stamped", b"v", timestamp_ms=1))

    place = asyncio.run(scenario())

    assert place.timestamp > 1
    assert [record.timestamp for record in read_all(broker.bootstrap, "stamped")] == [place.timestamp]


def test_a_table_is_stored_by_its_keys(broker: KafkaBroker) -> None:
    keys = [b"%d" % (i % 37) for i in range(10_000)]
    table = pa.table({"value": [b"%d" % i for i in range(10_000)], "key": keys})

    async def scenario() -> int:
        async with Client(broker.bootstrap) as client:
            await client.admin.create_topics([NewTopic(name="table", partitions=5)])
            async with client.producer(compression="lz4", producer_max_bytes=8192) as producer:
                return sum(batch.count for batch in await (await producer.send_arrow("table", table)))

    assert asyncio.run(scenario()) == 10_000
    for partition in range(5):
        expected = [b"%d" % i for i in range(10_000) if partition_of(keys[i], 5) == partition]
        assert values(broker.bootstrap, "table", partition) == expected


async def outcome(delivery: Delivery) -> RecordMetadata:
    return await delivery
