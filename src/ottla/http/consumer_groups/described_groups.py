"""A described group, of any protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.core.errors import ErrorCode
from ottla.core.security import AclOperation, ResourceType
from ottla.http.consumer_groups.assignments import partitions_in
from ottla.http.framework.models import Struct
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest

if TYPE_CHECKING:
    from ottla.http.framework.endpoints import Call
    from ottla.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
    from ottla.wire.messages.consumer_group_describe import Member
    from ottla.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember


class AssignedTopic(Struct, frozen=True, kw_only=True):
    topic: str
    partitions: list[int]


class GroupMember(Struct, frozen=True, kw_only=True):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    epoch: int | None
    """In a consumer group: the member epoch."""
    assignment: list[AssignedTopic]


class Described(Struct, frozen=True, kw_only=True):
    state: str
    type: str
    epoch: int | None
    protocol_type: str
    protocol: str
    members: list[GroupMember]


async def describe(call: Call, group_id: str) -> Described:
    asked = ConsumerGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=False)
    [new] = (await call.ask(asked)).groups
    if new.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
        raise_refusal(new.error_code, new.error_message)
        return _of_consumer_group(new)
    [classic] = (await call.ask(DescribeGroupsRequest(groups=(group_id,)))).groups
    raise_refusal(classic.error_code, classic.error_message)
    return _of_classic_group(call, classic)


def _of_consumer_group(group: DescribedConsumerGroup) -> Described:
    return Described(
        state=group.group_state,
        type="consumer",
        epoch=group.group_epoch,
        protocol_type="consumer",
        protocol=group.assignor_name,
        members=[_member(each) for each in group.members],
    )


def _of_classic_group(call: Call, group: DescribedGroup) -> Described:
    return Described(
        state=group.group_state,
        type="classic",
        epoch=None,
        protocol_type=group.protocol_type,
        protocol=group.protocol_data,
        members=[_classic_member(call, each) for each in group.members],
    )


def _member(member: Member) -> GroupMember:
    topics = sorted((topic.topic_name, list(topic.partitions)) for topic in member.assignment.topic_partitions)
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        epoch=member.member_epoch,
        assignment=[AssignedTopic(topic=topic, partitions=numbers) for topic, numbers in topics],
    )


def _classic_member(call: Call, member: DescribedGroupMember) -> GroupMember:
    assigned = {
        topic: numbers
        for topic, numbers in partitions_in(member.member_assignment).items()
        if call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
    }
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        epoch=None,
        assignment=[AssignedTopic(topic=topic, partitions=numbers) for topic, numbers in sorted(assigned.items())],
    )
