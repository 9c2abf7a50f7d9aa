"""Conversion between share groups and records of `__consumer_offsets`: the records of a change, and groups from
records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ottla.share import formats
from ottla.share.formats import GroupKey, InitializedTopic, MemberKey, TopicPartitions
from ottla.share.group import Initialized, Member, ShareGroup
from ottla.share.records import (
    CURRENT,
    GROUP,
    MEMBER,
    STATE_METADATA,
    TARGET,
    TARGET_OF_MEMBER,
    GroupRecord,
    KeyValue,
    encode_group_record,
)

if TYPE_CHECKING:
    from ottla.share.assignor import Assignment

_STABLE = 0


def records_between(before: ShareGroup, after: ShareGroup) -> list[KeyValue]:
    """The records to append for this change."""
    key = GroupKey(group_id=after.id)
    records = [
        record
        for member_id in before.members
        if member_id not in after.members
        for record in _gone(after.id, member_id)
    ]
    for member in after.members.values():
        records += _member_records(after.id, before.members.get(member.id), member)
    if before.epoch != after.epoch:
        records.append(encode_group_record(GROUP, key, formats.GroupMetadata(epoch=after.epoch)))
    if before.assignment_epoch != after.assignment_epoch:
        target = formats.TargetAssignmentMetadata(assignment_epoch=after.assignment_epoch)
        records.append(encode_group_record(TARGET, key, target))
    if before.initialized != after.initialized:
        records.append(encode_group_record(STATE_METADATA, key, _state_metadata(after)))
    return records


def records_of_end(group: ShareGroup) -> list[KeyValue]:
    """The tombstones of the group."""
    key = GroupKey(group_id=group.id)
    return [encode_group_record(kind, key, None) for kind in (STATE_METADATA, TARGET, GROUP)]


def replayed(group: ShareGroup, record: GroupRecord) -> ShareGroup | None:
    """The group after this record; None if it is deleted."""
    value = record.value
    if record.kind == GROUP:
        return None if value is None else replace(group, epoch=cast("formats.GroupMetadata", value).epoch)
    if record.kind == TARGET:
        epoch = 0 if value is None else cast("formats.TargetAssignmentMetadata", value).assignment_epoch
        return replace(group, assignment_epoch=epoch)
    if record.kind == STATE_METADATA:
        return replace(group, initialized=_initialized(cast("formats.StateMetadata | None", value)))
    return _replayed_member(group, cast("MemberKey", record.key).member_id, record)


def _replayed_member(group: ShareGroup, member_id: str, record: GroupRecord) -> ShareGroup:
    member = group.members.get(member_id)
    match record.value:
        case formats.MemberMetadata() as value:
            member = member or Member(id=member_id, client_id="", client_host="")
            member = replace(
                member,
                client_id=value.client_id,
                client_host=value.client_host,
                rack=value.rack_id,
                topics=frozenset(value.subscribed_topic_names),
            )
        case None if record.kind == MEMBER:
            left = {each: one for each, one in group.members.items() if each != member_id}
            return replace(group, members=left)
        case formats.TargetAssignment() as value if member is not None:
            member = replace(member, target=_assignment(value.topic_partitions))
        case formats.CurrentAssignment() as value if member is not None:
            member = replace(
                member,
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                assigned=_assignment(value.assigned_partitions),
            )
    return group if member is None else group.with_member(member)


def _member_records(group_id: str, before: Member | None, after: Member) -> list[KeyValue]:
    key = MemberKey(group_id=group_id, member_id=after.id)
    records = []
    metadata = _metadata(after)
    if before is None or _metadata(before) != metadata:
        records.append(encode_group_record(MEMBER, key, metadata))
    if before is None or before.target != after.target:
        target = formats.TargetAssignment(topic_partitions=_partitions(after.target))
        records.append(encode_group_record(TARGET_OF_MEMBER, key, target))
    if before is None or (before.epoch, before.assigned) != (after.epoch, after.assigned):
        current = formats.CurrentAssignment(
            member_epoch=after.epoch,
            previous_member_epoch=after.previous_epoch,
            state=_STABLE,
            assigned_partitions=_partitions(after.assigned),
        )
        records.append(encode_group_record(CURRENT, key, current))
    return records


def _gone(group_id: str, member_id: str) -> list[KeyValue]:
    key = MemberKey(group_id=group_id, member_id=member_id)
    return [encode_group_record(kind, key, None) for kind in (CURRENT, TARGET_OF_MEMBER, MEMBER)]


def _metadata(member: Member) -> formats.MemberMetadata:
    return formats.MemberMetadata(
        rack_id=member.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topics)),
    )


def _partitions(assignment: Assignment) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic_id=topic_id, partitions=those) for topic_id, those in assignment.items())


def _assignment(partitions: tuple[TopicPartitions, ...]) -> Assignment:
    return {each.topic_id: each.partitions for each in partitions}


def _state_metadata(group: ShareGroup) -> formats.StateMetadata:
    return formats.StateMetadata(
        initialized_topics=tuple(
            InitializedTopic(topic_id=topic_id, topic_name=one.name, partitions=tuple(sorted(one.partitions)))
            for topic_id, one in group.initialized.items()
        )
    )


def _initialized(value: formats.StateMetadata | None) -> dict[bytes, Initialized]:
    return {
        each.topic_id: Initialized(each.topic_name, frozenset(each.partitions))
        for each in (() if value is None else value.initialized_topics)
    }
