"""The admin client of kafka-python."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaAdminClient, TopicPartition, errors
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType, OffsetSpec
from tests.broker.making import produce
from tests.broker.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@pytest.fixture(scope="module")
def admin(broker: Any) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    yield admin
    admin.close()


def configs_of(admin: KafkaAdminClient, topic: str, *keys: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict.fromkeys(keys) or None)
    described = admin.describe_configs([resource], config_filter="all")
    [configs] = described["topic"].values()
    return {key: config["value"] for key, config in configs.items()}


def alter(admin: KafkaAdminClient, topic: str, configs: dict[str, Any], **options: Any) -> Any:
    return admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs)], **options)


def test_topics_are_created_listed_described_and_deleted(admin: KafkaAdminClient, name: str) -> None:
    created = admin.create_topics({name: {"num_partitions": 3, "configs": {"retention.ms": "1000"}}})
    [topic] = created["topics"]
    assert (topic["num_partitions"], topic["replication_factor"]) == (3, 1)
    assert name in admin.list_topics()

    [described] = admin.describe_topics([name])
    assert [partition["leader_id"] for partition in described["partitions"]] == [0, 0, 0]
    assert configs_of(admin, name, "retention.ms") == {"retention.ms": "1000"}

    admin.delete_topics([name])
    assert name not in admin.list_topics()


def test_a_topic_is_described_and_deleted_by_its_id(admin: KafkaAdminClient, name: str) -> None:
    [created] = admin.create_topics([name])["topics"]
    topic_id = uuid.UUID(str(created["topic_id"]))
    [described] = admin.describe_topics([topic_id])
    assert described["name"] == name

    admin.delete_topics([topic_id])
    assert name not in admin.list_topics()


def test_invalid_creations_and_deletions_are_refused(admin: KafkaAdminClient, topic: str, name: str) -> None:
    with pytest.raises(errors.TopicAlreadyExistsError):
        admin.create_topics([topic])
    with pytest.raises(errors.InvalidTopicError):
        admin.create_topics(["a b"])
    with pytest.raises(errors.InvalidReplicationFactorError):
        admin.create_topics({name + "-3": {"replication_factor": 3}})
    with pytest.raises(errors.InvalidConfigurationError):
        admin.create_topics({name + "-4": {"configs": {"no.such": "1"}}})
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.delete_topics(["no-such"])


def test_partitions_are_added_to_a_topic(admin: KafkaAdminClient, topic: str) -> None:
    admin.create_partitions({topic: 4})
    [described] = admin.describe_topics([topic])
    assert len(described["partitions"]) == 4

    with pytest.raises(errors.InvalidPartitionsError):
        admin.create_partitions({topic: 2})


def test_partitions_are_described_page_by_page(admin: KafkaAdminClient, topic: str) -> None:
    admin.create_partitions({topic: 3})
    page = admin.describe_topic_partitions([topic], response_partition_limit=2)
    assert page["next_cursor"] == {"topic_name": topic, "partition_index": 2}

    page = admin.describe_topic_partitions([topic], cursor=page["next_cursor"])
    assert [one["partition_index"] for one in page["topics"][0]["partitions"]] == [2]
    assert page["next_cursor"] is None


@pytest.mark.parametrize("is_incremental", [True, False])
def test_configs_are_altered_and_reset(admin: KafkaAdminClient, topic: str, is_incremental: bool) -> None:
    alter(admin, topic, {"retention.ms": "5000"}, incremental=is_incremental)
    alter(admin, topic, {"segment.ms": "6000"}, incremental=is_incremental)
    changed = {"retention.ms": "5000", "segment.ms": "6000"}
    assert configs_of(admin, topic, *changed) == changed

    reset = ConfigResource(ConfigResourceType.TOPIC, topic, ["retention.ms"])
    admin.reset_configs([reset], incremental=is_incremental)
    assert configs_of(admin, topic, *changed) == {"retention.ms": "604800000", "segment.ms": "6000"}


def test_a_list_is_appended_to(admin: KafkaAdminClient, topic: str) -> None:
    alter(admin, topic, {"cleanup.policy": (AlterConfigOp.APPEND, "compact")})

    assert configs_of(admin, topic, "cleanup.policy") == {"cleanup.policy": "delete,compact"}


def test_the_cluster_and_its_disk_are_described(admin: KafkaAdminClient, servers: str, topic: str) -> None:
    cluster = admin.describe_cluster()
    assert [f"{node['host']}:{node['port']}" for node in cluster["brokers"]] == [servers]
    assert cluster["controller_id"] == 0

    [folder] = admin.describe_log_dirs([topic])
    assert str(folder).count(topic) == 1


def test_records_are_deleted(admin: KafkaAdminClient, servers: str, topic: str) -> None:
    with RawClient(servers) as client:
        produce(client, topic, b"0", b"1", b"2")
    at = TopicPartition(topic, 0)

    assert admin.delete_records({at: 2})[at]["low_watermark"] == 2
    assert admin.list_partition_offsets({at: OffsetSpec.EARLIEST})[at].offset == 2
    with pytest.raises(errors.OffsetOutOfRangeError):
        admin.delete_records({at: 9})
