"""Ottla's client administers Apache Kafka."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from ottla.client import Client
from ottla.client.admin.admin import Admin
from ottla.client.admin.configs import ConfigResource, ConfigSource
from ottla.client.admin.offsets import CommittedOffset
from ottla.client.admin.requests import raise_if_error
from ottla.client.admin.topics import NewTopic
from ottla.client.errors import BrokerError, UnknownTopic
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition


@pytest.fixture(scope="module")
def broker(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(kafka, tmp_path_factory.mktemp("kafka-administered")) as broker:
        yield broker


@pytest.fixture
def name() -> str:
    """A topic and group name, new each time, so that a retried test does not find its leftovers."""
    return f"of-{uuid.uuid4()}"


@asynccontextmanager
async def administering(broker: KafkaBroker) -> AsyncIterator[tuple[Client, Admin]]:
    async with Client(broker.bootstrap) as client:
        yield client, client.admin


async def write(client: Client, topic: str, *timestamps: int) -> None:
    async with client.producer() as producer:
        for timestamp in timestamps:
            await producer.send(topic, value=b"v", partition=0, timestamp_ms=timestamp)


def test_topics(broker: KafkaBroker, name: str) -> None:
    async def scenario() -> None:
        async with administering(broker) as (client, admin):
            await admin.create_topic(name, partitions=2, configs={"retention.ms": "1000"})
            assert await client.partitions(name) == [0, 1]  # waits until the brokers know of it
            assert name in await admin.list_topics()
            outcomes = await admin.create_topics(
                [NewTopic(name=name), NewTopic(name="b/c"), NewTopic(name=f"{name}.e")]
            )
            assert {each: error and error.code for each, error in outcomes.items()} == {
                name: ErrorCode.TOPIC_ALREADY_EXISTS,
                "b/c": ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"{name}.e": None,
            }
            await admin.create_partitions(name, 3)
            with pytest.raises(BrokerError, match="INVALID_PARTITIONS"):
                await admin.create_partitions(name, 1)
            gone = await admin.delete_topics([f"{name}.e", "x"])
            assert gone[f"{name}.e"] is None
            assert isinstance(gone["x"], UnknownTopic)

    asyncio.run(scenario())


def test_settings(broker: KafkaBroker, name: str) -> None:
    async def scenario() -> None:
        async with administering(broker) as (client, admin):
            topic = ConfigResource.topic(name)
            await admin.create_topic(name, configs={"retention.ms": "1000"})
            await client.partitions(name)
            before = await admin.describe_configs(topic)
            assert before["retention.ms"].source is ConfigSource.TOPIC_CONFIG
            await admin.alter_configs(
                topic, {"segment.bytes": "2000000"}, delete=["retention.ms"], append={"cleanup.policy": "compact"}
            )
            after = await admin.describe_configs(topic)
            assert after["segment.bytes"].value == "2000000"
            assert after["retention.ms"].is_default
            assert after["cleanup.policy"].value == "delete,compact"
            with pytest.raises(BrokerError, match="INVALID_CONFIG"):
                await admin.alter_configs(topic, {"segment.bytes": "many"})
            [node_id] = client.router.view.brokers
            own = await admin.describe_configs(ConfigResource.broker(node_id), ["node.id"], with_documentation=True)
            assert own["node.id"].value == str(node_id)
            assert own["node.id"].documentation

    asyncio.run(scenario())


def test_offsets_and_records(broker: KafkaBroker, name: str) -> None:
    async def scenario() -> None:
        async with administering(broker) as (client, admin):
            await admin.create_topic(name, partitions=2)
            where, empty, absent = (TopicPartition(*each) for each in ((name, 0), (name, 1), ("nowhere", 0)))
            await write(client, name, 100, 200, 300)
            latest = await admin.latest_offsets([where, empty, absent])
            assert raise_if_error(latest[where]).offset == 3
            assert raise_if_error(latest[empty]).offset == 0
            assert isinstance(latest[absent], UnknownTopic)
            assert raise_if_error((await admin.offsets_at({where: 150}))[where]).offset == 1
            assert await admin.delete_records({where: 2}) == {where: 2}
            assert raise_if_error((await admin.earliest_offsets([where]))[where]).offset == 2

    asyncio.run(scenario())


def test_groups(broker: KafkaBroker, name: str) -> None:
    async def scenario() -> None:
        async with administering(broker) as (client, admin):
            await admin.create_topic(name, partitions=2)
            await write(client, name, 100)
            first, second = TopicPartition(name, 0), TopicPartition(name, 1)
            outcome = await admin.alter_group_offsets(name, {first: 0, second: CommittedOffset(5, metadata="by hand")})
            assert outcome == {first: None, second: None}
            assert (await admin.group_offsets(name))[second].metadata == "by hand"
            assert await admin.delete_group_offsets(name, [second]) == {second: None}
            assert list(await admin.group_offsets(name)) == [first]
            async with client.consumer(name, group=name, auto_commit=False) as consumer:
                assert len(await consumer.poll(timeout_ms=20_000)) == 1
                described = await admin.describe_group(name)
                assert described.state == "Stable"
                assert described.members[0].partitions == {first, second}
                with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
                    await admin.delete_group(name)
            assert name in [each.group for each in await admin.list_groups()]
            await admin.delete_group(name)
            with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
                await admin.describe_group(name)

    asyncio.run(scenario())


def test_the_cluster(broker: KafkaBroker) -> None:
    async def scenario() -> None:
        async with administering(broker) as (_, admin):
            described = await admin.describe_cluster()
            assert [f"{each.host}:{each.port}" for each in described.brokers] == [broker.bootstrap]
            assert described.controller_id == described.brokers[0].node_id

    asyncio.run(scenario())
