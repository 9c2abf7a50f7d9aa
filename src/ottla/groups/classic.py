"""A classic group: the members compute the assignment; the broker coordinates.

Every request passes the time in milliseconds and returns actions. A waiting request is kept as the caller's
token until an action answers it or the caller cancels it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ErrorCode
from ottla.groups.actions import AnswerLeave, AnswerSync, MemberExpired, Persist, refuse_sync
from ottla.groups.deadlines import Phase
from ottla.groups.joining import Join
from ottla.groups.members import Member
from ottla.groups.rebalance import Rebalance
from ottla.groups.states import State
from ottla.groups.subscription import CONSUMER_PROTOCOL
from ottla.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.wire.messages.join_group import JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.wire.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.groups.actions import Action, Caller, Token
    from ottla.groups.config import GroupConfig
    from ottla.groups.deadlines import Key
    from ottla.groups.formats import GroupMetadataValue, OffsetCommitValue
    from ottla.groups.members import Members
    from ottla.wire.messages.heartbeat import HeartbeatRequest
    from ottla.wire.messages.join_group import JoinGroupRequest
    from ottla.wire.messages.leave_group import LeaveGroupRequest
    from ottla.wire.messages.sync_group import SyncGroupRequest

GROUP_TYPE: Final = "classic"
_FIRST_LEAVE_OF_MANY: Final = 3


class ClassicGroup:
    def __init__(self, group_id: str, config: GroupConfig, new_uuid: Callable[[], str], now_ms: int) -> None:
        self.group_id = group_id
        self._new_uuid = new_uuid
        self._rebalance = Rebalance(group_id, config, now_ms)

    @classmethod
    def restored(
        cls, group_id: str, value: GroupMetadataValue, config: GroupConfig, new_uuid: Callable[[], str]
    ) -> ClassicGroup:
        """A group as last written; sessions do not run before `start`."""
        group = cls(group_id, config, new_uuid, value.current_state_timestamp)
        rebalance = group._rebalance
        rebalance.state = State.STABLE if value.members else State.EMPTY
        rebalance.state_since_ms = None if value.current_state_timestamp == -1 else value.current_state_timestamp
        rebalance.generation = value.generation
        rebalance.protocol_type = value.protocol_type or None
        rebalance.protocol_name = value.protocol
        for each in value.members:
            rebalance.members.add(
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
        if value.leader is not None and rebalance.members.get(value.leader) is not None:
            rebalance.members.leader_id = value.leader
        rebalance.learn_topics()
        return group

    @classmethod
    def of_consumers(  # noqa: PLR0913
        cls,
        group_id: str,
        generation: int,
        members: Sequence[Member],
        config: GroupConfig,
        new_uuid: Callable[[], str],
        now_ms: int,
    ) -> ClassicGroup:
        """The classic group that a consumer group is converted to with these remaining members."""
        group = cls(group_id, config, new_uuid, now_ms)
        rebalance = group._rebalance
        rebalance.state = State.STABLE
        rebalance.generation = generation
        rebalance.protocol_type = CONSUMER_PROTOCOL
        for member in members:
            rebalance.members.add(member)
        rebalance.protocol_name = rebalance.members.select_protocol()
        rebalance.learn_topics()
        return group

    def start(self, now_ms: int) -> list[Action]:
        """Start the members' sessions."""
        rebalance = self._rebalance
        for member in rebalance.members:
            rebalance.keep_alive(member, now_ms)
        is_too_large = len(rebalance.members) > rebalance.config.max_size
        return rebalance.begin(now_ms) if is_too_large else []

    # ── State ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> State:
        return self._rebalance.state

    @property
    def generation(self) -> int:
        return self._rebalance.generation

    @property
    def members(self) -> Members:
        return self._rebalance.members

    @property
    def held_bytes(self) -> int:
        return self._rebalance.members.held_bytes

    def member_bytes(self, member_id: str, instance_id: str | None) -> int:
        """The memory of this member; 0 if there is no such member."""
        member = self.members.get(member_id) or self.members.static(instance_id)
        return 0 if member is None else member.held_bytes

    @property
    def member_names(self) -> list[str]:
        return [member.client_id or member.id for member in self.members]

    @property
    def protocol_name(self) -> str | None:
        return self._rebalance.protocol_name

    @property
    def is_stored(self) -> bool:
        """Whether it has records."""
        return self.generation > 0

    @property
    def is_unused(self) -> bool:
        """Whether it has nothing but offsets."""
        return self.state is State.EMPTY and not self._rebalance.members.pending

    @property
    def uses_consumer_protocol(self) -> bool:
        return self._rebalance.protocol_type == CONSUMER_PROTOCOL

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic; assumed if the subscriptions cannot be parsed."""
        topics = self._rebalance.subscribed_topics
        return self.uses_consumer_protocol if topics is None else topic in topics

    def retention_starts_ms(self, committed: OffsetCommitValue) -> int | None:
        """When offset retention starts; None while the group is active."""
        rebalance = self._rebalance
        if rebalance.protocol_type is None:
            return committed.commit_timestamp
        if self.state is State.EMPTY:
            since_ms = rebalance.state_since_ms
            return committed.commit_timestamp if since_ms is None else since_ms
        is_known = self.uses_consumer_protocol and rebalance.subscribed_topics is not None
        return committed.commit_timestamp if is_known and self.state is State.STABLE else None

    def describe(self) -> DescribedGroup:
        rebalance = self._rebalance
        protocol = rebalance.protocol_name if self.state is State.STABLE else None
        members = (
            DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol is None else member.metadata(protocol),
                member_assignment=member.assignment,
            )
            for member in rebalance.members
        )
        return DescribedGroup(
            error_code=ErrorCode.NONE,
            group_id=self.group_id,
            group_state=self.state,
            protocol_type=rebalance.protocol_type or "",
            protocol_data=protocol or "",
            members=tuple(members),
        )

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self._rebalance.protocol_type or "",
            group_state=self.state,
            group_type=GROUP_TYPE,
        )

    # ── Requests ─────────────────────────────────────────────────────────────────────────────────────────────

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int) -> list[Action]:
        return Join(self._rebalance, request, caller, self._new_uuid, now_ms).handle()

    def sync(self, request: SyncGroupRequest, token: Token, now_ms: int) -> list[Action]:
        rebalance = self._rebalance
        member = self._member_to_sync(request)
        if isinstance(member, ErrorCode):
            return [refuse_sync(token, member)]
        rebalance.note_sync(member.id)
        if self.state is State.STABLE:
            rebalance.keep_alive(member, now_ms)
            return [AnswerSync(token, rebalance.synced(member))]
        actions = rebalance.release(member, ErrorCode.REBALANCE_IN_PROGRESS, member.id)
        member.sync_token = token
        if member.id != rebalance.members.leader_id:
            return actions
        return actions + rebalance.assign({each.member_id: each.assignment for each in request.assignments}, now_ms)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        member = self._member(request.member_id, request.group_instance_id, request.generation_id)
        if isinstance(member, ErrorCode):
            return member
        self._rebalance.keep_alive(member, now_ms)
        is_preparing = self.state is State.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if is_preparing else ErrorCode.NONE

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> list[Action]:
        """Members leave, or an administrator removes them by their instance ids."""
        is_of_many = caller.version >= _FIRST_LEAVE_OF_MANY
        leaving = request.members if is_of_many else (MemberIdentity(member_id=request.member_id),)
        size = len(self._rebalance.members)
        results: list[MemberResponse] = []
        actions: list[Action] = []
        for each in leaving:
            error, released = self._remove(each)
            results.append(
                MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error)
            )
            actions += released
        if len(self._rebalance.members) < size:
            actions += self._rebalance.begin_or_finish(now_ms)
        else:
            actions += self._rebalance.finish_if_all_joined(now_ms)
        error_code = ErrorCode.NONE if is_of_many else results[0].error_code
        response = LeaveGroupResponse(error_code=error_code, members=tuple(results))
        return [*actions, AnswerLeave(caller.token, response)]

    def check_commit(self, member_id: str, instance_id: str | None, generation: int, _version: int) -> ErrorCode:
        """Whether the sender may commit offsets."""
        is_nobody = generation < 0 and not member_id and instance_id is None
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if self.state is State.EMPTY and generation < 0:
            # An administrator, or a consumer with manual assignment: allowed without active members.
            return ErrorCode.NONE
        if is_nobody:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member = self._member(member_id, instance_id, generation)
        if isinstance(member, ErrorCode):
            return member
        is_completing = self.state is State.COMPLETING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if is_completing else ErrorCode.NONE

    def check_commit_of(self, _member_id: str, _generation: int, _topic_id: bytes, _index: int) -> ErrorCode:
        """A committer may commit any partition."""
        return ErrorCode.NONE

    def check_fetch(self, _member_id: str | None, _generation: int) -> ErrorCode:
        """Any client may fetch committed offsets."""
        return ErrorCode.NONE

    def check_commit_in_transaction(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """The same for a transactional commit. Before TxnOffsetCommit 3 it had no member id."""
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and (self.state is State.EMPTY or (not member_id and instance_id is None)):
            return ErrorCode.NONE
        member = self._member(member_id, instance_id, generation)
        return member if isinstance(member, ErrorCode) else ErrorCode.NONE

    def note_commit(self, member_id: str, now_ms: int) -> None:
        """A commit counts as a heartbeat."""
        if (member := self._rebalance.members.get(member_id)) is not None:
            self._rebalance.keep_alive(member, now_ms)

    def forget(self, token: Token, now_ms: int) -> list[Action]:
        """The connection of a pending request is gone, and possibly its member.

        The member stays in the next generation, so that the others need not wait for it; but its session
        timeout runs. A member that never got its id cannot come back and is removed at once.
        """
        rebalance = self._rebalance
        member = rebalance.members.waiting(token)
        if member is None:
            return []
        member.join_token = member.sync_token = None
        if not member.knows_its_id and not member.is_static:
            # It had joined, so no other member was waiting for it.
            return rebalance.remove(member)
        rebalance.keep_alive(member, now_ms)
        return []

    # ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────

    def next_deadline_ms(self) -> int | None:
        """When to call `expire` next, unless something happens before."""
        return self._rebalance.deadlines.next_ms()

    def expire(self, now_ms: int) -> list[Action]:
        actions: list[Action] = []
        while (due := self._rebalance.deadlines.pop_due(now_ms)) is not None:
            actions += self._end(due, now_ms)
        return actions

    def call_off(self, error: ErrorCode) -> list[Action]:
        """Fail all pending requests."""
        return [action for member in self.members for action in self._rebalance.release(member, error, member.id)]

    def persist(self) -> Persist:
        return self._rebalance.persist()

    def deletion(self) -> Persist:
        """Its tombstone."""
        return Persist(self.group_id, None)

    def rebalance(self, now_ms: int) -> list[Action]:
        """Force a rebalance."""
        return self._rebalance.begin_or_finish(now_ms)

    def expire_sessions(self, client_id: str | None, now_ms: int) -> list[Action]:
        """Expire the sessions of this client's members, or of all."""
        silent = [member.id for member in self._rebalance.members if client_id in (None, member.client_id)]
        return [action for member_id in silent for action in self._end(member_id, now_ms)]

    def persist_failed(self, failed: Persist, now_ms: int) -> list[Action]:
        """This could not be appended. The caller has already failed the pending requests."""
        is_current = failed.value is not None and failed.value.generation == self.generation
        if is_current and self.state is State.STABLE:
            return self._rebalance.forget_assignment(now_ms)
        return []

    def die(self, error: ErrorCode) -> list[Action]:
        """The group is deleted, or has another coordinator now."""
        return self._rebalance.die(error)

    def _end(self, due: Key, now_ms: int) -> list[Action]:
        rebalance = self._rebalance
        if due is Phase.JOIN:
            return rebalance.end_join_phase(now_ms)
        if due is Phase.SYNC:
            return rebalance.end_sync_phase(now_ms)
        if due in rebalance.members.pending:
            rebalance.members.pending.discard(due)
            return [MemberExpired(self.group_id, due, "join"), *rebalance.finish_if_all_joined(now_ms)]
        member = rebalance.members.get(due)
        if member is None or member.is_excused:
            return []
        expired = MemberExpired(self.group_id, due, "heartbeat")
        return [expired, *rebalance.remove(member), *rebalance.begin_or_finish(now_ms)]

    # ── The member of a request, or its error ────────────────────────────────────────────────────────────────

    def _member(self, member_id: str, instance_id: str | None, generation: int | None = None) -> Member | ErrorCode:
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        member = self._rebalance.members.get(member_id)
        static = self._rebalance.members.static(instance_id)
        if static is not None and static is not member:
            return ErrorCode.FENCED_INSTANCE_ID
        if member is None or (instance_id is not None and static is None):
            return ErrorCode.UNKNOWN_MEMBER_ID
        if generation is not None and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return member

    def _member_to_sync(self, request: SyncGroupRequest) -> Member | ErrorCode:
        rebalance = self._rebalance
        member = self._member(request.member_id, request.group_instance_id, request.generation_id)
        if isinstance(member, ErrorCode):
            return member
        type_differs = request.protocol_type not in (None, rebalance.protocol_type)
        if type_differs or request.protocol_name not in (None, rebalance.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is State.PREPARING_REBALANCE else member

    def _remove(self, leaving: MemberIdentity) -> tuple[ErrorCode, list[Action]]:
        rebalance = self._rebalance
        if leaving.member_id in rebalance.members.pending:
            rebalance.members.pending.discard(leaving.member_id)
            rebalance.deadlines.cancel(leaving.member_id)
            return ErrorCode.NONE, []
        # An administrator knows the instance id, not the current member id.
        static = rebalance.members.static(leaving.group_instance_id)
        member_id = leaving.member_id or (static.id if static is not None else "")
        member = self._member(member_id, leaving.group_instance_id)
        if isinstance(member, ErrorCode):
            return member, []
        return ErrorCode.NONE, rebalance.remove(member)
