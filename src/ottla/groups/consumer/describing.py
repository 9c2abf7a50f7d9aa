"""ConsumerGroupDescribe: a group with its members, their current and target assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ErrorCode
from ottla.groups.consumer.update import preferred_assignor
from ottla.groups.partitions import by_topic
from ottla.wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.groups.consumer.formats import MemberValue
    from ottla.groups.consumer.group import ConsumerGroup
    from ottla.groups.partitions import Partition
    from ottla.groups.topic_view import TopicView

_CLASSIC: Final = 0
_CONSUMER: Final = 1


def describe(group: ConsumerGroup) -> DescribedGroup:
    state, environment = group.state_of_members, group.environment
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=state.epoch,
        assignment_epoch=state.target_epoch,
        assignor_name=preferred_assignor(state) or environment.config.consumer_assignors[0],
        members=tuple(_member(group, member_id, member) for member_id, member in state.members.items()),
    )


def not_described(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )


def _member(group: ConsumerGroup, member_id: str, member: MemberValue) -> Member:
    state, topics = group.state_of_members, group.environment.topics
    current = state.current(member_id)
    return Member(
        member_id=member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=current.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
        subscribed_topic_regex=member.subscribed_topic_regex or "",
        assignment=_assignment((*current.assigned, *current.revoked), topics),
        target_assignment=_assignment(state.target(member_id), topics),
        member_type=_CONSUMER if member.classic_member_metadata is None else _CLASSIC,
    )


def _assignment(partitions: Iterable[Partition], topics: TopicView) -> Assignment:
    found = []
    for topic_id, indexes in by_topic(partitions):
        info = topics.by_id(topic_id)
        if info is not None:
            found.append(TopicPartitions(topic_id=topic_id, topic_name=info.name, partitions=indexes))
    return Assignment(topic_partitions=tuple(found))
