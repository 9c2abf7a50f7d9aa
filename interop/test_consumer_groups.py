"""Consumer groups of the new protocol (KIP-848): the same responses as Apache Kafka, and Java's consumer."""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

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
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

GROUPS = 60

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
def test_the_same_scenario_gets_the_same_responses(
    kafkas: RawClient, ours: RawClient, play: Callable[[Play], None]
) -> None:
    # Another group each time, so that a retry does not find leftovers.
    group_id = f"{play.__name__}-{uuid.uuid4().hex[:8]}"
    performances = [Play(client, group_id) for client in (kafkas, ours)]
    for each in performances:
        play(each)
    theirs, mine = (each.notes for each in performances)
    for number, (expected, got) in enumerate(zip(theirs, mine, strict=True)):
        assert got == expected, f"note {number}"


def test_two_members_that_begin_a_group_at_the_same_time_both_stay(kafkas: RawClient, ours: RawClient) -> None:
    for client in (kafkas, ours):
        with RawClient(client.bootstrap) as ann, RawClient(client.bootstrap) as bob:
            refused = [code for _ in range(GROUPS) for code in begin_a_group({"ann": ann, "bob": bob})]
        assert refused == []


def begin_a_group(members: Mapping[str, RawClient]) -> list[int]:
    """The errors of the heartbeats that follow two first joins."""
    group_id = uuid.uuid4().hex

    def beat(member_id: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:  # noqa: ANN401
        return ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch, **fields)

    joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": (TOPIC,), "topic_partitions": ()}
    for member_id, client in members.items():
        client.send(beat(member_id, 0, **joining), 1)
    joined: dict[str, Any] = {member_id: client.receive() for member_id, client in members.items()}
    answers = [members[who].ask(beat(who, answer.member_epoch), 1) for who, answer in joined.items()]
    return [answer.error_code for answer in (*joined.values(), *answers) if answer.error_code]


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
