"""Consumer groups: who is in them, how far they have read, how far they are behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ottla.broker.asking import raise_refusal
from ottla.core.errors import ErrorCode
from ottla.core.security import AclOperation, ResourceType
from ottla.http import configs
from ottla.http.assignments import partitions_in
from ottla.http.configs import ConfigChanges, ConfigList
from ottla.http.endpoints import Endpoint, others
from ottla.http.models import Done, Struct
from ottla.http.offsets import Place, ReadOffset, committed_offsets, listed
from ottla.http.share_groups import SHARE, describe_share_group, share_offsets
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.broker import Broker
    from ottla.http.endpoints import Call
    from ottla.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
    from ottla.wire.messages.share_group_describe import Member


class GroupSummary(Struct, frozen=True, kw_only=True):
    id: str
    state: str
    type: str
    protocol_type: str
    members: int
    lag: int
    """How many messages it has not read yet, of the partitions it has committed offsets for."""


class GroupList(Struct, frozen=True, kw_only=True):
    groups: list[GroupSummary]


class AssignedTopic(Struct, frozen=True, kw_only=True):
    topic: str
    partitions: list[int]


class GroupMember(Struct, frozen=True, kw_only=True):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: list[AssignedTopic]


class GroupOffset(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    committed: int
    """The next offset that it will read."""
    end: int
    """The offset that the next message gets."""
    lag: int


class Group(Struct, frozen=True, kw_only=True):
    id: str
    state: str
    protocol_type: str
    protocol: str
    members: list[GroupMember]
    offsets: list[GroupOffset]
    lag: int


class GroupOffsets(Struct, frozen=True, kw_only=True):
    """What `POST …/reset` takes: save it to a file, and go back to it later."""

    to: Literal["offsets"] = "offsets"
    offsets: list[ReadOffset]


async def list_groups(call: Call) -> GroupList:
    answer = await call.ask(ListGroupsRequest())
    raise_refusal(answer.error_code)
    found = []
    # Who may describe the cluster is told of all groups, and may yet not look into them.
    shown = [one for one in answer.groups if call.may(AclOperation.DESCRIBE, ResourceType.GROUP, one.group_id)]
    for one in sorted(shown, key=lambda group: group.group_id):
        if one.group_type == SHARE:
            group = await _shown_share_group(call, one.group_id)
        else:
            group = await _shown(call, await _described(call, one.group_id))
        found.append(
            GroupSummary(
                id=one.group_id,
                state=one.group_state,
                type=one.group_type,
                protocol_type=one.protocol_type,
                members=len(group.members),
                lag=group.lag,
            )
        )
        await others()
    return GroupList(groups=found)


async def show_group(call: Call) -> Group:
    group_id = call.path("id")
    if call.broker.is_share_group(group_id):
        return await _shown_share_group(call, group_id)
    described = await _described(call, group_id)
    raise_refusal(described.error_code, described.error_message)
    return await _shown(call, described)


async def _shown(call: Call, described: DescribedGroup) -> Group:
    offsets = lag_of(call.broker, await committed_offsets(call, described.group_id))
    return Group(
        id=described.group_id,
        state=described.group_state,
        protocol_type=described.protocol_type,
        protocol=described.protocol_data,
        members=[_member(member) for member in described.members],
        offsets=offsets,
        lag=sum(one.lag for one in offsets),
    )


async def _shown_share_group(call: Call, group_id: str) -> Group:
    described = await describe_share_group(call, group_id)
    offsets = [
        GroupOffset(
            topic=topic.topic_name,
            partition=part.partition_index,
            committed=part.start_offset,
            end=call.broker.topics.partition(topic.topic_name, part.partition_index).high_watermark,
            lag=part.lag,
        )
        for topic in await share_offsets(call, group_id)
        for part in topic.partitions
        if part.error_code == ErrorCode.NONE and part.start_offset >= 0
    ]
    return Group(
        id=group_id,
        state=described.group_state,
        protocol_type=SHARE,
        protocol=described.assignor_name,
        members=[_share_member(member) for member in described.members],
        offsets=offsets,
        lag=sum(one.lag for one in offsets),
    )


def _share_member(member: Member) -> GroupMember:
    return GroupMember(
        member_id=member.member_id,
        instance_id=None,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        assignment=[
            AssignedTopic(topic=each.topic_name, partitions=list(each.partitions))
            for each in member.assignment.topic_partitions
        ],
    )


async def show_configs(call: Call) -> ConfigList:
    return await configs.described(call, configs.GROUP, call.path("id"))


async def change_configs(call: Call) -> ConfigList:
    return await configs.changed(call, configs.GROUP, call.path("id"), await call.body(ConfigChanges))


async def _described(call: Call, group_id: str) -> DescribedGroup:
    [described] = (await call.ask(DescribeGroupsRequest(groups=(group_id,)))).groups
    return described  # type: ignore[no-any-return]


def _member(member: DescribedGroupMember) -> GroupMember:
    assigned = partitions_in(member.member_assignment)
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        assignment=[AssignedTopic(topic=topic, partitions=numbers) for topic, numbers in sorted(assigned.items())],
    )


def lag_of(broker: Broker, committed: Mapping[Place, int]) -> list[GroupOffset]:
    found = []
    for (topic, index), offset in sorted(committed.items()):
        state = broker.topics.by_name.get(topic)
        if state is not None and index < len(state.partitions):
            end = state.partitions[index].high_watermark
            lag = max(0, end - offset)
            found.append(GroupOffset(topic=topic, partition=index, committed=offset, end=end, lag=lag))
    return found


async def show_offsets(call: Call) -> GroupOffsets:
    group_id = call.path("id")
    described = await _described(call, group_id)
    raise_refusal(described.error_code, described.error_message)
    return GroupOffsets(offsets=listed(await committed_offsets(call, group_id)))


async def delete_group(call: Call) -> Done:
    group_id = call.path("id")
    [result] = (await call.ask(DeleteGroupsRequest(groups_names=(group_id,)))).results
    missing = result.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    raise_refusal(result.error_code, f"there is no group {group_id!r}" if missing else None)
    return Done()


_GROUP: Final = "/v1/groups/{id}"

ENDPOINTS: Final = (
    Endpoint("GET", "/v1/groups", list_groups, "All consumer groups", answer=GroupList),
    Endpoint("GET", _GROUP, show_group, "One group, its members and its lag", answer=Group),
    Endpoint("GET", f"{_GROUP}/offsets", show_offsets, "How far a group has read, to be kept", answer=GroupOffsets),
    Endpoint("GET", f"{_GROUP}/configs", show_configs, "The configs of a group", answer=ConfigList),
    Endpoint(
        "PATCH",
        f"{_GROUP}/configs",
        change_configs,
        "Change configs of a group, which need not exist yet",
        body=ConfigChanges,
        answer=ConfigList,
    ),
    Endpoint("DELETE", _GROUP, delete_group, "Delete a group without members", answer=Done),
)
