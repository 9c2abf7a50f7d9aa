"""DeleteTopics (20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.core.errors import ErrorCode
from ottla.wire import apis
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest

from .making import (
    NAMES_UNTIL,
    ask_until,
    create_topic,
    delete_topic,
    fetch,
    fetch_request,
    partition_count,
    produce,
    send_batch,
)
from .making import batch as make_batch
from .raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.testing import EphemeralBroker

STRANGER = bytes(15) + b"\1"
BY_ID_SINCE = 6


def by_name(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=names, timeout_ms=1000)


def delete(client: RawClient, *topics: tuple[str | None, bytes]) -> list[DeletableTopicResult]:
    """By name, by id, or both."""
    states = tuple(DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics)
    return list(client.ask(DeleteTopicsRequest(topics=states, timeout_ms=1000)).responses)


def codes(results: list[DeletableTopicResult]) -> list[int]:
    return sorted(result.error_code for result in results)


@pytest.mark.parametrize("version", range(apis.DELETE_TOPICS.first, BY_ID_SINCE))
def test_every_version_before_6_deletes_by_name(client: RawClient, topic: str, version: int) -> None:
    [deleted, unknown] = sorted(
        client.ask(by_name(topic, "no-such"), version).responses, key=lambda one: one.error_code
    )

    assert (deleted.name, deleted.error_code, deleted.error_message) == (topic, ErrorCode.NONE, None)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert bool(unknown.error_message) is (version >= 5)
    assert partition_count(client, topic) == 0


def test_the_latest_version_deletes_by_name_or_by_id(client: RawClient, name: str) -> None:
    first = create_topic(client, f"{name}-1")
    second = create_topic(client, f"{name}-2")

    results = delete(client, (f"{name}-1", NO_UUID), (None, second))
    assert [(one.name, one.topic_id, one.error_code) for one in results] == [
        (f"{name}-1", first, ErrorCode.NONE),
        (f"{name}-2", second, ErrorCode.NONE),
    ]
    assert partition_count(client, f"{name}-2") == 0


def test_an_unknown_id_is_refused_as_such(client: RawClient) -> None:
    [refused] = delete(client, (None, STRANGER))

    assert (refused.name, refused.topic_id, refused.error_code) == (None, STRANGER, ErrorCode.UNKNOWN_TOPIC_ID)


def test_a_topic_without_name_and_id_or_with_both_is_refused(client: RawClient, name: str) -> None:
    topic_id = create_topic(client, name)

    assert codes(delete(client, (None, NO_UUID))) == [ErrorCode.INVALID_REQUEST]
    assert codes(delete(client, (name, topic_id))) == [ErrorCode.INVALID_REQUEST]
    assert codes(delete(client, (name, NO_UUID), (name, NO_UUID))) == [ErrorCode.INVALID_REQUEST]
    assert codes(delete(client, (None, topic_id), (None, topic_id))) == [ErrorCode.INVALID_REQUEST]
    assert codes(delete(client, (None, topic_id), (name, NO_UUID))) == [ErrorCode.INVALID_REQUEST]
    assert partition_count(client, name) == 1


def test_a_topic_that_cannot_be_deleted_does_not_fail_the_others(client: RawClient, topic: str) -> None:
    assert codes(delete(client, ("no-such", NO_UUID), (topic, NO_UUID), ("a b", NO_UUID))) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_deleted_topic_is_unknown_to_producers_and_consumers(client: RawClient, topic: str) -> None:
    produce(client, topic, b"v")
    delete_topic(client, topic)

    assert send_batch(client, topic, make_batch(b"v")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(client, topic).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_internal_topic_is_not_deleted(client: RawClient) -> None:
    create_topic(client, "__consumer_offsets")
    request = DeleteTopicsRequest(topic_names=("__consumer_offsets",), timeout_ms=1000)
    [refused] = client.ask(request, NAMES_UNTIL["delete_topics"]).responses

    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert partition_count(client, "__consumer_offsets") == 1


def test_a_waiting_fetch_ends_when_its_topic_is_deleted(broker: ottla.Broker, client: RawClient, name: str) -> None:
    topic_id = create_topic(client, name)
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    by_id = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=(FetchTopic(topic_id=topic_id, partitions=(wanted,)),))
    with RawClient(broker.bootstrap_servers) as one, RawClient(broker.bootstrap_servers) as other:
        waiting_by_name = one.send(fetch_request(name, max_wait_ms=60_000), NAMES_UNTIL["fetch"])
        waiting_by_id = other.send(by_id)
        ask_until(client, lambda: len(broker.broker.topics.partition(name, 0).waits) == 2)
        delete_topic(client, name)

        [data] = one.receive(waiting_by_name).responses[0].partitions
        assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        [data] = other.receive(waiting_by_id).responses[0].partitions
        assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_nothing_of_a_deleted_topic_stays_on_the_disk(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "doomed", 3)
        create_topic(client, "kept")
        for partition in range(3):
            produce(client, "doomed", b"v", partition=partition)
        produce(client, "kept", b"v")
        delete_topic(client, "doomed")

    # Shutdown waits for background removal.
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["kept-0"]


def test_a_deleted_topic_stays_deleted_after_a_restart(ottla: EphemeralBroker) -> None:
    with RawClient(ottla.bootstrap_servers) as client:
        create_topic(client, "doomed")
        produce(client, "doomed", b"v")
        kept = create_topic(client, "kept", 2, {"retention.ms": "1000"})
        delete_topic(client, "doomed")

    ottla.restart()
    with RawClient(ottla.bootstrap_servers) as client:
        [topic] = client.ask(MetadataRequest(topics=None)).topics
        assert (topic.name, topic.topic_id, len(topic.partitions)) == ("kept", kept, 2)
        assert ottla.broker.topics.by_name["kept"].config.log.retention_ms == 1000
