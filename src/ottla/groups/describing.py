"""The description of a classic group, for DescribeGroups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import ErrorCode
from ottla.groups.states import State
from ottla.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember

if TYPE_CHECKING:
    from ottla.groups.classic import ClassicGroup


def describe(group: ClassicGroup) -> DescribedGroup:
    protocol = group.protocol_name if group.state is State.STABLE else None
    members = (
        DescribedGroupMember(
            member_id=member.id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=b"" if protocol is None else member.metadata(protocol),
            member_assignment=member.assignment,
        )
        for member in group.members
    )
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=tuple(members),
    )
