"""The consumer protocol (subscriptions and assignments), compared with kio and known bytes."""

from __future__ import annotations

import io
import struct
from importlib import import_module
from random import Random
from typing import Any

import pytest
from kio.serial import entity_reader, entity_writer
from kio_oracle import kio_encode, random_entity

from ottla.core.errors import ProtocolError
from ottla.core.ids import TopicPartition
from ottla.wire.consumer_protocol import (
    NEWEST_VERSION,
    Assignment,
    PreviousAssignment,
    Subscription,
    TopicPartitions,
    by_topic,
    decode_assignment,
    decode_previous_assignment,
    decode_subscription,
    each_partition,
    encode_assignment,
    encode_previous_assignment,
    encode_subscription,
)

EACH_VERSION = pytest.mark.parametrize("version", range(NEWEST_VERSION + 1))


def _kio_subscription(version: int) -> Any:
    return import_module(f"kio.schema.consumer_protocol_subscription.v{version}.data").ConsumerProtocolSubscription


def _kio_assignment(version: int) -> Any:
    return import_module(f"kio.schema.consumer_protocol_assignment.v{version}.data").ConsumerProtocolAssignment


def _partitions(of: Any) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic=one.topic, partitions=one.partitions) for one in of)


@EACH_VERSION
@pytest.mark.parametrize("seed", range(20))
def test_a_subscription_has_the_bytes_that_kio_writes(version: int, seed: int) -> None:
    theirs = random_entity(_kio_subscription(version), Random(seed))
    data = struct.pack(">h", version) + kio_encode(theirs)
    ours = decode_subscription(data)

    assert ours.topics == theirs.topics
    assert ours.user_data == theirs.user_data
    assert ours.owned_partitions == _partitions(getattr(theirs, "owned_partitions", ()))
    assert ours.generation_id == getattr(theirs, "generation_id", -1)
    assert ours.rack_id == getattr(theirs, "rack_id", None)
    assert encode_subscription(ours, version) == data


@EACH_VERSION
@pytest.mark.parametrize("seed", range(20))
def test_an_assignment_has_the_bytes_that_kio_writes(version: int, seed: int) -> None:
    theirs = random_entity(_kio_assignment(version), Random(seed))
    data = struct.pack(">h", version) + kio_encode(theirs)
    ours = decode_assignment(data)

    assert ours.assigned_partitions == _partitions(theirs.assigned_partitions)
    assert ours.user_data == theirs.user_data
    assert encode_assignment(ours, version) == data


def test_what_a_newer_version_added_is_not_read() -> None:
    subscription = Subscription(topics=("a",), generation_id=7, rack_id="r")
    newer = struct.pack(">h", 9) + encode_subscription(subscription)[2:] + b"news"
    assert decode_subscription(newer) == subscription


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\xff\xff\0\0\0\0", encode_subscription(Subscription(topics=("a",)))[:-1]]
)
def test_bytes_that_are_not_a_subscription_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_subscription(data)


def test_a_previous_assignment_is_known_bytes() -> None:
    # One topic "t" with partitions 0 and 2, generation 5.
    data = bytes.fromhex("00000001 0001 74 00000002 00000000 00000002 00000005")
    partitions = [TopicPartition("t", 2), TopicPartition("t", 0)]
    previous = PreviousAssignment(previous_assignment=by_topic(partitions), generation=5)
    assert encode_previous_assignment(previous) == data
    assert decode_previous_assignment(data) == previous


def test_a_previous_assignment_without_a_generation_can_be_read() -> None:
    previous = PreviousAssignment(previous_assignment=by_topic([TopicPartition("t", 1)]))
    assert decode_previous_assignment(encode_previous_assignment(previous, version=0)) == previous


def test_partitions_are_grouped_by_topic_in_order_and_listed_again() -> None:
    partitions = [TopicPartition("b", 1), TopicPartition("a", 3), TopicPartition("b", 0)]
    assert each_partition(by_topic(partitions)) == tuple(sorted(partitions))


def test_an_empty_assignment_is_read_by_kio() -> None:
    data = encode_assignment(Assignment(assigned_partitions=()), 0)
    entity, _ = entity_reader(_kio_assignment(0))(data[2:], 0)
    assert entity.assigned_partitions == ()
    again = io.BytesIO()
    entity_writer(_kio_assignment(0))(again, entity)
    assert again.getvalue() == data[2:]
