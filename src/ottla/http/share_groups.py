"""Share groups beside the others: who is in them, and how much they have not dealt with yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.asking import raise_refusal
from ottla.http.described_groups import AssignedTopic, GroupMember
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest

if TYPE_CHECKING:
    from ottla.http.endpoints import Call
    from ottla.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsResponseTopic
    from ottla.wire.messages.share_group_describe import DescribedGroup

SHARE: Final = "share"


async def describe_share_group(call: Call, group_id: str) -> DescribedGroup:
    request = ShareGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=False)
    [described] = (await call.ask(request)).groups
    raise_refusal(described.error_code, described.error_message)
    return described  # type: ignore[no-any-return]


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


async def share_offsets(call: Call, group_id: str) -> tuple[DescribeShareGroupOffsetsResponseTopic, ...]:
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    [found] = (await call.ask(DescribeShareGroupOffsetsRequest(groups=(asked,)))).groups
    raise_refusal(found.error_code, found.error_message)
    return found.topics  # type: ignore[no-any-return]
