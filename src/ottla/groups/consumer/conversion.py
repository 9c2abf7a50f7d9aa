"""Conversion from a classic group to a consumer group when the first new member joins, and back when the last leaves.

Members keep their partitions, and are told to rejoin in their own protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ErrorCode, ProtocolError
from ottla.core.ids import TopicPartition
from ottla.groups.classic import ClassicGroup
from ottla.groups.consumer.current import Current, MemberState
from ottla.groups.consumer.formats import (
    ClassicMemberMetadata,
    ClassicProtocol,
    CurrentKey,
    EpochKey,
    EpochValue,
    MemberKey,
    MemberValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetPartitions,
    TargetValue,
)
from ottla.groups.consumer.records import Record
from ottla.groups.members import Member
from ottla.groups.partitions import Partition, by_topic
from ottla.groups.refusals import Refused
from ottla.groups.states import State
from ottla.groups.subscription import CONSUMER_PROTOCOL
from ottla.wire.consumer_protocol import (
    NEWEST_VERSION,
    Assignment,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from ottla.wire.consumer_protocol import by_topic as by_topic_name
from ottla.wire.messages.join_group import JoinGroupRequestProtocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.groups.actions import Action
    from ottla.groups.config import GroupConfig
    from ottla.groups.consumer.environment import Environment
    from ottla.groups.consumer.group import ConsumerGroup
    from ottla.groups.consumer.state import GroupState
    from ottla.groups.consumer.update import Update
    from ottla.groups.partitions import Assigned
    from ottla.groups.topic_view import TopicView
    from ottla.wire.messages.consumer_protocol import TopicPartitions

UPGRADES: Final = frozenset({"upgrade", "bidirectional"})
DOWNGRADES: Final = frozenset({"downgrade", "bidirectional"})


# ── To a consumer group ──────────────────────────────────────────────────────────────────────────────────────


def records_of_upgrade(group: ClassicGroup, environment: Environment, now_ms: int) -> list[Record]:
    """The group as records of a consumer group. Raises Refused if it cannot be converted."""
    why_not = _why_no_upgrade(group, environment.config)
    if why_not is not None:
        text = f"Cannot upgrade classic group {group.group_id} to consumer group because {why_not}."
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, text)
    try:
        return list(_upgraded(group, environment.topics, now_ms))
    except ProtocolError:
        text = (
            f"Cannot upgrade classic group {group.group_id} to consumer group because the embedded consumer "
            "protocol is malformed."
        )
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, text) from None


def _why_no_upgrade(group: ClassicGroup, config: GroupConfig) -> str | None:
    if config.consumer_migration_policy not in UPGRADES:
        return "online upgrade is disabled"
    if not group.uses_consumer_protocol:
        return "the group does not use the consumer embedded protocol"
    if len(group.members) > config.consumer_max_size:
        return "the group size exceeds the consumer group maximum size"
    return None


def _upgraded(group: ClassicGroup, topics: TopicView, now_ms: int) -> Iterator[Record]:
    group_id, epoch = group.group_id, group.generation
    yield Record(EpochKey(group_id=group_id), EpochValue(epoch=epoch))
    yield Record(
        TargetEpochKey(group_id=group_id), TargetEpochValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
    )
    for member in group.members:
        assigned = _assigned(member.assignment, topics)
        target = tuple(TargetPartitions(topic_id=topic_id, partitions=each) for topic_id, each in by_topic(assigned))
        current = Current(epoch, epoch, MemberState.STABLE, dict.fromkeys(assigned, epoch))
        yield Record(MemberKey(group_id=group_id, member_id=member.id), _member_value(member, group.protocol_name))
        yield Record(TargetKey(group_id=group_id, member_id=member.id), TargetValue(topic_partitions=target))
        yield Record(CurrentKey(group_id=group_id, member_id=member.id), current.to_record())


def _member_value(member: Member, protocol_name: str | None) -> MemberValue:
    metadata = member.metadata(protocol_name) or member.protocols[0].metadata
    subscription = decode_subscription(metadata)
    return MemberValue(
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(subscription.topics)),
        subscribed_topic_regex="",
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic_member_metadata=classic_metadata(member.session_timeout_ms, member.protocols),
    )


def classic_metadata(session_timeout_ms: int, protocols: Iterable[JoinGroupRequestProtocol]) -> ClassicMemberMetadata:
    supported = tuple(ClassicProtocol(name=each.name, metadata=each.metadata) for each in protocols)
    return ClassicMemberMetadata(session_timeout_ms=session_timeout_ms, supported_protocols=supported)


def _assigned(assignment: bytes, topics: TopicView) -> Assigned:
    # Empty while the leader of the classic group has not sent the assignment yet.
    return partitions_by_id(decode_assignment(assignment).assigned_partitions if assignment else (), topics)


def partitions_by_id(named: Iterable[TopicPartitions], topics: TopicView) -> Assigned:
    """The partitions by topic id, of the named topics that exist."""
    known = ((topics.by_name(topic.topic), topic.partitions) for topic in named)
    return frozenset(Partition(info.id, index) for info, indexes in known if info is not None for index in indexes)


# ── To a classic group ───────────────────────────────────────────────────────────────────────────────────────


def can_be_classic(state: GroupState, config: GroupConfig) -> bool:
    """Whether only classic members are left, and at least one."""
    return (
        0 < len(state.members) <= config.max_size
        and config.consumer_migration_policy in DOWNGRADES
        and all(member.classic_member_metadata is not None for member in state.members.values())
    )


def downgraded(group: ConsumerGroup, update: Update, generation: int, now_ms: int) -> tuple[list[Action], ClassicGroup]:
    """Convert to a classic group, in which all members rejoin."""
    classic = _as_classic(group, generation, now_ms)
    written = update.conversion(classic)
    return [written, *classic.start(now_ms), *classic.rebalance(now_ms)], classic


def _as_classic(group: ConsumerGroup, generation: int, now_ms: int) -> ClassicGroup:
    state, environment = group.state_of_members, group.environment
    members = [_classic_member(member_id, member) for member_id, member in state.members.items()]
    classic = ClassicGroup(group.group_id, environment.config, environment.new_uuid, now_ms)
    classic.state = State.STABLE
    classic.generation = generation
    classic.protocol_type = CONSUMER_PROTOCOL
    for member in members:
        classic.members.add(member)
    classic.protocol_name = classic.members.select_protocol()
    classic.learn_topics()
    for member in members:
        metadata = member.metadata(classic.protocol_name)
        classic.members.assign(member, assignment_bytes(state.target(member.id), metadata, environment.topics))
    return classic


def _classic_member(member_id: str, member: MemberValue) -> Member:
    classic = member.classic_member_metadata
    if classic is None:
        raise TypeError(f"member {member_id} is not a classic member")
    return Member(
        id=member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=tuple(
            JoinGroupRequestProtocol(name=each.name, metadata=each.metadata) for each in classic.supported_protocols
        ),
    )


def assignment_bytes(assigned: Iterable[Partition], subscription: bytes, topics: TopicView) -> bytes:
    """The assignment in the format and version of the classic member's subscription."""
    version = min(int.from_bytes(subscription[:2], signed=True), NEWEST_VERSION)
    known = ((topics.by_id(each.topic_id), each.number) for each in assigned)
    named = by_topic_name(TopicPartition(info.name, index) for info, index in known if info is not None)
    return encode_assignment(Assignment(assigned_partitions=named), version)
