"""A consumer group: requests of members and administrators, and timeouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ottla.core.errors import ErrorCode
from ottla.groups.actions import MemberExpired, PersistRecords
from ottla.groups.consumer.classic_members import ClassicMembers
from ottla.groups.consumer.conversion import can_be_classic, downgraded
from ottla.groups.consumer.current import MemberState
from ottla.groups.consumer.records import Record
from ottla.groups.consumer.state import GroupState
from ottla.groups.consumer.update import Update
from ottla.groups.consumer.waits import Wait
from ottla.groups.deadlines import Deadlines
from ottla.groups.partitions import Partition
from ottla.groups.subscription import CONSUMER_PROTOCOL
from ottla.wire.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.groups.actions import Action, Token
    from ottla.groups.consumer.current import Current
    from ottla.groups.consumer.environment import Environment, Timing
    from ottla.groups.consumer.formats import Key, Value
    from ottla.groups.formats import OffsetCommitValue
    from ottla.groups.states import State

GROUP_TYPE: Final = "consumer"
_FIRST_COMMIT_WITH_EPOCH: Final = 9


_MISSED: Final[Mapping[Wait, Literal["heartbeat", "revocation", "rejoin", "sync"]]] = {
    Wait.SESSION: "heartbeat",
    Wait.REVOCATION: "revocation",
    Wait.REJOIN: "rejoin",
    Wait.SYNC: "sync",
}


class ConsumerGroup:
    def __init__(self, group_id: str, environment: Environment) -> None:
        self.group_id = group_id
        self.environment = environment
        self.state_of_members = GroupState()
        self.classic_members = ClassicMembers(self)
        self._deadlines: Deadlines[tuple[Wait, str]] = Deadlines()
        self.seen_version: int | None = None
        """The topics version when the group was last updated."""

    def replay(self, key: Key, value: Value | None) -> None:
        """Apply a record; sessions do not run before `start`."""
        self.state_of_members.put(key, value)

    def start(self, now_ms: int) -> list[Action]:
        """Start the members' sessions."""
        for member_id in self.state_of_members.members:
            self.keep_alive(member_id, now_ms)
            self.expect_revocation(member_id, self.state_of_members.current(member_id), now_ms)
        return []

    # ── State ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> State:
        return self.state_of_members.state

    @property
    def held_bytes(self) -> int:
        return self.state_of_members.held_bytes

    def member_bytes(self, member_id: str, instance_id: str | None) -> int:
        """The memory of this member's subscription; 0 if there is no such member."""
        return self.state_of_members.member_bytes(member_id, instance_id)

    @property
    def member_names(self) -> list[str]:
        return [member.client_id or member_id for member_id, member in self.state_of_members.members.items()]

    @property
    def is_unused(self) -> bool:
        """Whether the group has nothing but offsets."""
        return not self.state_of_members.members

    @property
    def is_stored(self) -> bool:
        """Whether the group has records in the log."""
        return bool(self.state_of_members.records)

    @property
    def uses_consumer_protocol(self) -> bool:
        return True

    @property
    def timing(self) -> Timing:
        return self.environment.timing(self.group_id)

    def is_subscribed_to(self, topic: str) -> bool:
        state = self.state_of_members
        return any(topic in state.topics_of(member) for member in state.members.values())

    def retention_starts_ms(self, committed: OffsetCommitValue) -> int | None:
        return committed.commit_timestamp

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=CONSUMER_PROTOCOL,
            group_state=self.state,
            group_type=GROUP_TYPE,
        )

    # ── Requests ─────────────────────────────────────────────────────────────────────────────────────────────

    def check_commit(self, member_id: str, _instance_id: str | None, epoch: int, version: int) -> ErrorCode:
        """Whether the sender may commit offsets, at least of some partitions."""
        members = self.state_of_members.members
        if epoch < 0 and not members:
            # An administrator, or a consumer with manual assignment: allowed without active members.
            return ErrorCode.NONE
        member = members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_classic = member.classic_member_metadata is not None
        if not is_classic and version < _FIRST_COMMIT_WITH_EPOCH:
            return ErrorCode.UNSUPPORTED_VERSION
        return self._stale(member_id) if epoch > self.state_of_members.current(member_id).epoch else ErrorCode.NONE

    def check_commit_of(self, member_id: str, epoch: int, topic_id: bytes, index: int) -> ErrorCode:
        """Whether the member may commit this partition: with its current epoch, or any since its assignment
        (KIP-1251).
        """
        state = self.state_of_members
        if member_id not in state.members:
            return ErrorCode.NONE
        current = state.current(member_id)
        if epoch == current.epoch:
            return ErrorCode.NONE
        partition = Partition(topic_id, index)
        since = current.assigned.get(partition, current.revoked.get(partition))
        return ErrorCode.NONE if since is not None and since <= epoch else self._stale(member_id)

    def check_commit_in_transaction(self, member_id: str, instance_id: str | None, epoch: int) -> ErrorCode:
        """Whether the sender may commit offsets in a transaction. Before TxnOffsetCommit version 3 there was no member
        id.
        """
        if epoch < 0 and not member_id and instance_id is None:
            return ErrorCode.NONE
        error = self.check_commit(member_id, instance_id, epoch, _FIRST_COMMIT_WITH_EPOCH)
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether the sender may fetch committed offsets; non-members may."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        if member_id is None or member_id not in self.state_of_members.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_current = epoch == self.state_of_members.current(member_id).epoch
        return ErrorCode.NONE if is_current else self._stale(member_id)

    def note_commit(self, member_id: str, now_ms: int) -> None:
        """Does nothing: commits do not extend the session, since members send heartbeats."""

    def forget(self, _token: Token, _now_ms: int) -> list[Action]:
        """Does nothing: no requests wait here."""
        return []

    def _stale(self, member_id: str) -> ErrorCode:
        is_classic = self.state_of_members.members[member_id].classic_member_metadata is not None
        return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH

    # ── Changes ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def has_seen_topics(self) -> bool:
        """Whether the topics are unchanged since the group was last updated."""
        return self.seen_version == self.environment.topics.version

    def let_go(self, member_ids: Sequence[str], now_ms: int) -> list[Action]:
        """Remove these members; convert to a classic group if possible."""
        update = Update(self, now_ms)
        generation = self.state_of_members.epoch
        for member_id in member_ids:
            update.remove(member_id)
            self.forget_deadlines(member_id)
        if can_be_classic(self.state_of_members, self.environment.config):
            return downgraded(self, update, generation, now_ms)[0]
        update.refresh()
        return update.actions()

    def rebalance(self, now_ms: int) -> list[Action]:
        """Start another epoch, although nothing has changed."""
        update = Update(self, now_ms)
        update.force_new_epoch()
        update.refresh()
        return update.actions()

    def deletion(self) -> PersistRecords:
        """The tombstones of the group."""
        erased = tuple(Record(key, None) for key in self.state_of_members.records)
        return PersistRecords(self.group_id, erased, is_end=True)

    def take_back(self, failed: PersistRecords, now_ms: int) -> None:
        """Undo records that could not be appended, and give expired members another session."""
        for key, value in reversed(failed.replaced):
            self.state_of_members.put(key, value)
        self.seen_version = None
        for member_id in self.state_of_members.members:
            if not self.expects(Wait.SESSION, member_id):
                self.keep_alive(member_id, now_ms)

    def die(self, _error: ErrorCode) -> list[Action]:
        """Cancel all timeouts: another broker is the coordinator now. No requests wait here."""
        self._deadlines.clear()
        return []

    # ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────

    def next_deadline_ms(self) -> int | None:
        """When to call `expire` next, unless something happens before."""
        return self._deadlines.next_ms()

    def expire(self, now_ms: int) -> list[Action]:
        late: dict[str, MemberExpired] = {}
        while (due := self._deadlines.pop_due(now_ms)) is not None:
            wait, member_id = due
            if member_id in self.state_of_members.members:
                late.setdefault(member_id, MemberExpired(self.group_id, member_id, _MISSED[wait]))
        return [*late.values(), *self.let_go(list(late), now_ms)] if late else []

    def expire_sessions(self, client_id: str | None, now_ms: int) -> list[Action]:
        """Expire the sessions of this client's members, or of all."""
        members = self.state_of_members.members
        silent = [member_id for member_id, member in members.items() if client_id in (None, member.client_id)]
        expired = [MemberExpired(self.group_id, member_id, "heartbeat") for member_id in silent]
        return [*expired, *self.let_go(silent, now_ms)] if silent else []

    def keep_alive(self, member_id: str, now_ms: int) -> None:
        classic = self.state_of_members.members[member_id].classic_member_metadata
        timeout_ms = self.timing.session_timeout_ms if classic is None else classic.session_timeout_ms
        self._deadlines.set((Wait.SESSION, member_id), now_ms, timeout_ms)

    def expect(self, wait: Wait, member_id: str, now_ms: int) -> None:
        """Start the member's rebalance timeout for this."""
        self._deadlines.set((wait, member_id), now_ms, self.state_of_members.members[member_id].rebalance_timeout_ms)

    def expects(self, wait: Wait, member_id: str) -> bool:
        return (wait, member_id) in self._deadlines

    def no_longer_expect(self, wait: Wait, member_id: str) -> None:
        self._deadlines.cancel((wait, member_id))

    def expect_revocation(self, member_id: str, current: Current, now_ms: int) -> None:
        """Require a member to confirm a revocation within its rebalance timeout. A classic member confirms by
        rejoining, which has a separate deadline.
        """
        is_classic = self.state_of_members.members[member_id].classic_member_metadata is not None
        if current.state is MemberState.UNREVOKED_PARTITIONS and not is_classic:
            self.expect(Wait.REVOCATION, member_id, now_ms)
        else:
            self.no_longer_expect(Wait.REVOCATION, member_id)

    def forget_deadlines(self, member_id: str) -> None:
        for wait in Wait:
            self._deadlines.cancel((wait, member_id))
