"""CreateTopics (19)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.broker.configs.layers import ConfigSource
from ottla.broker.placement import MOST_PARTITIONS_PER_REQUEST
from ottla.core.errors import ErrorCode
from ottla.wire import apis
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from .making import batch as make_batch
from .making import create_topic, delete_topic, partition_count, produce, send_batch, values_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    import ottla

    from .raw_client import RawClient

NODE = 0
DEFAULT = -1


def wanted(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    *,
    assignments: Mapping[int, tuple[int, ...]] | None = None,
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    placed = (assignments or {}).items()
    return CreatableTopic(
        name=name,
        num_partitions=DEFAULT if assignments else partitions,
        replication_factor=DEFAULT if assignments else replication_factor,
        assignments=tuple(CreatableReplicaAssignment(partition_index=at, broker_ids=ids) for at, ids in placed),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
    )


def create(client: RawClient, *topics: CreatableTopic, validate_only: bool = False) -> list[CreatableTopicResult]:
    return list(client.ask(CreateTopicsRequest(topics=topics, validate_only=validate_only)).topics)


def code_of(client: RawClient, topic: CreatableTopic) -> int:
    [result] = create(client, topic)
    if result.error_code != ErrorCode.NONE:
        assert result.error_message
        assert result.topic_id == NO_UUID
    return result.error_code


@pytest.mark.parametrize("version", range(apis.CREATE_TOPICS.first, apis.CREATE_TOPICS.last + 1))
def test_every_version_creates_a_topic(client: RawClient, name: str, version: int) -> None:
    [created] = client.ask(CreateTopicsRequest(topics=(wanted(name, 3),)), version).topics

    assert (created.name, created.error_code, created.error_message) == (name, ErrorCode.NONE, None)
    assert created.num_partitions == (3 if version >= 5 else -1)
    assert created.replication_factor == (1 if version >= 5 else -1)
    assert bool(created.configs) is (version >= 5)
    assert (created.topic_id != NO_UUID) is (version >= 7)
    assert partition_count(client, name) == 3


def test_the_topic_id_in_the_response_equals_that_in_metadata(client: RawClient, name: str) -> None:
    topic_id = create_topic(client, name)

    [described] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=name),))).topics
    assert described.topic_id == topic_id


def test_the_response_has_every_config_with_its_source(client: RawClient, name: str) -> None:
    [created] = create(client, wanted(name, configs={"retention.ms": "1000"}))

    configs = {config.name: config for config in created.configs or ()}
    assert list(configs) == sorted(configs)
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == (
        "1000",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
    )
    assert (configs["cleanup.policy"].value, configs["cleanup.policy"].config_source) == (
        "delete",
        ConfigSource.DEFAULT_CONFIG,
    )
    assert not any(config.read_only or config.is_sensitive for config in configs.values())


def test_minus_one_partitions_and_replicas_mean_the_defaults(client: RawClient, name: str) -> None:
    [created] = create(client, wanted(name, DEFAULT, DEFAULT))

    assert (created.error_code, created.num_partitions, created.replication_factor) == (ErrorCode.NONE, 1, 1)


@pytest.mark.parametrize("partitions", [0, -2, -(1 << 31)])
def test_a_topic_without_partitions_is_refused(client: RawClient, name: str, partitions: int) -> None:
    assert code_of(client, wanted(name, partitions)) == ErrorCode.INVALID_PARTITIONS
    assert partition_count(client, name) == 0


@pytest.mark.parametrize("replicas", [0, -2, 2, 32767])
def test_zero_replicas_or_more_than_brokers_are_refused(client: RawClient, name: str, replicas: int) -> None:
    assert code_of(client, wanted(name, 1, replicas)) == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize("partitions", [MOST_PARTITIONS_PER_REQUEST, (1 << 31) - 1])
def test_a_request_for_too_many_partitions_is_refused_as_a_whole(client: RawClient, name: str, partitions: int) -> None:
    results = create(client, wanted(name, partitions), wanted(f"{name}-other", DEFAULT))

    assert [result.error_code for result in results] == [ErrorCode.POLICY_VIOLATION] * 2
    assert partition_count(client, name) == 0


def test_a_name_that_is_taken_is_refused(client: RawClient, topic: str) -> None:
    # This error takes precedence over others, as in Kafka.
    assert code_of(client, wanted(topic, 0, 9, configs={"no.such": "1"})) == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("bad", ["", ".", "..", "a b", "ü", "a/b", "x" * 250, "a\0b"])
def test_an_invalid_name_is_refused(client: RawClient, bad: str) -> None:
    assert code_of(client, wanted(bad)) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_name_that_clashes_with_another_in_metrics_is_refused(client: RawClient, name: str) -> None:
    create_topic(client, f"{name}.a")

    assert code_of(client, wanted(f"{name}_a")) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_kafkas_cluster_metadata_topic_cannot_be_created(client: RawClient) -> None:
    assert code_of(client, wanted("__cluster_metadata")) == ErrorCode.INVALID_REQUEST


def test_a_duplicate_name_is_refused_once_and_the_others_are_created(client: RawClient, name: str) -> None:
    results = create(client, wanted(name), wanted(f"{name}-other"), wanted(name, 2))

    assert [(result.name, result.error_code) for result in results] == [
        (f"{name}-other", ErrorCode.NONE),
        (name, ErrorCode.INVALID_REQUEST),
    ]
    assert partition_count(client, name) == 0


def test_replicas_may_be_assigned_manually_to_the_only_broker(client: RawClient, name: str) -> None:
    [created] = create(client, wanted(name, assignments={0: (NODE,), 1: (NODE,)}))

    assert (created.error_code, created.num_partitions, created.replication_factor) == (ErrorCode.NONE, 2, 1)


@pytest.mark.parametrize(
    "assignments",
    [{0: (7,)}, {0: (NODE, 7)}, {0: (NODE, NODE)}, {0: ()}, {1: (NODE,)}, {-1: (NODE,)}, {0: (NODE,), 2: (NODE,)}],
)
def test_invalid_replica_assignments_are_refused(
    client: RawClient, name: str, assignments: dict[int, tuple[int, ...]]
) -> None:
    assert code_of(client, wanted(name, assignments=assignments)) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_partition_assigned_twice_is_refused(client: RawClient, name: str) -> None:
    placed = CreatableReplicaAssignment(partition_index=0, broker_ids=(NODE,))
    topic = CreatableTopic(
        name=name, num_partitions=DEFAULT, replication_factor=DEFAULT, assignments=(placed, placed), configs=()
    )

    assert code_of(client, topic) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(("partitions", "replicas"), [(1, DEFAULT), (DEFAULT, 1)])
def test_a_manual_assignment_excludes_counts(client: RawClient, name: str, partitions: int, replicas: int) -> None:
    placed = CreatableReplicaAssignment(partition_index=0, broker_ids=(NODE,))
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, assignments=(placed,), configs=()
    )

    assert code_of(client, topic) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("configs", "hint"),
    [
        ({"retention.msec": "1"}, "retention.ms"),
        ({"retention.ms": "soon"}, "soon"),
        ({"cleanup.policy": "shred"}, "compact"),
        ({"retention.ms": None}, "retention.ms"),
    ],
)
def test_an_invalid_config_is_refused_with_the_valid_values(
    client: RawClient, name: str, configs: dict[str, str | None], hint: str
) -> None:
    [refused] = create(client, wanted(name, configs=configs))

    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert hint in (refused.error_message or "")
    assert partition_count(client, name) == 0


def test_a_topics_configs_apply_from_its_first_record_on(client: RawClient, name: str) -> None:
    create_topic(client, name, configs={"max.message.bytes": "100"})

    refused = send_batch(client, name, make_batch(bytes(100)))
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_validate_only_creates_nothing_and_answers_the_same(client: RawClient, topic: str, name: str) -> None:
    new = f"{name}-new"
    results = create(
        client, wanted(new, 2), wanted(topic), wanted(f"{new}-2", 0), wanted(f"{new}-3", 1, 3), validate_only=True
    )

    assert [result.error_code for result in results] == [
        ErrorCode.NONE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
    ]
    assert results[0].num_partitions == 2
    assert partition_count(client, new) == 0


def test_a_re_created_topic_has_another_id_and_is_empty(client: RawClient, name: str) -> None:
    first = create_topic(client, name)
    produce(client, name, b"old")
    delete_topic(client, name)

    assert create_topic(client, name) != first
    assert values_in(client, name) == []


def test_a_topic_of_ten_thousand_partitions_is_created_and_deleted(client: RawClient, name: str) -> None:
    create_topic(client, name, MOST_PARTITIONS_PER_REQUEST)

    assert partition_count(client, name) == MOST_PARTITIONS_PER_REQUEST
    delete_topic(client, name)


def test_automatic_creation_follows_the_same_rules(client: RawClient, name: str) -> None:
    asked = MetadataRequest(topics=(MetadataRequestTopic(name=name), MetadataRequestTopic(name="__cluster_metadata")))
    created, refused = client.ask(asked).topics

    assert (created.error_code, len(created.partitions)) == (ErrorCode.NONE, 1)
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_an_internal_topic_is_internal_even_if_a_client_creates_it(client: RawClient, broker: ottla.Broker) -> None:
    asked = MetadataRequest(topics=(MetadataRequestTopic(name="__consumer_offsets"),))
    [created] = client.ask(asked).topics

    assert created.is_internal
    assert len(created.partitions) == broker.broker.config.offsets_topic_partitions
    assert broker.broker.topics.by_name["__consumer_offsets"].config.log.cleanup_policy == "compact"


def test_a_topic_that_was_just_deleted_at_another_broker_is_created(
    broker: ottla.Broker, client: RawClient, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = create_topic(client, name)
    server = broker.broker

    async def catch_up(topic: str) -> None:
        await server.administration.delete_topic(server.topics.by_name[topic])

    monkeypatch.setattr(server.administration, "catch_up", catch_up)

    [created] = create(client, wanted(name))

    assert created.error_code == ErrorCode.NONE
    assert created.topic_id != before
