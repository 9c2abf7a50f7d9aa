"""Fetching and committing offsets of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.interfaces.partition_facts import bounds
from ottla.core.errors import OffsetOutOfRange
from ottla.core.ids import TopicPartition
from ottla.http.framework.models import OffsetNumber, PartitionIndex, RequestStruct, Struct
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ottla.broker.broker import Broker
    from ottla.http.framework.endpoints import Call

_BY_NAME: Final = 9

Place = tuple[str, int]
"""A topic and a partition."""


class GivenOffset(RequestStruct, frozen=True, kw_only=True):
    topic: str
    partition: PartitionIndex
    offset: OffsetNumber
    """The next offset to read."""


class ReadOffset(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    offset: int
    """The next offset to read."""


async def committed_offsets(call: Call, group_id: str) -> dict[Place, int]:
    """The committed offsets of existing topics."""
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None),))
    [group] = (await call.ask(request, _BY_NAME)).groups
    raise_refusal(group.error_code)
    return {
        (topic.name, part.partition_index): part.committed_offset
        for topic in group.topics
        for part in topic.partitions
        if part.committed_offset >= 0
    }


async def commit(call: Call, group_id: str, offsets: Mapping[Place, int]) -> None:
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        part = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata="rest"
        )
        by_topic.setdefault(topic, []).append(part)
    request = OffsetCommitRequest(
        group_id=group_id,
        member_id="",
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(parts)) for name, parts in by_topic.items()),
    )
    answer = await call.ask(request, _BY_NAME)
    for answered in answer.topics:
        for result in answered.partitions:
            raise_refusal(result.error_code)


async def checked(broker: Broker, given: Collection[GivenOffset]) -> dict[Place, int]:
    """These offsets, validated against existing partitions and their ranges."""
    known = await bounds(broker, [broker.topics.partition(one.topic, one.partition) for one in given])
    offsets = {}
    for one in given:
        at = TopicPartition(one.topic, one.partition)
        start, end = known[at]
        if not start <= one.offset <= end:
            raise OffsetOutOfRange(f"{at} has offsets {start} to {end}, not {one.offset}")
        offsets[one.topic, one.partition] = one.offset
    return offsets


def listed(offsets: Mapping[Place, int]) -> list[ReadOffset]:
    return [
        ReadOffset(topic=topic, partition=partition, offset=offset)
        for (topic, partition), offset in sorted(offsets.items())
    ]
