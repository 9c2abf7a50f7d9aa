"""The groups that read a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ApiError, ErrorCode
from ottla.http.consumer_groups.groups import GroupOffset, describable_groups, group_of
from ottla.http.framework.endpoints import Endpoint, others
from ottla.http.framework.models import Struct
from ottla.http.resources.topics import topic_of

if TYPE_CHECKING:
    from ottla.http.consumer_groups.groups import Group
    from ottla.http.framework.endpoints import Call

_HIDDEN: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
"""A group that was deleted meanwhile, or one with topics that the user may not describe."""


class TopicReader(Struct, frozen=True, kw_only=True):
    client_id: str
    client_host: str
    partitions: list[int]


class TopicGroup(Struct, frozen=True, kw_only=True):
    id: str
    state: str
    type: str
    lag: int
    """In this topic."""
    members: list[TopicReader]
    """Members with partitions of this topic."""
    offsets: list[GroupOffset]


class TopicGroupList(Struct, frozen=True, kw_only=True):
    groups: list[TopicGroup]


async def list_topic_groups(call: Call) -> TopicGroupList:
    topic = topic_of(call).name
    found = []
    for listed in await describable_groups(call):
        try:
            group = part_of(await group_of(call, listed), topic)
        except ApiError as refused:
            if refused.code not in _HIDDEN:
                raise
            continue
        if group.offsets or group.members:
            found.append(group)
        await others()
    return TopicGroupList(groups=found)


def part_of(group: Group, topic: str) -> TopicGroup:
    """What a group has to do with a topic."""
    offsets = [one for one in group.offsets if one.topic == topic]
    members = [
        TopicReader(client_id=member.client_id, client_host=member.client_host, partitions=each.partitions)
        for member in group.members
        for each in member.assignment
        if each.topic == topic
    ]
    return TopicGroup(
        id=group.id,
        state=group.state,
        type=group.type,
        lag=sum(one.lag for one in offsets),
        members=members,
        offsets=offsets,
    )


ENDPOINTS: Final = (
    Endpoint(
        "GET", "/v1/topics/{name}/groups", list_topic_groups, "The groups that read a topic", answer=TopicGroupList
    ),
)
