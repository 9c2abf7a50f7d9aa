"""Metadata: every version, topics by name and id, and automatic topic creation."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

import ottla
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode
from ottla.wire.apis import METADATA
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

from .making import create_topic, delete_topic, partition_count
from .raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.wire.messages.metadata import MetadataResponseTopic

VERSIONS = range(METADATA.first, METADATA.last + 1)
EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)


def by_name(*names: str, may_create: bool = True) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=may_create)


def by_id(*topic_ids: bytes) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in topic_ids)
    return MetadataRequest(topics=topics)


def described(answer: MetadataResponse, name: str) -> MetadataResponseTopic:
    [topic] = [topic for topic in answer.topics if topic.name == name]
    return topic


@EACH_VERSION
def test_a_topic_is_described_with_its_partitions(client: RawClient, name: str, version: int) -> None:
    topic_id = create_topic(client, name, partitions=3)
    [topic] = client.ask(by_name(name), version).topics

    assert (topic.error_code, topic.name, topic.is_internal) == (ErrorCode.NONE, name, False)
    assert topic.topic_id == (topic_id if version >= 10 else NO_UUID)
    assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2]
    for partition in topic.partitions:
        assert partition.error_code == ErrorCode.NONE
        assert partition.leader_id == 0
        assert partition.replica_nodes == partition.isr_nodes == (0,)
        assert partition.offline_replicas == ()
        assert partition.leader_epoch == (0 if version >= 7 else -1)


@EACH_VERSION
def test_the_broker_returns_its_identity(client: RawClient, broker: ottla.Broker, version: int) -> None:
    answer = client.ask(by_name(), version) if version else client.ask(by_name("any"), version)
    [node] = answer.brokers
    assert (node.node_id, f"{node.host}:{node.port}", node.rack) == (0, broker.bootstrap_servers, None)
    assert answer.controller_id == (0 if version >= 1 else -1)
    assert answer.cluster_id == (broker.broker.cluster_id if version >= 2 else None)
    assert answer.throttle_time_ms == 0


@EACH_VERSION
def test_null_topics_return_all_topics(client: RawClient, topic: str, version: int) -> None:
    answer = client.ask(MetadataRequest(topics=() if version == 0 else None), version)
    assert described(answer, topic).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_an_empty_list_returns_only_the_brokers(client: RawClient, topic: str, version: int) -> None:
    answer = client.ask(by_name(), version)
    assert answer.topics == (), f"{topic} was not asked for"
    assert len(answer.brokers) == 1


# Automatic creation


@EACH_VERSION
def test_a_topic_is_created_when_first_requested(client: RawClient, name: str, version: int) -> None:
    [topic] = client.ask(by_name(name), version).topics
    assert topic.error_code == ErrorCode.NONE
    assert len(topic.partitions) == 1
    assert partition_count(client, name) == 1


@pytest.mark.parametrize("version", VERSIONS[4:])
def test_a_topic_is_not_created_if_the_client_forbids_it(client: RawClient, name: str, version: int) -> None:
    for _ in range(2):
        [topic] = client.ask(by_name(name, may_create=False), version).topics
        assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        assert topic.partitions == ()


@pytest.mark.parametrize("version", VERSIONS[4:])
def test_asking_for_all_topics_creates_none(client: RawClient, version: int) -> None:
    before = len(client.ask(MetadataRequest(topics=None), version).topics)
    assert len(client.ask(MetadataRequest(topics=None), version).topics) == before


@EACH_VERSION
@pytest.mark.parametrize("bad", ["", ".", "..", "x" * 250, "a/b", "a\x00b", "a b", "ünïcode", "a\\b", "%2e%2e%2f"])
@pytest.mark.parametrize("may_create", [True, False])
def test_an_invalid_name_is_refused_and_the_others_are_not(
    client: RawClient, topic: str, version: int, bad: str, may_create: bool
) -> None:
    if version < 4 and not may_create:
        return
    refused, found = client.ask(by_name(bad, topic, may_create=may_create), version).topics
    assert (refused.error_code, refused.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, bad)
    assert (found.error_code, found.name) == (ErrorCode.NONE, topic)


def test_many_topics_are_created_by_one_request(client: RawClient, name: str) -> None:
    names = [f"{name}-{number}" for number in range(50)]
    answer = client.ask(by_name(*names))
    assert [topic.name for topic in answer.topics] == names
    assert all(topic.error_code == ErrorCode.NONE for topic in answer.topics)


def test_a_name_that_collides_with_another_is_refused(client: RawClient, name: str) -> None:
    create_topic(client, f"{name}.a")
    [topic] = client.ask(by_name(f"{name}_a")).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_automatic_creation_can_be_disabled_and_its_partition_count_set(tmp_path: Path, name: str) -> None:
    base = Settings()
    net = replace(base.net, port=0)
    never = base._replace(net=net, broker=replace(base.broker, auto_create_topics=False))
    with ottla.Broker(tmp_path / "never", never) as broker, RawClient(broker.bootstrap_servers) as client:
        [topic] = client.ask(by_name(name)).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    seven = base._replace(net=net, broker=replace(base.broker, default_partitions=7))
    with ottla.Broker(tmp_path / "seven", seven) as broker, RawClient(broker.bootstrap_servers) as client:
        [topic] = client.ask(by_name(name)).topics
        assert len(topic.partitions) == 7


def test_a_full_disk_is_a_storage_error(
    client: RawClient, broker: ottla.Broker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.core.errors import StorageError  # noqa: PLC0415

    def full(*_: object) -> None:
        raise StorageError("no space left")

    monkeypatch.setattr(broker.broker, "create_topic", full)
    [topic] = client.ask(by_name(name)).topics
    assert topic.error_code == ErrorCode.KAFKA_STORAGE_ERROR


# By id


@pytest.mark.parametrize("version", VERSIONS[12:])
def test_a_topic_is_found_by_its_id(client: RawClient, name: str, version: int) -> None:
    topic_id = create_topic(client, name, partitions=2)
    [topic] = client.ask(by_id(topic_id), version).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (ErrorCode.NONE, name, topic_id)
    assert len(topic.partitions) == 2


@pytest.mark.parametrize("version", VERSIONS[12:])
def test_an_unknown_id_is_refused_without_a_name_and_creates_nothing(client: RawClient, version: int) -> None:
    before = len(client.ask(MetadataRequest(topics=None), version).topics)
    topic_id = secrets.token_bytes(16)
    [topic] = client.ask(by_id(topic_id), version).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
    assert len(client.ask(MetadataRequest(topics=None), version).topics) == before


@pytest.mark.parametrize("version", [10, 11])
def test_topic_ids_are_refused_in_versions_before_kafka_supports_them(
    client: RawClient, topic: str, version: int
) -> None:
    topic_id = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=topic),))).topics[0].topic_id
    answer = client.ask(by_id(topic_id), version)
    [refused] = answer.topics
    assert (refused.error_code, refused.name, refused.topic_id) == (ErrorCode.INVALID_REQUEST, "", topic_id)
    assert answer.brokers == ()


def test_the_id_of_a_deleted_topic_is_unknown_even_if_its_name_is_in_use_again(client: RawClient, name: str) -> None:
    old_id = create_topic(client, name)
    delete_topic(client, name)
    new_id = create_topic(client, name)
    old, new = client.ask(by_id(old_id, new_id)).topics
    assert (old.error_code, new.error_code, new.name) == (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE, name)


def test_a_topic_named_repeatedly_is_described_once(client: RawClient, name: str) -> None:
    topic_id = create_topic(client, name, partitions=3)
    assert len(client.ask(by_name(*[name] * 1000)).topics) == 1
    assert len(client.ask(by_id(*[topic_id] * 1000)).topics) == 1


def test_ids_are_the_same_after_a_restart(tmp_path: Path, name: str) -> None:
    seen = []
    for _ in range(2):
        with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
            [topic] = client.ask(by_name(name)).topics
            seen.append((topic.topic_id, broker.broker.cluster_id))
    assert seen[0] == seen[1]


# Advertised addresses


def test_a_client_is_told_the_address_that_it_used(tmp_path: Path) -> None:
    settings = Settings()
    with ottla.Broker(tmp_path, settings._replace(net=replace(settings.net, host="0.0.0.0", port=0))) as broker:  # noqa: S104
        port = broker.broker.address.port
        for host in ("127.0.0.1", "127.0.0.2", "127.1.2.3"):
            with RawClient(f"{host}:{port}") as client:
                [node] = client.ask(by_name()).brokers
                assert (node.host, node.port) == (host, port)


@EACH_VERSION
def test_a_client_is_told_the_advertised_address_if_there_is_one(tmp_path: Path, version: int) -> None:
    settings = Settings()
    net = replace(settings.net, port=0, advertised="kafka.example:19092")
    with ottla.Broker(tmp_path, settings._replace(net=net)) as broker, RawClient(broker.bootstrap_servers) as client:
        [node] = client.ask(by_name("t"), version).brokers
        assert (node.host, node.port) == ("kafka.example", 19092)
