"""Offset commits: the next member of the group continues there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ErrorCode

from .adapters.base import Committed, ConsumerOptions, Refused, values
from .adapters.confluent import Confluent
from .conftest import CLIENTS
from .making import receive, until

if TYPE_CHECKING:
    from ottla.core.ids import TopicPartition

    from .adapters.base import Client


@pytest.fixture
def topic(servers: str, topic: str) -> str:
    """A topic with ten records."""
    with CLIENTS[0].producer(servers) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number)
        producer.flush()
    return topic


@pytest.fixture
def in_group(name: str) -> ConsumerOptions:
    return ConsumerOptions(group=name)


def test_the_next_consumer_continues_at_the_committed_offset(
    client: Client, servers: str, at: TopicPartition, in_group: ConsumerOptions
) -> None:
    with client.consumer(servers, in_group) as first:
        first.subscribe(at.topic)
        receive(first, 10)
        first.commit({at: Committed(4)})
    with client.consumer(servers, in_group) as second:
        second.subscribe(at.topic)
        assert values(receive(second, 6)) == [b"%d" % number for number in range(4, 10)]


def test_commit_without_offsets_commits_received_records(
    client: Client, servers: str, at: TopicPartition, in_group: ConsumerOptions
) -> None:
    with client.consumer(servers, in_group) as consumer:
        consumer.subscribe(at.topic)
        receive(consumer, 10)
        consumer.commit()
        assert consumer.committed(at) == Committed(10)


def test_a_commit_keeps_its_metadata(
    client: Client, servers: str, at: TopicPartition, in_group: ConsumerOptions
) -> None:
    with client.consumer(servers, in_group) as consumer:
        consumer.assign(at)
        consumer.commit({at: Committed(7, "bis hierhin: größe 7")})
        assert consumer.committed(at) == Committed(7, "bis hierhin: größe 7")


@pytest.mark.parametrize("reader", CLIENTS, ids=lambda reader: f"seen-by-{reader}")
def test_every_client_reads_offsets_committed_by_another(
    client: Client, reader: Client, servers: str, at: TopicPartition, in_group: ConsumerOptions
) -> None:
    with client.consumer(servers, in_group) as consumer:
        consumer.assign(at)
        # confluent-kafka writes metadata with the trailing zero of a C string, and reads up to the first zero.
        consumer.commit({at: Committed(6, "note" if isinstance(client, Confluent) else "note\0")})
    with reader.consumer(servers, in_group) as consumer:
        consumer.assign(at)
        committed = consumer.committed(at)
    assert committed is not None
    assert committed.offset == 6
    assert committed.metadata.rstrip("\0") == "note"


def test_nothing_is_committed_at_first(
    client: Client, servers: str, at: TopicPartition, in_group: ConsumerOptions
) -> None:
    with client.consumer(servers, in_group) as consumer:
        consumer.assign(at)
        assert consumer.committed(at) is None


def test_metadata_beyond_the_limit_is_refused(
    client: Client, servers: str, at: TopicPartition, in_group: ConsumerOptions
) -> None:
    with client.consumer(servers, in_group) as consumer:
        consumer.assign(at)
        with pytest.raises(Refused) as refused:
            consumer.commit({at: Committed(1, "x" * 5000)})
        assert refused.value.code == ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert consumer.committed(at) is None


def test_a_consumer_commits_automatically_if_configured(
    client: Client, servers: str, at: TopicPartition, name: str
) -> None:
    options = ConsumerOptions(group=name, commits_by_itself=True)
    with client.consumer(servers, options) as consumer:
        consumer.subscribe(at.topic)
        receive(consumer, 10)

        def is_committed() -> bool:
            consumer.poll(0.02)
            return consumer.committed(at) == Committed(10)

        until(is_committed)


def test_lag_is_the_log_end_offset_minus_the_committed_offset(
    client: Client, servers: str, at: TopicPartition, in_group: ConsumerOptions
) -> None:
    with client.consumer(servers, in_group) as consumer:
        consumer.assign(at)
        consumer.commit({at: Committed(4)})
    # Another client of the same group reads the offset without being a member.
    with client.consumer(servers, in_group) as watcher:
        watcher.assign(at)
        committed = watcher.committed(at)
        _, end = watcher.begin_and_end(at)
    assert committed is not None
    assert end - committed.offset == 6
