"""Consumer groups: who is in them, how far they have read, how far they are behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ottla.broker.asking import raise_refusal
from ottla.broker.partition_facts import bounds
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.core.security import AclOperation, ResourceType
from ottla.http.assignments import partitions_in
from ottla.http.endpoints import Endpoint, others
from ottla.http.models import Done, Struct
from ottla.http.offsets import Place, ReadOffset, committed_offsets, listed
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.broker import Broker
    from ottla.http.endpoints import Call
    from ottla.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember


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
        described = await _described(call, one.group_id)
        lags = await lag_of(call.broker, await committed_offsets(call, one.group_id))
        found.append(
            GroupSummary(
                id=one.group_id,
                state=one.group_state,
                type=one.group_type,
                protocol_type=one.protocol_type,
                members=len(described.members),
                lag=sum(one.lag for one in lags),
            )
        )
        await others()
    return GroupList(groups=found)


async def show_group(call: Call) -> Group:
    group_id = call.path("id")
    described = await _described(call, group_id)
    raise_refusal(described.error_code, described.error_message)
    offsets = await lag_of(call.broker, await committed_offsets(call, group_id))
    return Group(
        id=group_id,
        state=described.group_state,
        protocol_type=described.protocol_type,
        protocol=described.protocol_data,
        members=[_member(member) for member in described.members],
        offsets=offsets,
        lag=sum(one.lag for one in offsets),
    )


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


async def lag_of(broker: Broker, committed: Mapping[Place, int]) -> list[GroupOffset]:
    states = broker.topics.by_name
    there = [(name, at) for name, at in sorted(committed) if name in states and at < len(states[name].partitions)]
    known = await bounds(broker, [states[name].partitions[at] for name, at in there])
    found = []
    for place in there:
        offset, end = committed[place], known[TopicPartition(*place)].end
        lag = max(0, end - offset)
        found.append(GroupOffset(topic=place[0], partition=place[1], committed=offset, end=end, lag=lag))
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
    Endpoint("DELETE", _GROUP, delete_group, "Delete a group without members", answer=Done),
)
