"""The rules of a classic group's rebalance cycle (see states.py), as functions of the group.

Kafka's GroupMetadataManager has the same rules with timers and futures. Here a timer is an entry in
`deadlines`, and a future is a token kept in a member until an action answers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import ErrorCode
from ottla.groups.actions import AnswerJoin, AnswerSync, MemberExpired, refuse_sync
from ottla.groups.deadlines import Phase
from ottla.groups.states import State
from ottla.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.groups.actions import Action
    from ottla.groups.classic import ClassicGroup
    from ottla.groups.members import Member


# ── The join phase ───────────────────────────────────────────────────────────────────────────────────────


def begin(group: ClassicGroup, now_ms: int) -> list[Action]:
    """Start a rebalance: all members have to rejoin."""
    actions: list[Action] = []
    if group.state is State.COMPLETING_REBALANCE:
        actions = _call_off_sync(group, now_ms)
    group.pending_sync.clear()
    group.deadlines.cancel(Phase.SYNC)
    group.is_first_rebalance = group.state is State.EMPTY
    group.move_to(State.PREPARING_REBALANCE, now_ms)
    if group.is_first_rebalance:
        return actions + _begin_first(group, now_ms)
    if group.members.all_joined:
        return actions + finish_joining(group, now_ms)
    group.deadlines.set(Phase.JOIN, now_ms, group.members.rebalance_timeout_ms)
    return actions


def begin_or_finish(group: ClassicGroup, now_ms: int) -> list[Action]:
    """Continue after a member has joined or left."""
    if group.state is State.PREPARING_REBALANCE:
        return finish_if_all_joined(group, now_ms)
    return begin(group, now_ms)


def note_growth(group: ClassicGroup) -> None:
    """Handle an added member: during the initial rebalance, the delay is extended."""
    group.has_grown = group.is_first_rebalance and group.state is State.PREPARING_REBALANCE


def finish_if_all_joined(group: ClassicGroup, now_ms: int) -> list[Action]:
    is_waiting = group.state is State.PREPARING_REBALANCE and not group.is_first_rebalance
    return finish_joining(group, now_ms) if is_waiting and group.members.all_joined else []


def end_join_phase(group: ClassicGroup, now_ms: int) -> list[Action]:
    """End the join phase at its timeout, unless the initial delay was extended."""
    if group.is_first_rebalance and group.has_grown and now_ms < group.first_ends_ms:
        group.has_grown = False
        delay_ms = min(group.config.initial_rebalance_delay_ms, group.first_ends_ms - now_ms)
        group.deadlines.set(Phase.JOIN, now_ms, delay_ms)
        return []
    return finish_joining(group, now_ms)


def finish_joining(group: ClassicGroup, now_ms: int) -> list[Action]:
    """Start the next generation with the members that have joined, and with static members in any case."""
    group.is_first_rebalance = False
    group.deadlines.cancel(Phase.JOIN)
    actions: list[Action] = []
    for member in [each for each in group.members if not each.has_joined and not each.is_static]:
        actions += [MemberExpired(group.group_id, member.id, "rejoin"), *group.remove(member)]
    if not group.members.elect_leader() and group.members:
        # Only static members, none of which has rejoined: wait for their sessions to expire.
        group.deadlines.set(Phase.JOIN, now_ms, group.members.rebalance_timeout_ms)
        return actions
    group.generation += 1
    if not group.members:
        return actions + _become_empty(group, now_ms)
    return actions + _begin_sync(group, now_ms)


def _begin_first(group: ClassicGroup, now_ms: int) -> list[Action]:
    delay_ms = group.config.initial_rebalance_delay_ms
    if delay_ms == 0:
        return finish_joining(group, now_ms)
    group.has_grown = False
    group.first_ends_ms = now_ms + max(group.members.rebalance_timeout_ms, delay_ms)
    group.deadlines.set(Phase.JOIN, now_ms, delay_ms)
    return []


def _become_empty(group: ClassicGroup, now_ms: int) -> list[Action]:
    group.protocol_name = None
    group.learn_topics()
    group.move_to(State.EMPTY, now_ms)
    return [group.persist()]


# ── The sync phase ───────────────────────────────────────────────────────────────────────────────────────


def _begin_sync(group: ClassicGroup, now_ms: int) -> list[Action]:
    group.protocol_name = group.members.select_protocol()
    group.learn_topics()
    group.move_to(State.COMPLETING_REBALANCE, now_ms)
    actions: list[Action] = []
    for member in group.members:
        if member.join_token is not None:
            actions.append(AnswerJoin(member.join_token, joined(group, member)))
        member.join_token = None
        member.has_joined = member.is_new = False
        member.knows_its_id = True
        group.pending_sync.add(member.id)
        group.keep_alive(member, now_ms)
    group.deadlines.set(Phase.SYNC, now_ms, group.members.rebalance_timeout_ms)
    return actions


def joined(
    group: ClassicGroup, member: Member, *, leader_id: str | None = None, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The response to a member of this generation; the leader's lists all members."""
    leader_id = leader_id or group.members.leader_id or ""
    others = (
        JoinGroupResponseMember(
            member_id=each.id,
            group_instance_id=each.group_instance_id,
            metadata=each.metadata(group.protocol_name),
        )
        for each in (group.members if leader_id == member.id else ())
    )
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=leader_id,
        skip_assignment=skip_assignment,
        member_id=member.id,
        members=tuple(others),
    )


def synced(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def assign(group: ClassicGroup, assignments: Mapping[str, bytes], now_ms: int) -> list[Action]:
    """Distribute the leader's assignment: answer all waiting members."""
    group.move_to(State.STABLE, now_ms)
    for member in group.members:
        group.members.assign(member, assignments.get(member.id, b""))
    actions: list[Action] = [group.persist()]
    for member in group.members:
        if member.sync_token is not None:
            actions.append(AnswerSync(member.sync_token, synced(group, member)))
            member.sync_token = None
            group.keep_alive(member, now_ms)
    return actions


def end_sync_phase(group: ClassicGroup, now_ms: int) -> list[Action]:
    """Remove members that never sent SyncGroup."""
    actions: list[Action] = []
    for member in [each for each in group.members if each.id in group.pending_sync]:
        actions += [MemberExpired(group.group_id, member.id, "sync"), *group.remove(member)]
    return actions + begin(group, now_ms)


def forget_assignment(group: ClassicGroup, now_ms: int) -> list[Action]:
    """Rebalance again after the assignment could not be stored."""
    for member in group.members:
        group.members.assign(member, b"")
    return begin(group, now_ms)


def _call_off_sync(group: ClassicGroup, now_ms: int) -> list[Action]:
    actions: list[Action] = []
    for member in group.members:
        group.members.assign(member, b"")
        if member.sync_token is not None:
            actions.append(refuse_sync(member.sync_token, ErrorCode.REBALANCE_IN_PROGRESS))
            member.sync_token = None
            group.keep_alive(member, now_ms)
    return actions
