"""A classic group: the members compute the assignment; the broker coordinates.

Every request passes the time in milliseconds and returns actions. A waiting request is kept as the caller's
token until an action answers it or the caller cancels it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ErrorCode
from ottla.groups import rebalance
from ottla.groups.actions import AnswerLeave, AnswerSync, MemberExpired, Persist, refuse_join, refuse_sync
from ottla.groups.classic_records import group_value
from ottla.groups.deadlines import Deadlines, Phase
from ottla.groups.joining import Join
from ottla.groups.members import Members
from ottla.groups.states import ALLOWED_PREDECESSORS, State
from ottla.groups.subscription import CONSUMER_PROTOCOL, topics_in
from ottla.wire.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.wire.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.groups.actions import Action, Caller, Token
    from ottla.groups.config import GroupConfig
    from ottla.groups.deadlines import Key
    from ottla.groups.formats import OffsetCommitValue
    from ottla.groups.members import Member
    from ottla.wire.messages.heartbeat import HeartbeatRequest
    from ottla.wire.messages.join_group import JoinGroupRequest
    from ottla.wire.messages.leave_group import LeaveGroupRequest
    from ottla.wire.messages.sync_group import SyncGroupRequest

GROUP_TYPE: Final = "classic"
_FIRST_LEAVE_OF_MANY: Final = 3


class ClassicGroup:
    """The state of a group, and its requests. The rules of joining and rebalancing are in `joining` and `rebalance`."""

    def __init__(self, group_id: str, config: GroupConfig, new_uuid: Callable[[], str], now_ms: int) -> None:
        self.group_id = group_id
        self.config = config
        self.new_uuid = new_uuid
        self.state = State.EMPTY
        self.state_since_ms: int | None = now_ms
        """Unknown for a group that was written before Kafka 2.1 and has not changed since."""
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.subscribed_topics: frozenset[str] | None = None
        """Unknown until the first generation, and for other protocol types than consumer."""
        self.members = Members()
        self.deadlines: Deadlines[Key] = Deadlines()
        self.pending_sync: set[str] = set()
        """Members of this generation that have not sent SyncGroup yet."""
        self.is_first_rebalance = False
        """Whether the group was empty before this rebalance: then it waits for more members."""
        self.has_grown = False
        """Whether a member was added during that wait, which extends it."""
        self.first_ends_ms = 0
        """When that wait ends at the latest."""

    def start(self, now_ms: int) -> list[Action]:
        """Start the members' sessions."""
        for member in self.members:
            self.keep_alive(member, now_ms)
        is_too_large = len(self.members) > self.config.max_size
        return rebalance.begin(self, now_ms) if is_too_large else []

    # ── State ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def held_bytes(self) -> int:
        return self.members.held_bytes

    def member_bytes(self, member_id: str, instance_id: str | None) -> int:
        """The memory of this member; 0 if there is no such member."""
        member = self.members.get(member_id) or self.members.static(instance_id)
        return 0 if member is None else member.held_bytes

    @property
    def member_names(self) -> list[str]:
        return [member.client_id or member.id for member in self.members]

    @property
    def is_stored(self) -> bool:
        """Whether the group has records in the log."""
        return self.generation > 0

    @property
    def is_unused(self) -> bool:
        """Whether the group has nothing but offsets."""
        return self.state is State.EMPTY and not self.members.pending

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic; assumed if the subscriptions cannot be parsed."""
        topics = self.subscribed_topics
        return self.uses_consumer_protocol if topics is None else topic in topics

    def retention_starts_ms(self, committed: OffsetCommitValue) -> int | None:
        """When offset retention starts; None while the group is active."""
        if self.protocol_type is None:
            return committed.commit_timestamp
        if self.state is State.EMPTY:
            since_ms = self.state_since_ms
            return committed.commit_timestamp if since_ms is None else since_ms
        is_known = self.uses_consumer_protocol and self.subscribed_topics is not None
        return committed.commit_timestamp if is_known and self.state is State.STABLE else None

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type or "",
            group_state=self.state,
            group_type=GROUP_TYPE,
        )

    # ── Requests ─────────────────────────────────────────────────────────────────────────────────────────────

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int) -> list[Action]:
        return Join(self, request, caller, now_ms).handle()

    def sync(self, request: SyncGroupRequest, token: Token, now_ms: int) -> list[Action]:
        member = self._member_to_sync(request)
        if isinstance(member, ErrorCode):
            return [refuse_sync(token, member)]
        self.note_sync(member.id)
        if self.state is State.STABLE:
            self.keep_alive(member, now_ms)
            return [AnswerSync(token, rebalance.synced(self, member))]
        actions = self.release(member, ErrorCode.REBALANCE_IN_PROGRESS, member.id)
        member.sync_token = token
        if member.id != self.members.leader_id:
            return actions
        return actions + rebalance.assign(
            self, {each.member_id: each.assignment for each in request.assignments}, now_ms
        )

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        member = self._member(request.member_id, request.group_instance_id, request.generation_id)
        if isinstance(member, ErrorCode):
            return member
        self.keep_alive(member, now_ms)
        is_preparing = self.state is State.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if is_preparing else ErrorCode.NONE

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> list[Action]:
        """Remove members that leave, or that an administrator removes by their instance ids."""
        is_of_many = caller.version >= _FIRST_LEAVE_OF_MANY
        leaving = request.members if is_of_many else (MemberIdentity(member_id=request.member_id),)
        size = len(self.members)
        results: list[MemberResponse] = []
        actions: list[Action] = []
        for each in leaving:
            error, released = self._remove(each)
            results.append(
                MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error)
            )
            actions += released
        if len(self.members) < size:
            actions += rebalance.begin_or_finish(self, now_ms)
        else:
            actions += rebalance.finish_if_all_joined(self, now_ms)
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
        """Any partition may be committed."""
        return ErrorCode.NONE

    def check_fetch(self, _member_id: str | None, _generation: int) -> ErrorCode:
        """Any client may fetch committed offsets."""
        return ErrorCode.NONE

    def check_commit_in_transaction(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Whether the sender may commit offsets in a transaction. Before TxnOffsetCommit version 3 there was no member
        id.
        """
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and (self.state is State.EMPTY or (not member_id and instance_id is None)):
            return ErrorCode.NONE
        member = self._member(member_id, instance_id, generation)
        return member if isinstance(member, ErrorCode) else ErrorCode.NONE

    def note_commit(self, member_id: str, now_ms: int) -> None:
        """Record a commit, which counts as a heartbeat."""
        if (member := self.members.get(member_id)) is not None:
            self.keep_alive(member, now_ms)

    def forget(self, token: Token, now_ms: int) -> list[Action]:
        """Handle the lost connection of a pending request. Its member may be gone as well.

        The member stays in the next generation, so that the others need not wait for it; but its session
        timeout runs. A member that never got its id cannot come back and is removed at once.
        """
        member = self.members.waiting(token)
        if member is None:
            return []
        member.join_token = member.sync_token = None
        if not member.knows_its_id and not member.is_static:
            # The member had joined, so no other member was waiting for it.
            return self.remove(member)
        self.keep_alive(member, now_ms)
        return []

    # ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────

    def next_deadline_ms(self) -> int | None:
        """When to call `expire` next, unless something happens before."""
        return self.deadlines.next_ms()

    def expire(self, now_ms: int) -> list[Action]:
        actions: list[Action] = []
        while (due := self.deadlines.pop_due(now_ms)) is not None:
            actions += self._end(due, now_ms)
        return actions

    def call_off(self, error: ErrorCode) -> list[Action]:
        """Fail all pending requests."""
        return [action for member in self.members for action in self.release(member, error, member.id)]

    def persist(self) -> Persist:
        return Persist(self.group_id, group_value(self))

    def deletion(self) -> Persist:
        """The tombstone of the group."""
        return Persist(self.group_id, None)

    def rebalance(self, now_ms: int) -> list[Action]:
        """Force a rebalance."""
        return rebalance.begin_or_finish(self, now_ms)

    def expire_sessions(self, client_id: str | None, now_ms: int) -> list[Action]:
        """Expire the sessions of this client's members, or of all."""
        silent = [member.id for member in self.members if client_id in (None, member.client_id)]
        return [action for member_id in silent for action in self._end(member_id, now_ms)]

    def persist_failed(self, failed: Persist, now_ms: int) -> list[Action]:
        """Handle a failed append. The caller has already failed the pending requests."""
        is_current = failed.value is not None and failed.value.generation == self.generation
        if is_current and self.state is State.STABLE:
            return rebalance.forget_assignment(self, now_ms)
        return []

    def die(self, error: ErrorCode) -> list[Action]:
        """Fail pending requests: the group is deleted, or has another coordinator now."""
        self.state = State.DEAD
        self.deadlines.clear()
        return self.call_off(error)

    def _end(self, due: Key, now_ms: int) -> list[Action]:
        if due is Phase.JOIN:
            return rebalance.end_join_phase(self, now_ms)
        if due is Phase.SYNC:
            return rebalance.end_sync_phase(self, now_ms)
        if due in self.members.pending:
            self.members.pending.discard(due)
            return [MemberExpired(self.group_id, due, "join"), *rebalance.finish_if_all_joined(self, now_ms)]
        member = self.members.get(due)
        if member is None or member.is_excused:
            return []
        expired = MemberExpired(self.group_id, due, "heartbeat")
        return [expired, *self.remove(member), *rebalance.begin_or_finish(self, now_ms)]

    # ── Steps of its rules: `rebalance` and `joining` ────────────────────────────────────────────────────────

    def move_to(self, state: State, now_ms: int) -> None:
        if self.state not in ALLOWED_PREDECESSORS[state]:
            raise AssertionError(f"group {self.group_id} cannot change from {self.state} to {state}")
        self.state = state
        self.state_since_ms = now_ms

    def keep_alive(self, member: Member, now_ms: int) -> None:
        self.deadlines.set(member.id, now_ms, member.session_timeout_ms)

    def remove(self, member: Member) -> list[Action]:
        self.members.remove(member)
        self.deadlines.cancel(member.id)
        self.note_sync(member.id)
        # The response has no member id, so that a live client rejoins as a new member.
        return self.release(member, ErrorCode.UNKNOWN_MEMBER_ID, "")

    def forget_pending(self, member_id: str) -> None:
        """Forget a member id that was assigned, but will not be used."""
        self.members.pending.discard(member_id)
        self.deadlines.cancel(member_id)

    def release(self, member: Member, error: ErrorCode, member_id: str) -> list[Action]:
        """Fail the pending request of a member."""
        actions: list[Action] = []
        if member.join_token is not None:
            actions.append(refuse_join(member.join_token, error, member_id))
        if member.sync_token is not None:
            actions.append(refuse_sync(member.sync_token, error))
        member.join_token = member.sync_token = None
        return actions

    def note_sync(self, member_id: str) -> None:
        self.pending_sync.discard(member_id)
        if not self.pending_sync:
            self.deadlines.cancel(Phase.SYNC)

    def learn_topics(self) -> None:
        """Determine the subscribed topics of this generation."""
        self.subscribed_topics = None
        if self.protocol_type == CONSUMER_PROTOCOL:
            subscriptions = [topics_in(member.metadata(self.protocol_name)) for member in self.members]
            topics = [each for each in subscriptions if each is not None]
            if len(topics) == len(subscriptions):
                self.subscribed_topics = frozenset().union(*topics)

    # ── The member of a request, or its error ────────────────────────────────────────────────────────────────

    def _member(self, member_id: str, instance_id: str | None, generation: int | None = None) -> Member | ErrorCode:
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        member = self.members.get(member_id)
        static = self.members.static(instance_id)
        if static is not None and static is not member:
            return ErrorCode.FENCED_INSTANCE_ID
        if member is None or (instance_id is not None and static is None):
            return ErrorCode.UNKNOWN_MEMBER_ID
        if generation is not None and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return member

    def _member_to_sync(self, request: SyncGroupRequest) -> Member | ErrorCode:
        member = self._member(request.member_id, request.group_instance_id, request.generation_id)
        if isinstance(member, ErrorCode):
            return member
        type_differs = request.protocol_type not in (None, self.protocol_type)
        if type_differs or request.protocol_name not in (None, self.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is State.PREPARING_REBALANCE else member

    def _remove(self, leaving: MemberIdentity) -> tuple[ErrorCode, list[Action]]:
        if leaving.member_id in self.members.pending:
            self.forget_pending(leaving.member_id)
            return ErrorCode.NONE, []
        # An administrator knows the instance id, not the current member id.
        static = self.members.static(leaving.group_instance_id)
        member_id = leaving.member_id or (static.id if static is not None else "")
        member = self._member(member_id, leaving.group_instance_id)
        if isinstance(member, ErrorCode):
            return member, []
        return ErrorCode.NONE, self.remove(member)
