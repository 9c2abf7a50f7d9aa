"""The admin client of confluent-kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from tests.broker.making import produce
from tests.broker.raw_client import RawClient

from .adapters.base import PATIENCE_S

if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import Any


@pytest.fixture(scope="module")
def admin(broker: Any) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})


def done(futures: dict[Any, Future[Any]]) -> Any:
    """The result of the only future."""
    [future] = futures.values()
    return future.result(PATIENCE_S)


def refusal(futures: dict[Any, Future[Any]]) -> int:
    with pytest.raises(KafkaException) as refused:
        done(futures)
    error: KafkaError = refused.value.args[0]
    assert error.str()
    return error.code()


def config_of(admin: AdminClient, resource: ConfigResource, name: str) -> tuple[str, ConfigSource]:
    entry = done(admin.describe_configs([resource]))[name]
    return entry.value, ConfigSource(entry.source)


def alter(admin: AdminClient, topic: str, name: str, value: str | None, operation: AlterConfigOpType) -> Any:
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    return admin.incremental_alter_configs([resource])


def test_topics_are_created_listed_described_and_deleted(admin: AdminClient, name: str) -> None:
    done(admin.create_topics([NewTopic(name, 3, config={"retention.ms": "1000"})]))
    assert set(admin.list_topics(name, PATIENCE_S).topics[name].partitions) == {0, 1, 2}
    assert name in admin.list_topics(timeout=PATIENCE_S).topics

    described = done(admin.describe_topics(TopicCollection([name]), include_authorized_operations=True))
    assert [partition.leader.id for partition in described.partitions] == [0, 0, 0]
    assert len(described.authorized_operations) == 8

    done(admin.delete_topics([name]))
    assert name not in admin.list_topics(timeout=PATIENCE_S).topics


def test_invalid_creations_and_deletions_are_refused(admin: AdminClient, topic: str, name: str) -> None:
    assert refusal(admin.create_topics([NewTopic(topic, 1)])) == KafkaError.TOPIC_ALREADY_EXISTS
    assert refusal(admin.create_topics([NewTopic("a b", 1)])) == KafkaError.TOPIC_EXCEPTION
    assert refusal(admin.create_topics([NewTopic(f"{name}-3", 1, 3)])) == KafkaError.INVALID_REPLICATION_FACTOR
    bad_config = NewTopic(f"{name}-4", 1, config={"no.such": "1"})
    assert refusal(admin.create_topics([bad_config])) == KafkaError.INVALID_CONFIG
    assert refusal(admin.delete_topics(["no-such"])) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_validate_only_creates_nothing(admin: AdminClient, name: str) -> None:
    done(admin.create_topics([NewTopic(name, 2)], validate_only=True))

    assert name not in admin.list_topics(timeout=PATIENCE_S).topics


def test_a_topic_is_created_with_a_manual_replica_assignment(admin: AdminClient, name: str) -> None:
    done(admin.create_topics([NewTopic(name, 2, replica_assignment=[[0], [0]])]))
    assert len(admin.list_topics(name, PATIENCE_S).topics[name].partitions) == 2

    elsewhere = NewTopic(f"{name}-other", 1, replica_assignment=[[7]])
    assert refusal(admin.create_topics([elsewhere])) == KafkaError.INVALID_REPLICA_ASSIGNMENT


def test_partitions_are_added_to_a_topic(admin: AdminClient, topic: str) -> None:
    done(admin.create_partitions([NewPartitions(topic, 4)]))
    assert len(admin.list_topics(topic, PATIENCE_S).topics[topic].partitions) == 4

    assert refusal(admin.create_partitions([NewPartitions(topic, 2)])) == KafkaError.INVALID_PARTITIONS


def test_single_configs_are_altered(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    assert config_of(admin, resource, "retention.ms") == ("604800000", ConfigSource.DEFAULT_CONFIG)

    done(alter(admin, topic, "retention.ms", "5000", AlterConfigOpType.SET))
    done(alter(admin, topic, "cleanup.policy", "compact", AlterConfigOpType.APPEND))
    assert config_of(admin, resource, "retention.ms") == ("5000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert config_of(admin, resource, "cleanup.policy")[0] == "delete,compact"

    done(alter(admin, topic, "cleanup.policy", "delete", AlterConfigOpType.SUBTRACT))
    done(alter(admin, topic, "retention.ms", None, AlterConfigOpType.DELETE))
    assert config_of(admin, resource, "cleanup.policy")[0] == "compact"
    assert config_of(admin, resource, "retention.ms") == ("604800000", ConfigSource.DEFAULT_CONFIG)
    assert refusal(alter(admin, topic, "retention.ms", "soon", AlterConfigOpType.SET)) == KafkaError.INVALID_CONFIG


def test_all_configs_are_replaced(admin: AdminClient, topic: str) -> None:
    done(alter(admin, topic, "retention.ms", "5000", AlterConfigOpType.SET))
    resource = ConfigResource(ResourceType.TOPIC, topic)
    resource.set_config("segment.ms", "6000")
    with pytest.deprecated_call():
        altering = admin.alter_configs([resource])
    done(altering)

    assert config_of(admin, resource, "segment.ms") == ("6000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert config_of(admin, resource, "retention.ms") == ("604800000", ConfigSource.DEFAULT_CONFIG)


def test_the_broker_is_described(admin: AdminClient, servers: str) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True).result(PATIENCE_S)
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [servers]
    assert cluster.controller.id == 0
    assert len(cluster.authorized_operations) == 7

    broker = ConfigResource(ResourceType.BROKER, "0")
    assert config_of(admin, broker, "node.id")[0] == "0"


def test_records_are_deleted(admin: AdminClient, servers: str, topic: str) -> None:
    with RawClient(servers) as client:
        produce(client, topic, b"0", b"1", b"2")

    deleted = done(admin.delete_records([TopicPartition(topic, 0, 2)]))
    assert deleted.low_watermark == 2
    earliest = done(admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()}))  # type: ignore[no-untyped-call]
    assert earliest.offset == 2
    assert refusal(admin.delete_records([TopicPartition(topic, 0, 9)])) == KafkaError.OFFSET_OUT_OF_RANGE
