"""The rebalance cycle of a classic group (see states.py).

Kafka's GroupMetadataManager has the same rules with timers and futures. Here a timer is an entry in
`deadlines`, and a future is a token kept in a member until an action answers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import ErrorCode
from ottla.groups.actions import AnswerJoin, AnswerSync, MemberExpired, Persist, refuse_join, refuse_sync
from ottla.groups.deadlines import Deadlines, Phase
from ottla.groups.formats import GroupMetadataValue, MemberMetadata
from ottla.groups.members import Member, Members
from ottla.groups.states import ALLOWED_PREDECESSORS, State
from ottla.groups.subscription import CONSUMER_PROTOCOL, topics_in
from ottla.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.groups.actions import Action
    from ottla.groups.config import GroupConfig
    from ottla.groups.deadlines import Key


class Rebalance:
    """A group's members and its current generation."""

    def __init__(self, group_id: str, config: GroupConfig, now_ms: int) -> None:
        self.group_id = group_id
        self.config = config
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
        self._is_first = False
        """Whether the group was empty before this rebalance: then it waits for more members."""
        self._has_grown = False
        self._first_ends_ms = 0

    # ── The join phase ───────────────────────────────────────────────────────────────────────────────────────

    def begin(self, now_ms: int) -> list[Action]:
        """Start a rebalance: all members have to rejoin."""
        actions: list[Action] = []
        if self.state is State.COMPLETING_REBALANCE:
            actions = self._call_off_sync(now_ms)
        self.pending_sync.clear()
        self.deadlines.cancel(Phase.SYNC)
        self._is_first = self.state is State.EMPTY
        self._move_to(State.PREPARING_REBALANCE, now_ms)
        if self._is_first:
            return actions + self._begin_first(now_ms)
        if self.members.all_joined:
            return actions + self.finish_joining(now_ms)
        self.deadlines.set(Phase.JOIN, now_ms, self.members.rebalance_timeout_ms)
        return actions

    def begin_or_finish(self, now_ms: int) -> list[Action]:
        """Continue after a member has joined or left."""
        if self.state is State.PREPARING_REBALANCE:
            return self.finish_if_all_joined(now_ms)
        return self.begin(now_ms)

    def note_growth(self) -> None:
        """A member was added: during the initial rebalance the delay is extended."""
        self._has_grown = self._is_first and self.state is State.PREPARING_REBALANCE

    def finish_if_all_joined(self, now_ms: int) -> list[Action]:
        is_waiting = self.state is State.PREPARING_REBALANCE and not self._is_first
        return self.finish_joining(now_ms) if is_waiting and self.members.all_joined else []

    def end_join_phase(self, now_ms: int) -> list[Action]:
        """The join timeout has passed, unless the initial delay was extended."""
        if self._is_first and self._has_grown and now_ms < self._first_ends_ms:
            self._has_grown = False
            delay_ms = min(self.config.initial_rebalance_delay_ms, self._first_ends_ms - now_ms)
            self.deadlines.set(Phase.JOIN, now_ms, delay_ms)
            return []
        return self.finish_joining(now_ms)

    def finish_joining(self, now_ms: int) -> list[Action]:
        """Start the next generation with the joined members, and with static members even if they have not."""
        self._is_first = False
        self.deadlines.cancel(Phase.JOIN)
        actions: list[Action] = []
        for member in [each for each in self.members if not each.has_joined and not each.is_static]:
            actions += [MemberExpired(self.group_id, member.id, "rejoin"), *self.remove(member)]
        if not self.members.elect_leader() and self.members:
            # Only static members, none of which has rejoined: wait for their sessions to expire.
            self.deadlines.set(Phase.JOIN, now_ms, self.members.rebalance_timeout_ms)
            return actions
        self.generation += 1
        if not self.members:
            return actions + self._become_empty(now_ms)
        return actions + self._begin_sync(now_ms)

    def _begin_first(self, now_ms: int) -> list[Action]:
        delay_ms = self.config.initial_rebalance_delay_ms
        if delay_ms == 0:
            return self.finish_joining(now_ms)
        self._has_grown = False
        self._first_ends_ms = now_ms + max(self.members.rebalance_timeout_ms, delay_ms)
        self.deadlines.set(Phase.JOIN, now_ms, delay_ms)
        return []

    def _become_empty(self, now_ms: int) -> list[Action]:
        self.protocol_name = None
        self.learn_topics()
        self._move_to(State.EMPTY, now_ms)
        return [self.persist()]

    # ── The sync phase ───────────────────────────────────────────────────────────────────────────────────────

    def _begin_sync(self, now_ms: int) -> list[Action]:
        self.protocol_name = self.members.select_protocol()
        self.learn_topics()
        self._move_to(State.COMPLETING_REBALANCE, now_ms)
        actions: list[Action] = []
        for member in self.members:
            if member.join_token is not None:
                actions.append(AnswerJoin(member.join_token, self.joined(member)))
            member.join_token = None
            member.has_joined = member.is_new = False
            member.knows_its_id = True
            self.pending_sync.add(member.id)
            self.keep_alive(member, now_ms)
        self.deadlines.set(Phase.SYNC, now_ms, self.members.rebalance_timeout_ms)
        return actions

    def joined(
        self, member: Member, *, leader_id: str | None = None, skip_assignment: bool = False
    ) -> JoinGroupResponse:
        """The response to a member of this generation; the leader's lists all members."""
        leader_id = leader_id or self.members.leader_id or ""
        others = (
            JoinGroupResponseMember(
                member_id=each.id,
                group_instance_id=each.group_instance_id,
                metadata=each.metadata(self.protocol_name),
            )
            for each in (self.members if leader_id == member.id else ())
        )
        return JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=leader_id,
            skip_assignment=skip_assignment,
            member_id=member.id,
            members=tuple(others),
        )

    def synced(self, member: Member) -> SyncGroupResponse:
        return SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    def note_sync(self, member_id: str) -> None:
        self.pending_sync.discard(member_id)
        if not self.pending_sync:
            self.deadlines.cancel(Phase.SYNC)

    def assign(self, assignments: Mapping[str, bytes], now_ms: int) -> list[Action]:
        """The leader has assigned: answer all waiting members."""
        self._move_to(State.STABLE, now_ms)
        for member in self.members:
            self.members.assign(member, assignments.get(member.id, b""))
        actions: list[Action] = [self.persist()]
        for member in self.members:
            if member.sync_token is not None:
                actions.append(AnswerSync(member.sync_token, self.synced(member)))
                member.sync_token = None
                self.keep_alive(member, now_ms)
        return actions

    def end_sync_phase(self, now_ms: int) -> list[Action]:
        """Remove members that never sent SyncGroup."""
        actions: list[Action] = []
        for member in [each for each in self.members if each.id in self.pending_sync]:
            actions += [MemberExpired(self.group_id, member.id, "sync"), *self.remove(member)]
        return actions + self.begin(now_ms)

    def forget_assignment(self, now_ms: int) -> list[Action]:
        """The assignment could not be stored: rebalance again."""
        for member in self.members:
            self.members.assign(member, b"")
        return self.begin(now_ms)

    def _call_off_sync(self, now_ms: int) -> list[Action]:
        actions: list[Action] = []
        for member in self.members:
            self.members.assign(member, b"")
            if member.sync_token is not None:
                actions.append(refuse_sync(member.sync_token, ErrorCode.REBALANCE_IN_PROGRESS))
                member.sync_token = None
                self.keep_alive(member, now_ms)
        return actions

    # ── Members ──────────────────────────────────────────────────────────────────────────────────────────────

    def keep_alive(self, member: Member, now_ms: int) -> None:
        self.deadlines.set(member.id, now_ms, member.session_timeout_ms)

    def remove(self, member: Member) -> list[Action]:
        self.members.remove(member)
        self.deadlines.cancel(member.id)
        self.note_sync(member.id)
        # Without its member id a live client rejoins as a new member.
        return self.release(member, ErrorCode.UNKNOWN_MEMBER_ID, "")

    def release(self, member: Member, error: ErrorCode, member_id: str) -> list[Action]:
        """Fail the pending request of a member."""
        actions: list[Action] = []
        if member.join_token is not None:
            actions.append(refuse_join(member.join_token, error, member_id))
        if member.sync_token is not None:
            actions.append(refuse_sync(member.sync_token, error))
        member.join_token = member.sync_token = None
        return actions

    def die(self, error: ErrorCode) -> list[Action]:
        """The group is unloaded."""
        self.state = State.DEAD
        self.deadlines.clear()
        return [action for member in self.members for action in self.release(member, error, member.id)]

    def learn_topics(self) -> None:
        """Determine the subscribed topics of this generation."""
        self.subscribed_topics = None
        if self.protocol_type == CONSUMER_PROTOCOL:
            subscriptions = [topics_in(member.metadata(self.protocol_name)) for member in self.members]
            topics = [each for each in subscriptions if each is not None]
            if len(topics) == len(subscriptions):
                self.subscribed_topics = frozenset().union(*topics)

    def persist(self) -> Persist:
        members = (
            MemberMetadata(
                member_id=member.id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(self.protocol_name),
                assignment=member.assignment,
            )
            for member in self.members
        )
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.members.leader_id,
            current_state_timestamp=-1 if self.state_since_ms is None else self.state_since_ms,
            members=tuple(members),
        )
        return Persist(self.group_id, value)

    def _move_to(self, state: State, now_ms: int) -> None:
        if self.state not in ALLOWED_PREDECESSORS[state]:
            raise AssertionError(f"group {self.group_id} cannot change from {self.state} to {state}")
        self.state = state
        self.state_since_ms = now_ms
