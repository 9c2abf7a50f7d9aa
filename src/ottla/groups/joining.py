"""JoinGroup for a classic group: new members, rejoining members, and restarted static members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ErrorCode
from ottla.groups.actions import AnswerJoin, refuse_join
from ottla.groups.members import Member
from ottla.groups.rebalance import begin_or_finish, finish_if_all_joined, joined, note_growth
from ottla.groups.states import State

if TYPE_CHECKING:
    from ottla.groups.actions import Action, Caller
    from ottla.groups.classic import ClassicGroup
    from ottla.wire.messages.join_group import JoinGroupRequest

_FIRST_WITH_REQUIRED_MEMBER_ID: Final = 4
_FIRST_WITH_SKIPPED_ASSIGNMENT: Final = 9


class Join:
    """Applies one JoinGroup request to its group."""

    def __init__(self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now_ms: int) -> None:
        self._group = group
        self._request = request
        self._caller = caller
        self._now_ms = now_ms
        # Version 0 has no rebalance timeout: the session timeout is used.
        sent_ms = request.rebalance_timeout_ms
        self._rebalance_timeout_ms = request.session_timeout_ms if sent_ms < 0 else sent_ms

    def handle(self) -> list[Action]:
        request, members = self._request, self._group.members
        config = self._group.config
        if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
            return self._refuse(ErrorCode.INVALID_SESSION_TIMEOUT)
        if self._group.state is State.DEAD:
            return self._refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not self._has_room():
            return self._turn_away()
        if not self._has_protocol_in_common():
            return self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not request.member_id:
            return self._join_without_id()
        if request.member_id in members.pending and request.group_instance_id is None:
            return self._add(request.member_id)
        return self._rejoin()

    # ── Whether it may join ──────────────────────────────────────────────────────────────────────────────────

    def _has_room(self) -> bool:
        """Whether there is room for the member. Members are not rejected, except the last to rejoin a group whose size
        limit was lowered.
        """
        members, max_size = self._group.members, self._group.config.max_size
        known = members.get(self._request.member_id) or members.static(self._request.group_instance_id)
        match self._group.state:
            case State.PREPARING_REBALANCE:
                return (known is not None and known.has_joined) or members.joined < max_size
            case State.COMPLETING_REBALANCE | State.STABLE:
                return known is not None or len(members) < max_size
            case _:
                return True

    def _turn_away(self) -> list[Action]:
        group = self._group
        actions: list[Action] = [refuse_join(self._caller.token, ErrorCode.GROUP_MAX_SIZE_REACHED)]
        member = group.members.get(self._request.member_id)
        if member is not None:
            actions += group.remove(member)
        elif self._request.member_id in group.members.pending:
            group.forget_pending(self._request.member_id)
        return actions + finish_if_all_joined(group, self._now_ms)

    def _has_protocol_in_common(self) -> bool:
        request, members = self._request, self._group.members
        if not members:
            return bool(request.protocol_type and request.protocols)
        is_same_type = request.protocol_type == self._group.protocol_type
        return is_same_type and any(members.all_have(protocol.name) for protocol in request.protocols)

    def _refuse(self, error: ErrorCode) -> list[Action]:
        return [refuse_join(self._caller.token, error, self._request.member_id)]

    # ── New members ──────────────────────────────────────────────────────────────────────────────────────────

    def _join_without_id(self) -> list[Action]:
        request, members = self._request, self._group.members
        new_id = f"{request.group_instance_id or self._caller.client_id}-{self._group.new_uuid()}"
        if (old := members.static(request.group_instance_id)) is not None:
            return self._replace(old, new_id)
        if request.group_instance_id is None and self._caller.version >= _FIRST_WITH_REQUIRED_MEMBER_ID:
            # The member must rejoin with the id, so that a client that times out and retries does not leave a member
            # behind each time (KIP-394).
            members.pending.add(new_id)
            self._group.deadlines.set(new_id, self._now_ms, request.session_timeout_ms)
            return [refuse_join(self._caller.token, ErrorCode.MEMBER_ID_REQUIRED, new_id)]
        return self._add(new_id)

    def _add(self, member_id: str) -> list[Action]:
        group, request = self._group, self._request
        member = Member(
            id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=self._caller.client_id,
            client_host=self._caller.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            protocols=request.protocols,
            has_joined=True,
            join_token=self._caller.token,
            is_new=True,
            knows_its_id=request.member_id == member_id,
        )
        if not group.members:
            group.protocol_type = request.protocol_type
        note_growth(group)
        group.members.add(member)
        group.deadlines.set(member_id, self._now_ms, group.config.new_member_join_timeout_ms)
        return begin_or_finish(group, self._now_ms)

    # ── Rejoining members ────────────────────────────────────────────────────────────────────────────────────

    def _rejoin(self) -> list[Action]:
        group, request = self._group, self._request
        member = group.members.get(request.member_id)
        static = group.members.static(request.group_instance_id)
        if static is not None and static is not member:
            return self._refuse(ErrorCode.FENCED_INSTANCE_ID)
        if member is None or (request.group_instance_id is not None and static is None):
            return self._refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        if self._has_news(member):
            return self._update(member) + begin_or_finish(group, self._now_ms)
        # The member may have missed the response to its first attempt.
        group.keep_alive(member, self._now_ms)
        return [AnswerJoin(self._caller.token, joined(group, member))]

    def _has_news(self, member: Member) -> bool:
        """Whether this join is for the next generation, and not a retry for the current one."""
        match self._group.state:
            case State.COMPLETING_REBALANCE:
                return member.protocols != self._request.protocols
            case State.STABLE:
                # A leader rejoins when something changed that only it watches, such as a topic's partitions.
                is_leader = member.id == self._group.members.leader_id
                return is_leader or member.protocols != self._request.protocols
            case _:
                return True

    def _update(self, member: Member) -> list[Action]:
        # Of two requests of the same member, the later one counts.
        actions = self._group.release(member, ErrorCode.REBALANCE_IN_PROGRESS, member.id)
        self._group.members.change_protocols(member, self._request.protocols)
        member.session_timeout_ms = self._request.session_timeout_ms
        member.rebalance_timeout_ms = self._rebalance_timeout_ms
        member.has_joined = True
        member.join_token = self._caller.token
        return actions

    # ── Restarted static members ─────────────────────────────────────────────────────────────────────────────

    def _replace(self, old: Member, new_id: str) -> list[Action]:
        """Replace the client with this instance id; the previous one is fenced."""
        group, now_ms = self._group, self._now_ms
        old_leader_id = group.members.leader_id
        actions = group.release(old, ErrorCode.FENCED_INSTANCE_ID, old.id)
        group.deadlines.cancel(old.id)
        group.note_sync(old.id)
        member = group.members.rename(old, new_id)
        member.client_id, member.client_host = self._caller.client_id, self._caller.client_host
        actions += self._update(member)
        group.keep_alive(member, now_ms)
        if group.state is State.STABLE and group.members.select_protocol() == group.protocol_name:
            return actions + self._take_over(member, old_leader_id)
        # In CompletingRebalance the leader may be assigning to the old id at this moment, so it must start over.
        return actions + begin_or_finish(group, now_ms)

    def _take_over(self, member: Member, old_leader_id: str | None) -> list[Action]:
        """Replace only the member id, without a rebalance, which is the purpose of static members (KIP-345)."""
        group = self._group
        member.join_token, member.has_joined = None, False
        if self._caller.version >= _FIRST_WITH_SKIPPED_ASSIGNMENT:
            is_leader = group.members.leader_id == member.id
            response = joined(group, member, skip_assignment=is_leader)
        else:
            # An older client that is told that it is the leader would assign, although no member waits for that
            # (KIP-814).
            response = joined(group, member, leader_id=old_leader_id)
        return [group.persist(), AnswerJoin(self._caller.token, response)]
