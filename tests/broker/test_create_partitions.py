"""CreatePartitions (37)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.broker.placement import MOST_PARTITIONS_PER_REQUEST, MOST_PARTITIONS_PER_TOPIC
from ottla.core.errors import ErrorCode
from ottla.wire import apis
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

from .making import create_topic, partition_count, produce, values_in

if TYPE_CHECKING:
    from .raw_client import RawClient

NODE = 0


def wanted(name: str, count: int, *assignments: tuple[int, ...], is_placed: bool = False) -> CreatePartitionsTopic:
    placed = tuple(CreatePartitionsAssignment(broker_ids=ids) for ids in assignments)
    return CreatePartitionsTopic(name=name, count=count, assignments=placed if placed or is_placed else None)


def asking(*topics: CreatePartitionsTopic, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=validate_only)


def grow(client: RawClient, topic: CreatePartitionsTopic) -> CreatePartitionsTopicResult:
    [result] = client.ask(asking(topic)).results
    return result


@pytest.mark.parametrize("version", range(apis.CREATE_PARTITIONS.first, apis.CREATE_PARTITIONS.last + 1))
def test_every_version_gives_a_topic_more_partitions(client: RawClient, topic: str, version: int) -> None:
    [grown] = client.ask(asking(wanted(topic, 4)), version).results

    assert (grown.name, grown.error_code, grown.error_message) == (topic, ErrorCode.NONE, None)
    assert partition_count(client, topic) == 4


def test_new_partitions_are_usable_at_once_and_existing_ones_keep_their_records(client: RawClient, topic: str) -> None:
    produce(client, topic, b"old")
    grow(client, wanted(topic, 2))
    produce(client, topic, b"new", partition=1)

    assert values_in(client, topic) == [b"old"]
    assert values_in(client, topic, partition=1) == [b"new"]


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (3, "Topic already has 3 partition(s)."),
        (2, "The topic {} currently has 3 partition(s); 2 would not be an increase."),
        (-1, "The topic {} currently has 3 partition(s); -1 would not be an increase."),
        (MOST_PARTITIONS_PER_TOPIC + 1, "A topic may have at most 100000 partitions, not 100001."),
    ],
)
def test_a_partition_count_that_does_not_increase_or_is_absurd_is_refused(
    client: RawClient, name: str, count: int, message: str
) -> None:
    create_topic(client, name, 3)

    refused = grow(client, wanted(name, count))
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_PARTITIONS, message.format(name))
    assert partition_count(client, name) == 3


def test_too_many_partitions_are_refused_and_other_errors_are_kept(client: RawClient, topic: str) -> None:
    results = client.ask(asking(wanted(topic, MOST_PARTITIONS_PER_REQUEST + 2), wanted("no-such", 2))).results

    assert {result.name: result.error_code for result in results} == {
        topic: ErrorCode.POLICY_VIOLATION,
        "no-such": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert partition_count(client, topic) == 1


def test_a_duplicate_topic_is_refused_once_and_the_others_grow(client: RawClient, topic: str, name: str) -> None:
    other = f"{name}-other"
    create_topic(client, other)
    results = client.ask(asking(wanted(topic, 2), wanted(other, 2), wanted(topic, 3))).results

    assert {result.name: result.error_code for result in results} == {
        topic: ErrorCode.INVALID_REQUEST,
        other: ErrorCode.NONE,
    }
    assert len(results) == 2
    assert partition_count(client, topic) == 1


def test_replicas_may_be_assigned_manually_to_the_only_broker(client: RawClient, topic: str) -> None:
    assert grow(client, wanted(topic, 3, (NODE,), (NODE,))).error_code == ErrorCode.NONE


@pytest.mark.parametrize("assignments", [((NODE,),), ((NODE,), (7,)), ((NODE,), (NODE, NODE)), ((NODE,), ()), ()])
def test_invalid_replica_assignments_are_refused(
    client: RawClient, topic: str, assignments: tuple[tuple[int, ...], ...]
) -> None:
    refused = grow(client, wanted(topic, 3, *assignments, is_placed=True))

    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert partition_count(client, topic) == 1


def test_validate_only_changes_nothing_and_answers_the_same(client: RawClient, topic: str) -> None:
    results = client.ask(asking(wanted(topic, 2), wanted("no-such", 2), validate_only=True)).results

    assert {result.name: result.error_code for result in results} == {
        topic: ErrorCode.NONE,
        "no-such": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert partition_count(client, topic) == 1
