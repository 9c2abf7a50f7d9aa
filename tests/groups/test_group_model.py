"""Model test of a classic group: random joins, syncs, heartbeats, leaves, disconnects and silence."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from ottla.core.errors import ErrorCode
from ottla.groups.actions import Action, AnswerJoin, AnswerLeave, AnswerSync, Caller, MemberExpired, Persist
from ottla.groups.classic import ClassicGroup
from ottla.groups.classic_records import restore
from ottla.groups.config import GroupConfig
from ottla.groups.deadlines import Phase
from ottla.groups.describing import describe
from ottla.groups.states import State
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

from .making import join_request, protocols, subscription, sync_request, uuids

INSTANCES = [None, None, "A", "B"]
PROTOCOLS = [("range",), ("range", "sticky"), ("sticky", "range"), ("sticky",)]
SUBSCRIPTIONS = [subscription("read"), subscription("other"), b"opaque"]


class Session:
    """A client's view of itself."""

    def __init__(self, instance: str | None) -> None:
        self.instance = instance
        self.member_id = ""
        self.generation = -1


class Group(RuleBasedStateMachine):
    @initialize(delay=st.sampled_from([0, 3000]), max_size=st.sampled_from([2, 1000]))
    def open(self, delay: int, max_size: int) -> None:
        self.config = GroupConfig(min_session_timeout_ms=1000, initial_rebalance_delay_ms=delay, max_size=max_size)
        self.now = 0
        self.group = ClassicGroup("g", self.config, uuids(), 0)
        self.clients = [Session(instance) for instance in INSTANCES]
        self.tokens = count()
        self.waiting: dict[Any, tuple[Session, str, int]] = {}
        """Tokens of pending requests: sender, member and generation."""
        self.told: set[str] = set()
        self.generation = 0
        self.last_persist: Persist | None = None

    # ── Events ──────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(
        client=st.integers(0, len(INSTANCES) - 1),
        version=st.sampled_from([0, 3, 4, 5, 8, 9]),
        names=st.sampled_from(PROTOCOLS),
        metadata=st.sampled_from(SUBSCRIPTIONS),
        timeouts=st.sampled_from([(1000, 0), (10_000, 5000), (10_000, 60_000), (500, 60_000)]),
        forgets_its_id=st.booleans(),
    )
    def join(
        self,
        client: int,
        version: int,
        names: tuple[str, ...],
        metadata: bytes,
        timeouts: tuple[int, int],
        forgets_its_id: bool,
    ) -> None:
        session = self.clients[client]
        if forgets_its_id:
            session.member_id = ""
        request = join_request(
            session.member_id,
            group_instance_id=session.instance,
            session_timeout_ms=timeouts[0],
            rebalance_timeout_ms=timeouts[1],
            protocols=protocols(*names, metadata=metadata),
        )
        token = self.sends(session)
        before = describe(self.group).members
        self.handle(self.group.join(request, Caller(token, version, f"client{client}"), self.now))
        if session.instance is not None and not request.member_id:
            # The previous member of this instance gets no more responses.
            self.told -= {each.member_id for each in before if each.group_instance_id == session.instance}

    @rule(client=st.integers(0, len(INSTANCES) - 1))
    def sync(self, client: int) -> None:
        session = self.clients[client]
        assignments = {
            each.member_id: f"{session.generation} {each.member_id}".encode() for each in describe(self.group).members
        }
        request = sync_request(
            session.member_id, session.generation, group_instance_id=session.instance, assignments=assignments
        )
        self.handle(self.group.sync(request, self.sends(session), self.now))

    @rule(client=st.integers(0, len(INSTANCES) - 1))
    def heartbeat(self, client: int) -> None:
        session = self.clients[client]
        request = HeartbeatRequest(
            group_id="g",
            generation_id=session.generation,
            member_id=session.member_id,
            group_instance_id=session.instance,
        )
        error = self.group.heartbeat(request, self.now)
        if error is ErrorCode.NONE:
            assert session.generation == self.group.generation
            assert session.member_id in self.members()

    @rule(client=st.integers(0, len(INSTANCES) - 1), by_instance=st.booleans())
    def leave(self, client: int, by_instance: bool) -> None:
        session = self.clients[client]
        member_id = "" if by_instance and session.instance is not None else session.member_id
        leaving = MemberIdentity(member_id=member_id, group_instance_id=session.instance)
        token = self.sends(session)
        before = self.members()
        caller = Caller(token, 5)
        self.handle(self.group.leave(LeaveGroupRequest(group_id="g", members=(leaving,)), caller, self.now))
        self.told -= before - self.members()
        assert token not in self.waiting

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def hang_up(self, data: st.DataObject) -> None:
        token = data.draw(st.sampled_from(sorted(self.waiting)))
        del self.waiting[token]
        self.handle(self.group.forget(token, self.now))

    @rule(elapsed=st.sampled_from([1, 500, 999, 3000, 9999, 60_000]))
    def time_passes(self, elapsed: int) -> None:
        self.now += elapsed
        self.handle(self.group.expire(self.now))
        next_ms = self.group.next_deadline_ms()
        assert next_ms is None or next_ms > self.now

    @precondition(lambda self: self.last_persist is not None)
    @rule()
    def disk_fails(self) -> None:
        assert self.last_persist is not None
        self.handle(self.group.persist_failed(self.last_persist, self.now))

    # ── Invariants ───────────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def every_pending_request_is_known_once(self) -> None:
        members = list(self.group.members)
        kept: list[Any] = [
            token for each in members for token in (each.join_token, each.sync_token) if token is not None
        ]
        assert sorted(kept) == sorted(self.waiting)

    @invariant()
    def the_state_fits_the_members(self) -> None:
        rebalance = self.group
        leader_id = rebalance.members.leader_id
        assert (leader_id in self.members()) if self.members() else leader_id is None
        match self.group.state:
            case State.EMPTY:
                assert not self.members()
            case State.PREPARING_REBALANCE:
                assert Phase.JOIN in rebalance.deadlines._at_ms
            case State.COMPLETING_REBALANCE:
                assert self.members()
                assert Phase.SYNC in rebalance.deadlines._at_ms
            case State.STABLE:
                assert self.members()
                assert not any(member.sync_token is not None for member in rebalance.members)
        assert (Phase.SYNC in rebalance.deadlines._at_ms) == bool(rebalance.pending_sync)
        assert rebalance.pending_sync <= self.members()

    @invariant()
    def every_member_has_a_deadline(self) -> None:
        deadlines = self.group.deadlines._at_ms
        for member in self.group.members:
            assert member.is_excused or member.id in deadlines
        known = self.members() | self.group.members.pending
        assert {key for key in deadlines if isinstance(key, str)} <= known

    @invariant()
    def the_memory_of_members_is_accounted(self) -> None:
        members = self.group.members
        assert members._member_bytes == sum(member.held_bytes for member in members)

    @invariant()
    def no_member_is_lost(self) -> None:
        assert self.told <= self.members()

    @invariant()
    def all_members_have_a_protocol_in_common(self) -> None:
        members = self.group.members
        names = [member.protocol_names for member in members]
        common = set.intersection(*names) if names else set()
        assert common or not names
        for name in {"range", "sticky"}:
            assert members.all_have(name) == (name in common or not names)
        # Static members keep their place while absent, so there may be more with them.
        dynamic = sum(not member.is_static for member in members)
        assert dynamic <= self.config.max_size or self.group.state is State.PREPARING_REBALANCE

    def teardown(self) -> None:
        """With all clients gone, pending requests are answered and the group becomes empty."""
        if not hasattr(self, "group"):
            return
        while (next_ms := self.group.next_deadline_ms()) is not None:
            self.now = next_ms
            self.handle(self.group.expire(self.now))
        assert not self.waiting
        assert self.group.is_unused

    # ── Carrying out ─────────────────────────────────────────────────────────────────────────────────────────────

    def sends(self, session: Session) -> int:
        token = next(self.tokens)
        self.waiting[token] = session, session.member_id, session.generation
        return token

    def members(self) -> set[str]:
        return {member.id for member in self.group.members}

    def handle(self, actions: list[Action]) -> None:
        assert self.generation <= self.group.generation <= self.generation + 1
        was_persisted = False
        for action in actions:
            match action:
                case Persist():
                    was_persisted = True
                    self.persist(action)
                case MemberExpired():
                    self.told.discard(action.member_id)
                case AnswerJoin():
                    self.answer_join(action)
                case AnswerSync():
                    self.answer_sync(action, has_become_stable=was_persisted)
                case AnswerLeave():
                    del self.waiting[action.token]
        self.generation = self.group.generation

    def persist(self, action: Persist) -> None:
        """Restoring the written record gives the same group."""
        self.last_persist = action
        assert action.value is not None
        assert action.value.generation == self.group.generation
        again = ClassicGroup("g", self.config, uuids(), now_ms=0)
        restore(again, action.value)
        assert again.persist() == action

    def answer_join(self, action: AnswerJoin) -> None:
        session, _, _ = self.waiting.pop(action.token)
        response = action.response
        if response.error_code == ErrorCode.NONE:
            session.member_id, session.generation = response.member_id, response.generation_id
            assert response.generation_id == self.group.generation
            self.told.add(response.member_id)
            names = [each.member_id for each in response.members]
            assert not names or (response.leader == response.member_id and set(names) == self.members())
        elif response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            session.member_id = response.member_id
        elif response.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            session.member_id = ""
        elif response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED:
            self.told &= self.members()

    def answer_sync(self, action: AnswerSync, *, has_become_stable: bool) -> None:
        """An assignment belongs to this generation, and is sent only after it is written."""
        _, asked_by, asked_in = self.waiting.pop(action.token)
        response = action.response
        if response.error_code != ErrorCode.NONE:
            return
        assert self.group.state is State.STABLE
        assert has_become_stable or self.last_persist is not None
        assert asked_in == self.group.generation
        generation, _, assigned_to = response.assignment.decode().partition(" ")
        assert int(generation) == self.group.generation
        owner = next(each for each in self.group.members if each.id == asked_by)
        # A static member that took over has the assignment of its predecessor.
        assert assigned_to == asked_by or owner.is_static


TestGroup = Group.TestCase
TestGroup.settings = settings(max_examples=150, stateful_step_count=60)
