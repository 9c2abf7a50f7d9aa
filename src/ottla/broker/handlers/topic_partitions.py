"""DescribeTopicPartitions (75): topics by name, a page of partitions at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.requests import authorized_operations
from ottla.broker.requests.turns import Turns
from ottla.broker.topics import INTERNAL_TOPICS
from ottla.core.errors import ErrorCode, InvalidRequest
from ottla.core.ids import problem_with_topic_name
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
    from ottla.broker.topics import TopicState

_MOST_PARTITIONS: Final = 2000
"""Kafka's max.request.partition.size.limit, which is not configurable here."""


def describe_topic_partitions(
    broker: Broker, request: DescribeTopicPartitionsRequest, _context: Context
) -> InTurns[DescribeTopicPartitionsResponse]:
    try:
        names = _names(broker, request)
    except InvalidRequest as refused:
        asked = dict.fromkeys(topic.name for topic in request.topics)
        return _page([_without_partitions(name, refused.code) for name in asked], None)
    left = max(1, min(request.response_partition_limit, _MOST_PARTITIONS))
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    turns = Turns()
    for name in names:
        if turns.are_over():
            yield
        if left == 0:
            return _page(topics, Cursor(topic_name=name, partition_index=0))
        state = broker.topics.by_name.get(name)
        if state is None:
            topics.append(_without_partitions(name, _why_unknown(name), authorized_operations.ON_TOPIC))
            continue
        first = _first_partition(request.cursor, name)
        shown = state.partitions[first : first + left]
        topics.append(_described(broker, state, shown))
        left -= len(shown)
        if first + len(shown) < len(state.partitions):
            return _page(topics, Cursor(topic_name=name, partition_index=first + len(shown)))
    return _page(topics, None)


def _names(broker: Broker, request: DescribeTopicPartitionsRequest) -> list[str]:
    """The topics to describe, from the cursor; without names, every topic."""
    asked = {topic.name for topic in request.topics}
    cursor = request.cursor
    if cursor is not None:
        if asked and cursor.topic_name not in asked:
            raise InvalidRequest(f"the cursor's topic {cursor.topic_name!r} is not in the request")
        if cursor.partition_index < 0:
            raise InvalidRequest(f"invalid partition {cursor.partition_index} in the cursor")
    after = "" if cursor is None else cursor.topic_name
    return sorted(name for name in asked or broker.topics.by_name if name >= after)


def _first_partition(cursor: Cursor | None, name: str) -> int:
    return cursor.partition_index if cursor is not None and cursor.topic_name == name else 0


def _page(
    topics: Sequence[DescribeTopicPartitionsResponseTopic], next_cursor: Cursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=next_cursor)


def _described(broker: Broker, state: TopicState, shown: Sequence[Partition]) -> DescribeTopicPartitionsResponseTopic:
    placed = [(each.at.partition, broker.topology.placed(state, each.at.partition)) for each in shown]
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=state.name,
        topic_id=state.raw_id,
        is_internal=state.entry.is_internal,
        partitions=tuple(
            DescribeTopicPartitionsResponsePartition(
                error_code=each.error_code,
                partition_index=index,
                leader_id=each.leader,
                leader_epoch=each.leader_epoch,
                replica_nodes=each.replicas,
                isr_nodes=each.isr,
                eligible_leader_replicas=each.eligible,
                last_known_elr=(),
                offline_replicas=each.offline,
            )
            for index, each in placed
        ),
        topic_authorized_operations=authorized_operations.ON_TOPIC,
    )


def _why_unknown(name: str) -> ErrorCode:
    return ErrorCode.INVALID_TOPIC_EXCEPTION if problem_with_topic_name(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _without_partitions(
    name: str, code: ErrorCode, operations: int = authorized_operations.NOT_ASKED
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=NO_UUID,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        topic_authorized_operations=operations,
    )
