"""Transactions of Ottla's client with Apache Kafka, before and since KIP-890."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.client.producer.reading import values

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from ottla.client import Client
from ottla.client.errors import ProducerFenced, RecordTooLarge, TransactionFailed
from ottla.client.group.interface import Committed, GroupProgress
from ottla.core.ids import TopicPartition


@pytest.fixture(scope="module", params=[2, 0], ids="transaction.version={}".format)
def broker(
    request: pytest.FixtureRequest, kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaBroker]:
    level = f"transaction.version={request.param}"
    folder = tmp_path_factory.mktemp("kafka-transactions")
    with KafkaBroker(kafka, folder, format_options=["--feature", level]) as broker:
        yield broker


def test_only_committed_records_and_offsets_are_visible(broker: KafkaBroker) -> None:
    async def scenario() -> None:
        async with Client(broker.bootstrap) as client:
            await client.admin.create_topic("t", partitions=2, configs={"max.message.bytes": "1000"})
            async with client.producer(transactional_id="id") as producer:
                for number in range(6):
                    if number % 3 == 1:
                        with pytest.raises(TransactionFailed) as failed:
                            async with producer.transaction():
                                await producer.send("t", bytes(3000), partition=number % 2)
                        assert isinstance(failed.value.__cause__, RecordTooLarge)
                        continue
                    async with producer.transaction():
                        await producer.send("t", b"%d" % number, partition=number % 2)
                        await producer.send_offsets(GroupProgress("g", {TopicPartition("t", 0): Committed(number)}))
            async with client.consumer("t", group="g") as consumer:  # which waits for what is being committed
                assert (await consumer.committed(TopicPartition("t", 0)))[TopicPartition("t", 0)].offset == 5

    asyncio.run(scenario())
    assert values(broker.bootstrap, "t", 0) == [b"0", b"2"]
    assert values(broker.bootstrap, "t", 1) == [b"3", b"5"]


def test_a_zombie_producer_is_fenced_and_leaves_no_records(broker: KafkaBroker) -> None:
    async def scenario() -> None:
        async with Client(broker.bootstrap) as client, client.producer(transactional_id="taken") as zombie:
            await client.admin.create_topic("taken")
            with pytest.raises(ProducerFenced):  # noqa: PT012
                async with zombie.transaction():
                    await (await zombie.send("taken", b"zombie"))
                    async with client.producer(transactional_id="taken") as successor, successor.transaction():
                        await successor.send("taken", b"good")

    asyncio.run(scenario())
    assert values(broker.bootstrap, "taken") == [b"good"]
