"""Consumer groups: members, committed offsets, lag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.interfaces.partition_facts import bounds
from ottla.core.errors import ApiError, ErrorCode
from ottla.core.ids import TopicPartition
from ottla.core.security import AclOperation, ResourceType
from ottla.http.consumer_groups.described_groups import GroupMember, describe
from ottla.http.consumer_groups.offsets import Place, ReadOffset, committed_offsets, listed
from ottla.http.consumer_groups.share_groups import (
    SHARE,
    describe_share_group,
    is_share_group,
    share_members,
    share_offsets,
)
from ottla.http.framework.endpoints import Endpoint, others
from ottla.http.framework.models import Done, Struct
from ottla.http.resources.configs import GROUP, ConfigChanges, ConfigList, changed, described
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ottla.broker.broker import Broker
    from ottla.http.framework.endpoints import Call
    from ottla.wire.messages.list_groups import ListedGroup


class GroupSummary(Struct, frozen=True, kw_only=True):
    id: str
    state: str
    type: str
    protocol_type: str
    members: int | None
    """null if the group has topics that the user may not describe."""
    lag: int
    """The lag over the partitions with committed offsets or a member."""


class GroupList(Struct, frozen=True, kw_only=True):
    groups: list[GroupSummary]


class GroupOffset(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    committed: int | None
    """The committed offset; for a share group, the share-partition start offset. Null for a partition that is assigned
    to a member, but has no committed offset."""
    end: int
    """The log end offset."""
    lag: int
    """The messages after the committed offset; all messages of the partition if there is none."""


class Group(Struct, frozen=True, kw_only=True):
    id: str
    state: str
    type: str
    """classic, consumer or share."""
    epoch: int | None
    """The group epoch of a consumer or share group."""
    protocol_type: str
    protocol: str
    """The assignor."""
    members: list[GroupMember]
    offsets: list[GroupOffset]
    lag: int


class GroupOffsets(Struct, frozen=True, kw_only=True):
    """The input of `POST …/reset`: save it to a file to restore it later."""

    to: Literal["offsets"] = "offsets"
    offsets: list[ReadOffset]


async def describable_groups(call: Call) -> list[ListedGroup]:
    answer = await call.ask(ListGroupsRequest())
    raise_refusal(answer.error_code)
    # DESCRIBE on the cluster lists all groups, but does not allow describing them.
    shown = [one for one in answer.groups if call.may(AclOperation.DESCRIBE, ResourceType.GROUP, one.group_id)]
    return sorted(shown, key=lambda group: group.group_id)


async def list_groups(call: Call) -> GroupList:
    found = []
    for one in await describable_groups(call):
        try:
            found.append(await _summary(call, one))
        except ApiError as refused:
            # The group was deleted meanwhile.
            if refused.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
        await others()
    return GroupList(groups=found)


async def _summary(call: Call, group: ListedGroup) -> GroupSummary:
    """Summarize a group. One that the user may not describe must not prevent others from being listed."""
    members, lag = None, 0
    try:
        shown = await group_of(call, group)
        members, lag = len(shown.members), shown.lag
    except ApiError as refused:
        if refused.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
    return GroupSummary(
        id=group.group_id,
        state=group.group_state,
        type=group.group_type,
        protocol_type=group.protocol_type,
        members=members,
        lag=lag,
    )


async def group_of(call: Call, listed_group: ListedGroup) -> Group:
    show = _shown_share_group if listed_group.group_type == SHARE else _shown
    return await show(call, listed_group.group_id)


async def show_group(call: Call) -> Group:
    group_id = call.path("id")
    if await is_share_group(call, group_id):
        return await _shown_share_group(call, group_id)
    return await _shown(call, group_id)


async def _shown(call: Call, group_id: str) -> Group:
    about = await describe(call, group_id)
    committed: dict[Place, int | None] = dict.fromkeys(_assigned(about.members))
    committed |= await committed_offsets(call, group_id)
    offsets = await lag_of(call.broker, committed)
    return Group(
        id=group_id,
        state=about.state,
        type=about.type,
        epoch=about.epoch,
        protocol_type=about.protocol_type,
        protocol=about.protocol,
        members=about.members,
        offsets=offsets,
        lag=sum(one.lag for one in offsets),
    )


def _assigned(members: Iterable[GroupMember]) -> Iterator[Place]:
    for member in members:
        for each in member.assignment:
            yield from ((each.topic, partition) for partition in each.partitions)


async def _shown_share_group(call: Call, group_id: str) -> Group:
    about = await describe_share_group(call, group_id)
    shared = await share_offsets(call, group_id)
    # Accepted and delayed records in between do not count: the group's own lag is more precise than its start offset.
    offsets = [
        msgspec.structs.replace(one, lag=shared[one.topic, one.partition].lag)
        for one in await lag_of(call.broker, {place: each.start for place, each in shared.items()})
    ]
    return Group(
        id=group_id,
        state=about.group_state,
        type=SHARE,
        epoch=about.group_epoch,
        protocol_type=SHARE,
        protocol=about.assignor_name,
        members=share_members(about),
        offsets=offsets,
        lag=sum(one.lag for one in offsets),
    )


async def show_configs(call: Call) -> ConfigList:
    return await described(call, GROUP, call.path("id"))


async def change_configs(call: Call) -> ConfigList:
    return await changed(call, GROUP, call.path("id"), await call.body(ConfigChanges))


async def lag_of(broker: Broker, committed: Mapping[Place, int | None]) -> list[GroupOffset]:
    states = broker.topics.by_name
    there = [(name, at) for name, at in sorted(committed) if name in states and at < len(states[name].partitions)]
    known = await bounds(broker, [states[name].partitions[at] for name, at in there])
    found = []
    for place in there:
        offset, (start, end) = committed[place], known[TopicPartition(*place)]
        lag = max(0, end - (start if offset is None else offset))
        found.append(GroupOffset(topic=place[0], partition=place[1], committed=offset, end=end, lag=lag))
    return found


async def show_offsets(call: Call) -> GroupOffsets:
    group_id = call.path("id")
    if await is_share_group(call, group_id):
        starts = {place: each.start for place, each in (await share_offsets(call, group_id)).items()}
        return GroupOffsets(offsets=listed(starts))
    await describe(call, group_id)
    return GroupOffsets(offsets=listed(await committed_offsets(call, group_id)))


async def delete_group(call: Call) -> Done:
    group_id = call.path("id")
    [result] = (await call.ask(DeleteGroupsRequest(groups_names=(group_id,)))).results
    missing = result.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    raise_refusal(result.error_code, f"no group {group_id!r}" if missing else None)
    return Done()


_GROUP: Final = "/v1/groups/{id}"

ENDPOINTS: Final = (
    Endpoint("GET", "/v1/groups", list_groups, "All consumer groups", answer=GroupList),
    Endpoint("GET", _GROUP, show_group, "A group with its members and lag", answer=Group),
    Endpoint("GET", f"{_GROUP}/offsets", show_offsets, "The committed offsets of a group", answer=GroupOffsets),
    Endpoint("GET", f"{_GROUP}/configs", show_configs, "The configs of a group", answer=ConfigList),
    Endpoint(
        "PATCH",
        f"{_GROUP}/configs",
        change_configs,
        "Change configs of a group, existing or not",
        body=ConfigChanges,
        answer=ConfigList,
    ),
    Endpoint("DELETE", _GROUP, delete_group, "Delete an empty group", answer=Done),
)
