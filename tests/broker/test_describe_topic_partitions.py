"""DescribeTopicPartitions (75)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ErrorCode
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)

from .making import create_topic

if TYPE_CHECKING:
    from .raw_client import RawClient

ON_TOPIC = 3576
"""The authorized operations of Apache Kafka 4.3 without an authorizer."""

Pages = list[tuple[str, int]]


@pytest.fixture(scope="module")
def names() -> list[str]:
    return ["paged-a", "paged-b", "paged-c"]


@pytest.fixture
def topics(client: RawClient, names: list[str]) -> list[str]:
    """Topics with three, two and one partitions."""
    for name, count in zip(names, (3, 2, 1), strict=True):
        if not describe(client, name).topics[0].partitions:
            create_topic(client, name, count)
    return names


def describe(
    client: RawClient, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    at = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
    topics = tuple(TopicRequest(name=name) for name in names)
    return client.ask(DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=at))


def partitions_in(page: DescribeTopicPartitionsResponse) -> Pages:
    return [(topic.name or "", one.partition_index) for topic in page.topics for one in topic.partitions]


def next_of(page: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = page.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_a_topic_is_described_with_its_partitions(client: RawClient, name: str) -> None:
    topic_id = create_topic(client, name, 2)
    [topic] = describe(client, name).topics

    assert (topic.error_code, topic.name, topic.topic_id, topic.is_internal) == (ErrorCode.NONE, name, topic_id, False)
    assert topic.topic_authorized_operations == ON_TOPIC
    assert [one.partition_index for one in topic.partitions] == [0, 1]
    for one in topic.partitions:
        assert (one.error_code, one.leader_id, one.leader_epoch) == (ErrorCode.NONE, 0, 0)
        assert (one.replica_nodes, one.isr_nodes, one.offline_replicas) == ((0,), (0,), ())
        assert (one.eligible_leader_replicas, one.last_known_elr) == ((), ())


def test_topics_are_sorted_by_name_without_duplicates(client: RawClient, topics: list[str]) -> None:
    page = describe(client, topics[2], topics[0], topics[1], topics[0])

    assert [topic.name for topic in page.topics] == topics
    assert next_of(page) is None


def test_missing_topics_are_reported_as_unknown_or_invalid(client: RawClient) -> None:
    invalid, unknown = describe(client, "no-such", "a b").topics

    assert (invalid.name, invalid.error_code) == ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert (unknown.name, unknown.error_code, unknown.topic_id, unknown.partitions) == (
        "no-such",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        NO_UUID,
        (),
    )


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 100])
def test_paging_returns_every_partition_once(client: RawClient, topics: list[str], limit: int) -> None:
    seen: Pages = []
    cursor = None
    while True:
        page = describe(client, *topics, limit=limit, cursor=cursor)
        assert len(partitions_in(page)) <= limit
        seen += partitions_in(page)
        cursor = next_of(page)
        if cursor is None:
            break

    a, b, c = topics
    assert seen == [(a, 0), (a, 1), (a, 2), (b, 0), (b, 1), (c, 0)]


def test_a_page_has_the_cursor_of_the_next(client: RawClient, topics: list[str]) -> None:
    a, b, _ = topics

    assert next_of(describe(client, *topics, limit=2)) == (a, 2)
    assert next_of(describe(client, *topics, limit=3)) == (b, 0)
    assert next_of(describe(client, *topics, limit=6)) is None


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_holds_at_least_one_partition(client: RawClient, topics: list[str], limit: int) -> None:
    assert partitions_in(describe(client, *topics, limit=limit)) == [(topics[0], 0)]


def test_no_page_is_larger_than_the_broker_allows(client: RawClient, name: str) -> None:
    create_topic(client, name, 2001)
    page = describe(client, name, limit=1 << 30)

    assert len(partitions_in(page)) == 2000
    assert next_of(page) == (name, 2000)


def test_a_cursor_may_point_past_the_partitions_or_at_a_deleted_topic(client: RawClient, topics: list[str]) -> None:
    a, b, c = topics
    assert partitions_in(describe(client, a, b, cursor=(a, 99))) == [(b, 0), (b, 1)]

    page = describe(client, a, "paged-b0", c, cursor=("paged-b0", 1))
    assert [topic.error_code for topic in page.topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]


@pytest.mark.parametrize("cursor", [("somebody-else", 0), ("paged-a", -1)])
def test_an_invalid_cursor_is_refused(client: RawClient, topics: list[str], cursor: tuple[str, int]) -> None:
    page = describe(client, *topics, cursor=cursor)

    assert [(one.name, one.error_code, one.partitions) for one in page.topics] == [
        (name, ErrorCode.INVALID_REQUEST, ()) for name in topics
    ]


def test_without_names_every_topic_from_the_cursor_on_is_described(client: RawClient, topics: list[str]) -> None:
    assert {topic.name for topic in describe(client).topics} >= set(topics)

    page = describe(client, limit=3, cursor=("paged-aa", 5))
    assert partitions_in(page) == [(topics[1], 0), (topics[1], 1), (topics[2], 0)]
