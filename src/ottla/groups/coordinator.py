"""The group rules as used by a broker:

- On start, `table.replay` every record of `__consumer_offsets`, and pass every end marker in it to
`table.transaction_ended`; then `table.start`. Pass every marker that is appended later.
- Carry out the actions of every call in order. For a write, append `records_of(action)`
and call `table.apply(action)` in one step, before any other call; then wait until the records are durable,
and only then send the responses that follow. If the append fails, answer those with `error_after_failed_append`,
and carry out the actions of `append_failed`; if it may be lost later, those of `persist_failed`.
- One timer: at `table.next_deadline_ms()` call `table.expire`. A slow one: `offsets.expire`.
- All times are milliseconds of a clock that does not jump and is based on wall-clock time (core.clock.SteadyClock):
they measure timeouts, and they are stored.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ErrorCode
from ottla.groups.actions import (
    AnswerLeave,
    LimitReached,
    Persist,
    PersistOffsets,
    PersistRecords,
    refuse_join,
    refuse_sync,
)
from ottla.groups.classic import ClassicGroup
from ottla.groups.commits import Commits
from ottla.groups.describing import describe
from ottla.groups.limits import Limits
from ottla.groups.refusals import Refused
from ottla.groups.states import State
from ottla.groups.table import GroupTable
from ottla.wire.messages.describe_groups import DescribedGroup
from ottla.wire.messages.leave_group import LeaveGroupResponse, MemberResponse

if TYPE_CHECKING:
    from ottla.groups.actions import Action, Caller, Token, Written
    from ottla.groups.consumer.coordinator import ConsumerGroups
    from ottla.groups.consumer.environment import Environment
    from ottla.wire.messages.heartbeat import HeartbeatRequest
    from ottla.wire.messages.join_group import JoinGroupRequest
    from ottla.wire.messages.leave_group import LeaveGroupRequest
    from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest
    from ottla.wire.messages.sync_group import SyncGroupRequest

_FIRST_LEAVE_OF_MANY: Final = 3
_FIRST_DESCRIPTION_WITH_NOT_FOUND: Final = 6


class Coordinator:
    def __init__(self, environment: Environment) -> None:
        self.table = GroupTable(environment)
        self.limits = Limits(self.table)
        self.offsets = Commits(self.table, self.limits)

    @cached_property
    def consumers(self) -> ConsumerGroups:
        from ottla.groups.consumer.coordinator import ConsumerGroups  # imported lazily

        return ConsumerGroups(self.table, self.limits)

    # ── Members ──────────────────────────────────────────────────────────────────────────────────────────────

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int) -> list[Action]:
        if not request.group_id:
            return [refuse_join(caller.token, ErrorCode.INVALID_GROUP_ID, request.member_id)]
        try:
            self.limits.check_join(request, caller)
        except Refused as refused:
            note = LimitReached(request.group_id, str(refused))
            return [note, refuse_join(caller.token, refused.code, request.member_id)]
        if request.member_id and self.table.get(request.group_id) is None:
            return [refuse_join(caller.token, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)]
        group = self.table.get_or_make(request.group_id, now_ms)
        if isinstance(group, ClassicGroup):
            actions = group.join(request, caller, now_ms)
        elif group.is_unused:
            actions = self.consumers.join_empty(group, request, caller, now_ms)
        else:
            actions = group.classic_members.join(request, caller, now_ms)
        self.table.settle(group)
        return actions

    def sync(self, request: SyncGroupRequest, token: Token, now_ms: int) -> list[Action]:
        if not request.group_id:
            return [refuse_sync(token, ErrorCode.INVALID_GROUP_ID)]
        group = self.table.get(request.group_id)
        if group is None:
            return [refuse_sync(token, ErrorCode.UNKNOWN_MEMBER_ID)]
        members = group if isinstance(group, ClassicGroup) else group.classic_members
        try:
            self.limits.check_sync(request)
        except Refused as refused:
            return [LimitReached(request.group_id, str(refused)), refuse_sync(token, refused.code)]
        actions = members.sync(request, token, now_ms)
        self.table.settle(group)
        return actions

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self.table.get(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if isinstance(group, ClassicGroup):
            return group.heartbeat(request, now_ms)
        error = group.classic_members.heartbeat(request, now_ms)
        self.table.settle(group)
        return error

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> list[Action]:
        if not request.group_id:
            return [AnswerLeave(caller.token, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))]
        group = self.table.get(request.group_id)
        if group is None:
            return [AnswerLeave(caller.token, _leave_unknown_group(request, caller.version))]
        members = group if isinstance(group, ClassicGroup) else group.classic_members
        actions = members.leave(request, caller, now_ms)
        self.table.settle(group)
        return actions

    def forget(self, group_id: str, token: Token, now_ms: int) -> list[Action]:
        """Handle the lost connection of a pending request."""
        group = self.table.get(group_id)
        if group is None:
            return []
        actions = group.forget(token, now_ms)
        self.table.settle(group)
        return actions

    def append_failed(self, failed: Written, now_ms: int) -> list[Action]:
        """Handle records that were not appended to the log."""
        group = self.table.get(failed.group_id)
        if isinstance(failed, PersistRecords) and group is not None and not isinstance(group, ClassicGroup):
            group.take_back(failed, now_ms)
            self.table.settle(group)
        return self.persist_failed(failed, now_ms)

    def persist_failed(self, failed: Written, now_ms: int) -> list[Action]:
        """Handle appended records that may be lost."""
        group = self.table.get(failed.group_id)
        if not isinstance(group, ClassicGroup) or not isinstance(failed, Persist):
            return []
        actions = group.persist_failed(failed, now_ms)
        self.table.settle(group)
        return actions

    # ── Groups ───────────────────────────────────────────────────────────────────────────────────────────────

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        group = self.table.get(group_id)
        if isinstance(group, ClassicGroup):
            return describe(group)
        # Before KIP-1043 a group that does not exist was reported as Dead.
        is_told = version >= _FIRST_DESCRIPTION_WITH_NOT_FOUND
        text = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_told else ErrorCode.NONE,
            error_message=text if is_told else None,
            group_id=group_id,
            group_state=State.DEAD,
            protocol_type="",
            protocol_data="",
            members=(),
        )

    def listed(self, request: ListGroupsRequest) -> tuple[ListedGroup, ...]:
        states = {state.lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        return tuple(
            listed
            for listed in (group.listed() for group in self.table)
            if (not states or listed.group_state.lower() in states) and (not types or listed.group_type in types)
        )

    def delete(self, group_id: str) -> tuple[ErrorCode, list[Action]]:
        """Delete an empty group and its offsets; they are gone once the actions are applied."""
        group = self.table.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND, []
        if group.state is not State.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP, []
        actions: list[Action] = []
        doomed = {at for at, _ in self.table.offsets(group_id)} | self.table.pending.partitions(group_id)
        if doomed:
            actions.append(PersistOffsets(group_id, dict.fromkeys(doomed)))
        return ErrorCode.NONE, [*actions, group.deletion()]


def _leave_unknown_group(request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
    """The response for members of a group that does not exist."""
    if version < _FIRST_LEAVE_OF_MANY:
        return LeaveGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    unknown = (
        MemberResponse(
            member_id=each.member_id,
            group_instance_id=each.group_instance_id,
            error_code=ErrorCode.UNKNOWN_MEMBER_ID,
        )
        for each in request.members
    )
    return LeaveGroupResponse(error_code=ErrorCode.NONE, members=tuple(unknown))
