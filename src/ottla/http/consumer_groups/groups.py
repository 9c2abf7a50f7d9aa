"""Consumer groups: who is in them, how far they have read, how far they are behind."""

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
    from collections.abc import Mapping

    from ottla.broker.broker import Broker
    from ottla.http.framework.endpoints import Call
    from ottla.wire.messages.list_groups import ListedGroup


class GroupSummary(Struct, frozen=True, kw_only=True):
    id: str
    state: str
    type: str
    protocol_type: str
    members: int | None
    """null, if the group has topics that the client may not describe."""
    lag: int
    """How many messages it has not read yet, of the partitions it has committed offsets for."""


class GroupList(Struct, frozen=True, kw_only=True):
    groups: list[GroupSummary]


class GroupOffset(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    committed: int
    """The next offset that it will read; of a share group, the first that it is not done with."""
    end: int
    """The offset that the next message gets."""
    lag: int


class Group(Struct, frozen=True, kw_only=True):
    id: str
    state: str
    type: str
    """classic or consumer: whether members assign, or the broker does; share: whether they share partitions."""
    epoch: int | None
    """Of a consumer or share group: how often it was assigned anew."""
    protocol_type: str
    protocol: str
    """How it shares out partitions."""
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
        try:
            found.append(await _summary(call, one))
        except ApiError as refused:
            # It was deleted in between.
            if refused.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
        await others()
    return GroupList(groups=found)


async def _summary(call: Call, group: ListedGroup) -> GroupSummary:
    """A group that may not be looked into must not keep others from being listed."""
    show = _shown_share_group if group.group_type == SHARE else _shown
    members, lag = None, 0
    try:
        shown = await show(call, group.group_id)
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


async def show_group(call: Call) -> Group:
    group_id = call.path("id")
    if await is_share_group(call, group_id):
        return await _shown_share_group(call, group_id)
    return await _shown(call, group_id)


async def _shown(call: Call, group_id: str) -> Group:
    about = await describe(call, group_id)
    offsets = await lag_of(call.broker, await committed_offsets(call, group_id))
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


async def _shown_share_group(call: Call, group_id: str) -> Group:
    about = await describe_share_group(call, group_id)
    shared = await share_offsets(call, group_id)
    # What is accepted and delayed in between is no lag: the group itself knows better than its start tells.
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
    if await is_share_group(call, group_id):
        starts = {place: each.start for place, each in (await share_offsets(call, group_id)).items()}
        return GroupOffsets(offsets=listed(starts))
    await describe(call, group_id)
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
