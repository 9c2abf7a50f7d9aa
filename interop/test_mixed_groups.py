"""Ottla's client, librdkafka and Java in one consumer group, with Apache Kafka and Ottla."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.group_members import JavaMember, LibrdkafkaMember, MixedGroup, OttlaMember
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin
from interop.ottla_server import OttlaServer
from ottla.client import Client

PARTITIONS = 6
RECORDS = 600


@pytest.fixture(scope="module")
def kafka_address(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with KafkaBroker(kafka, tmp_path_factory.mktemp("kafka-groups")) as broker:
        yield broker.bootstrap


@pytest.fixture(params=["kafka", "ottla"])
def bootstrap(request: pytest.FixtureRequest, kafka_address: str, ottla: OttlaServer) -> str:
    return kafka_address if request.param == "kafka" else ottla.bootstrap


async def produce(bootstrap: str, topic: str) -> None:
    async with Client(bootstrap) as client, client.producer() as producer:
        for number in range(RECORDS):
            await producer.send(topic, value=b"%d" % number, partition=number % PARTITIONS)


@pytest.mark.parametrize("leader", ["ottla", "java"])
@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_members_of_all_kinds_share_one_group(
    kafka: KafkaArtifacts, bootstrap: str, assignor: str, leader: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        name = f"mixed-{assignor}-{leader}"
        Admin(bootstrap).create(name, PARTITIONS)
        async with MixedGroup(bootstrap, name, assignor) as group:
            ours, java = OttlaMember(group), JavaMember(group, kafka, tmp_path)
            for member in (ours, java) if leader == "ottla" else (java, ours):
                await group.join(member)
                await group.settle(PARTITIONS)
            if assignor != "sticky":  # which librdkafka does not know
                await group.join(LibrdkafkaMember(group))
                await group.settle(PARTITIONS)
            await produce(bootstrap, name)
            await group.until(lambda: len(group.received) >= RECORDS)
            assert set(group.received.values()) == {1}

            # The leader leaves, so that another member has to compute the assignment.
            await group.leave(group.members[0])
            await group.settle(PARTITIONS)
            await group.join(OttlaMember(group))
            await group.settle(PARTITIONS)
            await produce(bootstrap, name)
            await group.until(lambda: len(group.received) >= 2 * RECORDS)

    asyncio.run(scenario())
