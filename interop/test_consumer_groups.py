"""Consumer groups of the new protocol (KIP-848) beside Apache Kafka: the same answers, and Java's own consumer."""

import asyncio
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ottla
from interop.consumer_group_plays import PARTITIONS, PLAYS, TOPIC, Play
from interop.group_members import JavaMember, LibrdkafkaMember, MixedGroup
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin
from interop.ottla_server import ottla_server
from interop.raw_client import RawClient, wait_for_coordinator
from interop.test_mixed_groups import RECORDS, produce

SETTINGS = {
    # As Ottla does it: assigned with the heartbeat that gave the reason.
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
}
QUICK = {
    "groups.consumer_min_heartbeat_interval_ms": "100",
    "groups.consumer_heartbeat_interval_ms": "100",
}


@pytest.fixture(scope="module")
def kafkas(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    with KafkaBroker(kafka, tmp_path_factory.mktemp("consumer-groups"), SETTINGS) as broker:
        Admin(broker.bootstrap).create(TOPIC, PARTITIONS)
        with RawClient(broker.bootstrap, "someone") as client:
            wait_for_coordinator(client)
            yield client


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    with ottla.Broker(tmp_path_factory.mktemp("ottla")) as broker:
        Admin(broker.bootstrap_servers).create(TOPIC, PARTITIONS)
        with RawClient(broker.bootstrap_servers, "someone") as client:
            yield client


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
def test_the_same_play_gets_the_same_answers(kafkas: RawClient, ours: RawClient, play: Callable[[Play], None]) -> None:
    # Another group each time: a play that is tried again must not meet what is left of the first.
    group_id = f"{play.__name__}-{uuid.uuid4().hex[:8]}"
    performances = [Play(client, group_id) for client in (kafkas, ours)]
    for each in performances:
        play(each)
    theirs, mine = (each.notes for each in performances)
    for number, (expected, got) in enumerate(zip(theirs, mine, strict=True)):
        assert got == expected, f"note {number}"


def test_java_and_librdkafka_share_a_consumer_group(kafka: KafkaArtifacts, tmp_path: Path) -> None:
    async def scenario(bootstrap: str) -> None:
        name = "shared"
        Admin(bootstrap).create(name, 6)
        async with MixedGroup(bootstrap, name, "consumer") as group:
            java = await group.join(JavaMember(group, kafka, tmp_path))
            await group.settle(6)
            await group.join(LibrdkafkaMember(group))
            await group.join(LibrdkafkaMember(group))
            await group.settle(6)
            await produce(bootstrap, name)
            await group.until(lambda: len(group.received) >= RECORDS)
            assert set(group.received.values()) == {1}
            await group.leave(java)
            await group.settle(6)
            await produce(bootstrap, name)
            await group.until(lambda: len(group.received) >= 2 * RECORDS)

    with ottla_server(tmp_path, QUICK) as server:
        asyncio.run(scenario(server.bootstrap))
