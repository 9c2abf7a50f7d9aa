"""Classic members in a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

To such a member the group looks like a classic group led by another member. Its generation is its member epoch; it is
told to rejoin whenever there is a reconciliation step, and takes the step by joining.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from ottla.core.errors import ErrorCode, ProtocolError
from ottla.groups.actions import AnswerJoin, AnswerLeave, AnswerSync, refuse_join, refuse_sync
from ottla.groups.consumer.conversion import (
    assignment_bytes,
    can_be_classic,
    classic_metadata,
    downgraded,
    partitions_by_id,
)
from ottla.groups.consumer.current import MemberState
from ottla.groups.consumer.formats import MemberValue
from ottla.groups.consumer.update import Update
from ottla.groups.consumer.waits import Wait
from ottla.groups.refusals import Refused
from ottla.groups.subscription import CONSUMER_PROTOCOL
from ottla.wire.consumer_protocol import decode_subscription
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from ottla.groups.actions import Action, Caller, Token
    from ottla.groups.consumer.current import Current
    from ottla.groups.consumer.formats import ClassicMemberMetadata
    from ottla.groups.consumer.group import ConsumerGroup
    from ottla.wire.consumer_protocol import Subscription
    from ottla.wire.messages.heartbeat import HeartbeatRequest
    from ottla.wire.messages.join_group import JoinGroupRequest
    from ottla.wire.messages.leave_group import LeaveGroupRequest
    from ottla.wire.messages.sync_group import SyncGroupRequest

_FIRST_WITH_REQUIRED_MEMBER_ID: Final = 4
_FIRST_LEAVE_OF_MANY: Final = 3


class ClassicMembers:
    def __init__(self, group: ConsumerGroup) -> None:
        self._group = group
        self._state = group.state_of_members

    # ── Joining ──────────────────────────────────────────────────────────────────────────────────────────────

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int) -> list[Action]:
        new_id = request.member_id or f"{request.group_instance_id or caller.client_id}-{self._new_uuid()}"
        try:
            subscription = self._check_join(request, caller.version)
            old_id = self._replaced(request)
        except Refused as refused:
            member_id = new_id if refused.code is ErrorCode.MEMBER_ID_REQUIRED else request.member_id
            return [refuse_join(caller.token, refused.code, member_id)]
        return self._join(structs.replace(request, member_id=new_id), subscription, old_id, caller, now_ms)

    def _join(  # noqa: PLR0913
        self, request: JoinGroupRequest, subscription: Subscription, old_id: str | None, caller: Caller, now_ms: int
    ) -> list[Action]:
        group, member_id = self._group, request.member_id
        update = Update(group, now_ms)
        generation = self._state.epoch
        if old_id is not None:
            update.replace(old_id, member_id)
            group.forget_deadlines(old_id)
        update.subscribe(member_id, self._member_value(request, subscription, caller))
        if old_id is not None and can_be_classic(self._state, group.environment.config):
            # This member replaced the last member with the consumer protocol.
            actions, classic = downgraded(group, update, generation, now_ms)
            return [*actions, *classic.join(request, caller, now_ms)]
        update.refresh()
        update.assign()
        owned = partitions_by_id(subscription.owned_partitions, group.environment.topics)
        current = update.reconcile(member_id, owned)
        group.keep_alive(member_id, now_ms)
        group.no_longer_expect(Wait.REJOIN, member_id)
        group.no_longer_expect(Wait.REVOCATION, member_id)
        group.expect(Wait.SYNC, member_id, now_ms)
        response = JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=current.epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=request.protocols[0].name,
            leader="",
            member_id=member_id,
            members=(),
        )
        return [*update.actions(), AnswerJoin(caller.token, response)]

    def _check_join(self, request: JoinGroupRequest, version: int) -> Subscription:
        config = self._group.environment.config
        is_known = request.member_id in self._state.members or self._static(request.group_instance_id) is not None
        if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
            raise Refused(ErrorCode.INVALID_SESSION_TIMEOUT)
        if not is_known and len(self._state.members) >= config.consumer_max_size:
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not self._has_protocol_in_common(request):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        is_dynamic = request.group_instance_id is None
        if is_dynamic and not request.member_id and version >= _FIRST_WITH_REQUIRED_MEMBER_ID:
            raise Refused(ErrorCode.MEMBER_ID_REQUIRED)
        try:
            return decode_subscription(request.protocols[0].metadata)
        except ProtocolError:
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from None

    def _has_protocol_in_common(self, request: JoinGroupRequest) -> bool:
        """Whether it shares a protocol with the other classic members, so that the group may be converted back."""
        if request.protocol_type != CONSUMER_PROTOCOL or not request.protocols:
            return False
        common = {each.name for each in request.protocols}
        for member in self._state.members.values():
            if (classic := member.classic_member_metadata) is not None:
                common &= {each.name for each in classic.supported_protocols}
        return bool(common)

    def _replaced(self, request: JoinGroupRequest) -> str | None:
        """The id of the static member that is replaced, if any."""
        static_id = self._static(request.group_instance_id)
        if request.group_instance_id is None or not request.member_id:
            return static_id
        self._check_static(static_id, request.member_id)
        return None

    def _member_value(self, request: JoinGroupRequest, subscription: Subscription, caller: Caller) -> MemberValue:
        # Version 0 has no rebalance timeout: the session timeout is used.
        timeout_ms = request.rebalance_timeout_ms
        return MemberValue(
            instance_id=request.group_instance_id,
            rack_id=subscription.rack_id,
            client_id=caller.client_id,
            client_host=caller.client_host,
            subscribed_topic_names=tuple(sorted(set(subscription.topics))),
            subscribed_topic_regex="",
            rebalance_timeout_ms=request.session_timeout_ms if timeout_ms < 0 else timeout_ms,
            classic_member_metadata=classic_metadata(request.session_timeout_ms, request.protocols),
        )

    # ── Heartbeats ───────────────────────────────────────────────────────────────────────────────────────────

    def sync(self, request: SyncGroupRequest, token: Token, now_ms: int) -> list[Action]:
        group, member_id = self._group, request.member_id
        try:
            metadata = self._member(request)
        except Refused as refused:
            return [refuse_sync(token, refused.code)]
        current = self._state.current(member_id)
        first = metadata.supported_protocols[0]
        type_differs = request.protocol_type not in (None, CONSUMER_PROTOCOL)
        if type_differs or request.protocol_name not in (None, first.name):
            return [refuse_sync(token, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)]
        if self._state.epoch > current.epoch and current.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_rejoin(member_id, now_ms)
            return [refuse_sync(token, ErrorCode.REBALANCE_IN_PROGRESS)]
        group.no_longer_expect(Wait.SYNC, member_id)
        group.keep_alive(member_id, now_ms)
        response = SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment_bytes(current.assigned, first.metadata, group.environment.topics),
        )
        return [AnswerSync(token, response)]

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        member_id = request.member_id
        try:
            self._member(request)
        except Refused as refused:
            return refused.code
        self._group.keep_alive(member_id, now_ms)
        if not self._has_to_rejoin(member_id, self._state.current(member_id)):
            return ErrorCode.NONE
        self._expect_rejoin(member_id, now_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _has_to_rejoin(self, member_id: str, current: Current) -> bool:
        """Whether the member must rejoin, because that would be its next reconciliation step."""
        state = self._state
        if current.epoch < state.epoch or current.state is MemberState.UNREVOKED_PARTITIONS:
            return True
        missing = state.target(member_id) - current.assigned.keys()
        return bool(missing) and all(state.owner(each) is None for each in missing)

    def _expect_rejoin(self, member_id: str, now_ms: int) -> None:
        if not self._group.expects(Wait.REJOIN, member_id):
            self._group.expect(Wait.REJOIN, member_id, now_ms)

    # ── Leaving ──────────────────────────────────────────────────────────────────────────────────────────────

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> list[Action]:
        """Remove members that leave, or that an administrator removes by their instance ids."""
        is_of_many = caller.version >= _FIRST_LEAVE_OF_MANY
        leaving = request.members if is_of_many else (MemberIdentity(member_id=request.member_id),)
        gone: list[str] = []
        results = []
        for each in leaving:
            error = ErrorCode.NONE
            member_id = each.member_id or self._static(each.group_instance_id) or ""
            try:
                self._classic_member(member_id, each.group_instance_id)
                gone.append(member_id)
            except Refused as refused:
                error = refused.code
            results.append(
                MemberResponse(member_id=member_id, group_instance_id=each.group_instance_id, error_code=error)
            )
        error_code = ErrorCode.NONE if is_of_many else results[0].error_code
        response = LeaveGroupResponse(error_code=error_code, members=tuple(results))
        actions = self._group.let_go(gone, now_ms) if gone else []
        return [*actions, AnswerLeave(caller.token, response)]

    # ── The member of a request ──────────────────────────────────────────────────────────────────────────────

    def _member(self, request: SyncGroupRequest | HeartbeatRequest) -> ClassicMemberMetadata:
        metadata = self._classic_member(request.member_id, request.group_instance_id)
        if request.generation_id != self._state.current(request.member_id).epoch:
            raise Refused(ErrorCode.ILLEGAL_GENERATION)
        return metadata

    def _classic_member(self, member_id: str, instance_id: str | None) -> ClassicMemberMetadata:
        if instance_id is not None:
            self._check_static(self._static(instance_id), member_id)
        member = self._state.members.get(member_id)
        if member is None or member.classic_member_metadata is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        return member.classic_member_metadata

    def _check_static(self, static_id: str | None, member_id: str) -> None:
        if static_id is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if static_id != member_id:
            raise Refused(ErrorCode.FENCED_INSTANCE_ID)

    def _static(self, instance_id: str | None) -> str | None:
        return self._state.static_member(instance_id)

    def _new_uuid(self) -> str:
        return self._group.environment.new_uuid()
