"""Conversion of a classic group to its record in `__consumer_offsets` and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.groups.formats import GroupMetadataValue, MemberMetadata
from ottla.groups.members import Member
from ottla.groups.states import State
from ottla.wire.messages.join_group import JoinGroupRequestProtocol

if TYPE_CHECKING:
    from ottla.groups.classic import ClassicGroup


def group_value(group: ClassicGroup) -> GroupMetadataValue:
    members = (
        MemberMetadata(
            member_id=member.id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol_name),
            assignment=member.assignment,
        )
        for member in group.members
    )
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.members.leader_id,
        current_state_timestamp=-1 if group.state_since_ms is None else group.state_since_ms,
        members=tuple(members),
    )


def restore(group: ClassicGroup, value: GroupMetadataValue) -> None:
    """Restore a new group to the state that was last written; sessions do not run before `start`."""
    group.state = State.STABLE if value.members else State.EMPTY
    group.state_since_ms = None if value.current_state_timestamp == -1 else value.current_state_timestamp
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    for each in value.members:
        group.members.add(
            Member(
                id=each.member_id,
                group_instance_id=each.group_instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                session_timeout_ms=each.session_timeout,
                rebalance_timeout_ms=each.session_timeout if each.rebalance_timeout < 0 else each.rebalance_timeout,
                protocols=(JoinGroupRequestProtocol(name=value.protocol or "", metadata=each.subscription),),
                assignment=each.assignment,
            )
        )
    if value.leader is not None and group.members.get(value.leader) is not None:
        group.members.leader_id = value.leader
    group.learn_topics()
