"""Administration, against a running broker."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.client import Client
from ottla.client.admin.configs import ConfigResource, ConfigSource
from ottla.client.admin.offsets import CommittedOffset, FoundOffset
from ottla.client.admin.requests import raise_if_error
from ottla.client.admin.topics import NewTopic
from ottla.client.connections import Purpose
from ottla.client.errors import BrokerError, ClientClosed, UnknownTopic
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.records.encode import BatchBuilder
from ottla.wire.apis import PRODUCE
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from .running import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ottla.client.admin.admin import Admin


@asynccontextmanager
async def administering() -> AsyncIterator[tuple[Client, Admin]]:
    async with ottla.Broker() as broker, Client(broker.bootstrap_servers, leader_election_retry_ms=10) as client:
        yield client, client.admin


async def write(client: Client, topic: str, *timestamps: int, partition: int = 0) -> None:
    """One record per timestamp."""
    batch = BatchBuilder()
    for timestamp in timestamps:
        batch.append(timestamp, None, b"v")
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=batch.build()),))
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=(data,))
    view = await client.router.topic(topic)
    connection = await client.router.connection(view.partitions[partition].leader, Purpose.PUSH)
    response = await connection.ask(request, version=connection.version_of(PRODUCE, max_version=12))
    assert response.responses[0].partition_responses[0].error_code == 0


# Topics


def test_topics_are_created_listed_described_and_deleted() -> None:
    async def scenario() -> None:
        async with administering() as (client, admin):
            await admin.create_topic("orders", partitions=3, configs={"retention.ms": "1000"})
            assert await admin.list_topics() == ["orders"]
            assert await client.topics() == ["orders"]
            described = await admin.describe_topic("orders")
            assert list(described.partitions) == [0, 1, 2]
            assert described.partitions[0].leader in client.router.view.brokers
            await admin.delete_topic("orders")
            assert await admin.list_topics() == []
            with pytest.raises(UnknownTopic, match="topic 'orders'"):
                await admin.describe_topic("orders")

    run(scenario())


def test_each_topic_has_its_own_result() -> None:
    async def scenario() -> None:
        async with administering() as (_, admin):
            outcomes = await admin.create_topics(
                [NewTopic(name="a"), NewTopic(name="b/c"), NewTopic(name="d", partitions=0), NewTopic(name="e")]
            )
            assert {name: error and error.code for name, error in outcomes.items()} == {
                "a": None,
                "b/c": ErrorCode.INVALID_TOPIC_EXCEPTION,
                "d": ErrorCode.INVALID_PARTITIONS,
                "e": None,
            }
            described = await admin.describe_topics(["a", "x"])
            assert not isinstance(described["a"], BrokerError)
            assert isinstance(described["x"], UnknownTopic)
            gone = await admin.delete_topics(["a", "x"])
            assert gone["a"] is None
            assert isinstance(gone["x"], UnknownTopic)

    run(scenario())


def test_an_error_names_the_topic_and_has_the_brokers_message() -> None:
    async def scenario() -> None:
        async with administering() as (_, admin):
            await admin.create_topic("a")
            with pytest.raises(BrokerError, match="cannot create topic 'a': TOPIC_ALREADY_EXISTS") as refused:
                await admin.create_topic("a")
            assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
            assert not refused.value.is_retriable
            with pytest.raises(BrokerError, match="INVALID_CONFIG"):
                await admin.create_topic("b", configs={"no.such.setting": "1"})

    run(scenario())


def test_validating_creates_nothing() -> None:
    async def scenario() -> None:
        async with administering() as (_, admin):
            await admin.create_topic("a", validate_only=True)
            assert await admin.list_topics() == []

    run(scenario())


def test_replicas_can_be_assigned_manually() -> None:
    async def scenario() -> None:
        async with administering() as (client, admin):
            [node_id] = client.router.view.brokers
            topic = NewTopic(name="a", assignments={0: [node_id], 1: [node_id]})
            assert await admin.create_topics([topic]) == {"a": None}
            assert len((await admin.describe_topic("a")).partitions) == 2

    run(scenario())


def test_partitions_can_be_added_but_not_removed() -> None:
    async def scenario() -> None:
        async with administering() as (client, admin):
            await admin.create_topic("a", partitions=1)
            assert await client.partitions("a") == [0]
            await admin.create_partitions("a", 3, validate_only=True)
            assert await client.partitions("a") == [0]
            await admin.create_partitions("a", 3)
            assert len((await admin.describe_topic("a")).partitions) == 3
            with pytest.raises(BrokerError, match="cannot increase topic 'a' to 2 partitions: INVALID_PARTITIONS"):
                await admin.create_partitions("a", 2)

    run(scenario())


# Settings


def test_configs_are_described_altered_and_reset() -> None:
    async def scenario() -> None:
        async with administering() as (_, admin):
            topic = ConfigResource.topic("a")
            await admin.create_topic("a", configs={"retention.ms": "1000"})
            before = await admin.describe_configs(topic)
            assert before["retention.ms"].value == "1000"
            assert before["retention.ms"].source is ConfigSource.TOPIC_CONFIG
            assert before["segment.bytes"].is_default
            await admin.alter_configs(topic, {"segment.bytes": "2000000"}, delete=["retention.ms"])
            after = await admin.describe_configs(topic, ["retention.ms", "segment.bytes"])
            assert set(after) == {"retention.ms", "segment.bytes"}
            assert after["segment.bytes"].value == "2000000"
            assert after["retention.ms"].is_default

    run(scenario())


def test_lists_are_appended_to_and_subtracted_from() -> None:
    async def scenario() -> None:
        async with administering() as (_, admin):
            topic = ConfigResource.topic("a")
            await admin.create_topic("a", configs={"cleanup.policy": "delete"})
            await admin.alter_configs(topic, append={"cleanup.policy": "compact"})
            assert (await admin.describe_configs(topic))["cleanup.policy"].value == "delete,compact"
            await admin.alter_configs(topic, subtract={"cleanup.policy": "delete"})
            assert (await admin.describe_configs(topic))["cleanup.policy"].value == "compact"

    run(scenario())


def test_an_invalid_config_is_refused_and_nothing_changes() -> None:
    async def scenario() -> None:
        async with administering() as (_, admin):
            topic = ConfigResource.topic("a")
            await admin.create_topic("a")
            with pytest.raises(BrokerError, match="cannot alter topic 'a': INVALID_CONFIG"):
                await admin.alter_configs(topic, {"segment.bytes": "many"})
            await admin.alter_configs(topic, {"segment.bytes": "2000000"}, validate_only=True)
            assert (await admin.describe_configs(topic))["segment.bytes"].is_default
            with pytest.raises(UnknownTopic, match="cannot describe topic 'b'"):
                await admin.describe_configs(ConfigResource.topic("b"))

    run(scenario())


def test_broker_configs_are_requested_from_that_broker() -> None:
    async def scenario() -> None:
        async with administering() as (client, admin):
            [node_id] = client.router.view.brokers
            found = await admin.describe_configs(ConfigResource.broker(node_id), with_documentation=True)
            assert found["node.id"].value == str(node_id)
            assert found["node.id"].is_read_only
            assert found["log.retention.ms"].documentation

    run(scenario())


# Offsets


def test_offsets_are_listed_by_position_and_by_time() -> None:
    async def scenario() -> None:
        async with administering() as (client, admin):
            await admin.create_topic("a", partitions=2)
            first, second = TopicPartition("a", 0), TopicPartition("a", 1)
            await write(client, "a", 100, 200, 300)
            earliest = await admin.earliest_offsets([first, second])
            latest = await admin.latest_offsets([first, second])
            assert [offset(earliest[where]) for where in (first, second)] == [0, 0]
            assert [offset(latest[where]) for where in (first, second)] == [3, 0]
            at = await admin.offsets_at({first: 150, second: 150})
            assert raise_if_error(at[first]) == FoundOffset(1, 200, 0)
            assert offset(at[second]) == -1

    run(scenario())


def offset(found: FoundOffset | BrokerError) -> int:
    return raise_if_error(found).offset


def test_an_unknown_partition_does_not_affect_the_others() -> None:
    async def scenario() -> None:
        async with administering() as (_, admin):
            await admin.create_topic("a")
            found = await admin.latest_offsets([TopicPartition(*each) for each in (("a", 0), ("a", 9), ("x", 0))])
            assert [isinstance(each, UnknownTopic) for each in found.values()] == [False, True, True]

    run(scenario())


def test_records_are_deleted_up_to_an_offset() -> None:
    async def scenario() -> None:
        async with administering() as (client, admin):
            await admin.create_topic("a")
            where = TopicPartition("a", 0)
            await write(client, "a", 100, 200, 300)
            assert await admin.delete_records({where: 2}) == {where: 2}
            assert offset((await admin.earliest_offsets([where]))[where]) == 2
            [refused] = (await admin.delete_records({where: 9})).values()
            assert isinstance(refused, BrokerError)
            assert refused.code is ErrorCode.OFFSET_OUT_OF_RANGE

    run(scenario())


# Groups


def test_offsets_of_a_group_are_set_read_and_deleted() -> None:
    async def scenario() -> None:
        async with administering() as (client, admin):
            await admin.create_topic("a", partitions=2)
            await write(client, "a", 100)
            first, second = TopicPartition("a", 0), TopicPartition("a", 1)
            assert await admin.group_offsets("g") == {}
            outcome = await admin.alter_group_offsets("g", {first: 1, second: CommittedOffset(5, metadata="by hand")})
            assert outcome == {first: None, second: None}
            found = await admin.group_offsets("g")
            assert found[first].offset == 1
            assert (found[second].offset, found[second].metadata) == (5, "by hand")
            assert await admin.delete_group_offsets("g", [second]) == {second: None}
            assert list(await admin.group_offsets("g")) == [first]

    run(scenario())


def test_a_group_is_listed_described_and_deleted() -> None:
    async def scenario() -> None:
        async with administering() as (client, admin):
            await admin.create_topic("a")
            await admin.alter_group_offsets("g", {TopicPartition("a", 0): 0})
            [listed] = await admin.list_groups()
            assert (listed.group, listed.state) == ("g", "Empty")
            assert await admin.list_groups(states=["Stable"]) == []
            described = await admin.describe_group("g")
            assert (described.group, described.state, described.members) == ("g", "Empty", ())
            assert described.coordinator in client.router.view.brokers
            assert await admin.delete_groups(["g"]) == {"g": None}
            assert await admin.list_groups() == []

    run(scenario())


def test_an_unknown_group_is_reported() -> None:
    async def scenario() -> None:
        async with administering() as (_, admin):
            for call in (admin.describe_group("x"), admin.delete_group("x")):
                with pytest.raises(BrokerError, match="group 'x': GROUP_ID_NOT_FOUND"):
                    await call
            [refused] = (await admin.delete_groups(["x"])).values()
            assert isinstance(refused, BrokerError)

    run(scenario())


def test_members_of_a_group_are_described_with_their_assignments() -> None:
    async def scenario() -> None:
        async with administering() as (client, admin):
            await admin.create_topic("a", partitions=2)
            await write(client, "a", 100)
            options = {"group": "g", "group_instance_id": "one", "auto_offset_reset": "earliest"}
            async with client.consumer("a", **options) as consumer:  # type: ignore[arg-type]
                assert len(await consumer.poll(timeout_ms=10_000)) == 1
                described = await admin.describe_group("g")
                [member] = described.members
                assert member.instance_id == "one"
                assert member.client_id == client.config.client_id
                assert member.partitions == {TopicPartition("a", 0), TopicPartition("a", 1)}
                with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
                    await admin.delete_group("g")

    run(scenario())


# The cluster


def test_the_cluster_is_described() -> None:
    async def scenario() -> None:
        async with administering() as (client, admin):
            described = await admin.describe_cluster()
            assert described.cluster_id == client.router.view.cluster_id
            assert [broker.node_id for broker in described.brokers] == list(client.router.view.brokers)
            assert described.controller_id in client.router.view.brokers

    run(scenario())


def test_a_closed_client_refuses_calls() -> None:
    async def scenario() -> Any:
        async with administering() as (client, admin):
            pass
        with pytest.raises(ClientClosed):
            await admin.list_topics()
        with pytest.raises(ClientClosed):
            client.admin  # noqa: B018
        with pytest.raises(ClientClosed):
            await client.start()

    run(scenario())
