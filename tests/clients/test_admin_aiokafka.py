"""The admin client of aiokafka, which uses older API versions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiokafka import TopicPartition, errors
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from tests.broker.making import produce
from tests.broker.raw_client import RawClient

from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    Work = Callable[[AIOKafkaAdminClient], Awaitable[Any]]


def run(servers: str, work: Work) -> Any:
    """Run a function with a separate admin client."""

    async def with_admin() -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=servers)
        await admin.start()
        try:
            return await work(admin)
        finally:
            await admin.close()

    return asyncio.run(with_admin())


async def configs_of(admin: AIOKafkaAdminClient, topic: str) -> dict[str, str]:
    [answer] = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    [(error_code, _, _, _, entries)] = answer.resources
    assert error_code == ErrorCode.NONE
    return {entry[0]: entry[1] for entry in entries}


def test_topics_are_created_listed_described_and_deleted(servers: str, name: str) -> None:
    async def work(admin: AIOKafkaAdminClient) -> None:
        topic = NewTopic(name, 3, 1, topic_configs={"retention.ms": "1000"})
        created = await admin.create_topics([topic])
        assert [error[:2] for error in created.topic_errors] == [(name, ErrorCode.NONE)]
        assert name in await admin.list_topics()

        [described] = await admin.describe_topics([name])
        assert [partition["leader"] for partition in described["partitions"]] == [0, 0, 0]
        assert (await configs_of(admin, name))["retention.ms"] == "1000"

        deleted = await admin.delete_topics([name])
        assert deleted.topic_error_codes == [(name, ErrorCode.NONE)]
        assert name not in await admin.list_topics()

    run(servers, work)


def test_invalid_creations_and_deletions_are_refused(servers: str, topic: str, name: str) -> None:
    async def work(admin: AIOKafkaAdminClient) -> None:
        wanted = [
            NewTopic(topic, 1, 1),
            NewTopic("a b", 1, 1),
            NewTopic(name + "-3", 1, 3),
            NewTopic(name + "-0", 0, 1),
        ]
        created = await admin.create_topics(wanted)
        assert {error[0]: error[1] for error in created.topic_errors} == {
            topic: ErrorCode.TOPIC_ALREADY_EXISTS,
            "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
            name + "-3": ErrorCode.INVALID_REPLICATION_FACTOR,
            name + "-0": ErrorCode.INVALID_PARTITIONS,
        }
        deleted = await admin.delete_topics(["no-such"])
        assert deleted.topic_error_codes == [("no-such", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]

    run(servers, work)


def test_partitions_are_added_to_a_topic(servers: str, topic: str) -> None:
    async def work(admin: AIOKafkaAdminClient) -> None:
        await admin.create_partitions({topic: NewPartitions(4)})
        [described] = await admin.describe_topics([topic])
        assert len(described["partitions"]) == 4

    run(servers, work)


def test_configs_are_replaced(servers: str, topic: str) -> None:
    async def work(admin: AIOKafkaAdminClient) -> None:
        for configs in ({"retention.ms": "5000"}, {"segment.ms": "6000"}):
            resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs)
            [answer] = await admin.alter_configs([resource])
            [(error_code, *_)] = answer.resources
            assert error_code == ErrorCode.NONE
        configs = await configs_of(admin, topic)
        assert (configs["retention.ms"], configs["segment.ms"]) == ("604800000", "6000")

    run(servers, work)


def test_the_cluster_is_described(servers: str) -> None:
    async def work(admin: AIOKafkaAdminClient) -> None:
        cluster = await admin.describe_cluster()
        assert [f"{node['host']}:{node['port']}" for node in cluster["brokers"]] == [servers]
        assert cluster["controller_id"] == 0

    run(servers, work)


def test_records_are_deleted(servers: str, topic: str) -> None:
    with RawClient(servers) as client:
        produce(client, topic, b"0", b"1", b"2")
    at = TopicPartition(topic, 0)

    async def work(admin: AIOKafkaAdminClient) -> None:
        assert await admin.delete_records({at: RecordsToDelete(before_offset=2)}) == {at: 2}
        with pytest.raises(errors.OffsetOutOfRangeError):
            await admin.delete_records({at: RecordsToDelete(before_offset=9)})

    run(servers, work)
