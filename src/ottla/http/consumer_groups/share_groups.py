"""Share groups: members, lag, and resetting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.core.errors import ErrorCode
from ottla.http.consumer_groups.described_groups import AssignedTopic, GroupMember
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.http.consumer_groups.offsets import Place
    from ottla.http.framework.endpoints import Call
    from ottla.wire.messages.share_group_describe import DescribedGroup

SHARE: Final = "share"


class ShareOffset(NamedTuple):
    start: int
    """The share-partition start offset."""
    lag: int


async def is_share_group(call: Call, group_id: str) -> bool:
    if call.broker.cluster is None:
        return call.broker.is_share_group(group_id)
    request = ShareGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=False)
    [described] = (await call.ask(request)).groups
    return described.error_code == ErrorCode.NONE


async def describe_share_group(call: Call, group_id: str) -> DescribedGroup:
    request = ShareGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=False)
    [described] = (await call.ask(request)).groups
    raise_refusal(described.error_code, described.error_message)
    return described


def share_members(described: DescribedGroup) -> list[GroupMember]:
    return [
        GroupMember(
            member_id=member.member_id,
            instance_id=None,
            client_id=member.client_id,
            client_host=member.client_host.removeprefix("/"),
            epoch=member.member_epoch,
            assignment=[
                AssignedTopic(topic=each.topic_name, partitions=list(each.partitions))
                for each in member.assignment.topic_partitions
            ],
        )
        for member in described.members
    ]


async def share_offsets(call: Call, group_id: str) -> dict[Place, ShareOffset]:
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    [found] = (await call.ask(DescribeShareGroupOffsetsRequest(groups=(asked,)))).groups
    raise_refusal(found.error_code, found.error_message)
    return {
        (topic.topic_name, part.partition_index): ShareOffset(part.start_offset, part.lag)
        for topic in found.topics
        for part in topic.partitions
        if part.error_code == ErrorCode.NONE and part.start_offset >= 0
    }


async def move_share_group(call: Call, group_id: str, offsets: Mapping[Place, int]) -> None:
    by_topic: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        part = AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=offset)
        by_topic.setdefault(topic, []).append(part)
    topics = tuple(
        AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=tuple(parts)) for name, parts in by_topic.items()
    )
    answer = await call.ask(AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics))
    raise_refusal(answer.error_code, answer.error_message)
    for answered in answer.responses:
        for result in answered.partitions:
            raise_refusal(result.error_code, result.error_message)
