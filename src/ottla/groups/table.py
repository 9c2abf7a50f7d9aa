"""All groups of a broker, as in the log, and the next deadline."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from ottla.core.ids import TopicPartition
from ottla.core.memory_budget import MemoryBudget
from ottla.groups.actions import PersistOffsets, PersistRecords
from ottla.groups.classic import ClassicGroup
from ottla.groups.classic_records import restore
from ottla.groups.formats import GroupKey, OffsetKey
from ottla.groups.offsets import GroupOffsets
from ottla.groups.pending import PendingOffsets
from ottla.groups.records import TOPIC, decode_group_value, decode_key, decode_offset_value
from ottla.groups.sizes import GROUP_BYTES
from ottla.groups.states import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ottla.core.errors import ErrorCode
    from ottla.groups.actions import Action, Written
    from ottla.groups.consumer.environment import Environment
    from ottla.groups.consumer.formats import Key
    from ottla.groups.formats import OffsetCommitValue
    from ottla.groups.group import Group


class GroupTable:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.config = environment.config
        self._groups: dict[str, Group] = {}
        self._offsets: dict[str, GroupOffsets] = {}
        self.pending = PendingOffsets()
        self.memory = MemoryBudget(self.config.max_memory_bytes)
        self._counted: dict[str, int] = {}
        # A group is in the heap once for its earliest deadline, and possibly again for stale ones;
        # heartbeats only extend a deadline, and do not touch the heap.
        self._wake_ups: list[tuple[int, str]] = []
        self._wakes_at_ms: dict[str, int] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def get(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def get_or_make(self, group_id: str, now_ms: int) -> Group:
        """The group, created as a classic group if it does not exist. `settle` drops it again unless it is used."""
        found = self._groups.get(group_id)
        if found is None:
            found = self._groups[group_id] = self.new_classic(group_id, now_ms)
        return found

    def new_classic(self, group_id: str, now_ms: int) -> ClassicGroup:
        return ClassicGroup(group_id, self.config, self.environment.new_uuid, now_ms)

    def offsets(self, group_id: str) -> GroupOffsets:
        return self._offsets.get(group_id) or GroupOffsets()

    # ── The log ──────────────────────────────────────────────────────────────────────────────────────────────

    def replay(self, key: bytes, value: bytes | None, producer_id: int | None = None) -> None:
        """Apply a record of the log, of this producer's transaction if any.

        Raises ProtocolError if it is malformed, without changing anything.
        """
        of = decode_key(key)
        if of is None:
            return
        if isinstance(of, GroupKey):
            self._replay_group(of.group, value)
        elif not isinstance(of, OffsetKey):
            self._replay_consumer_group(of, value)
        else:
            at = TopicPartition(of.topic, of.partition)
            decoded = None if value is None else decode_offset_value(value)
            if producer_id is None:
                self._apply_offsets(of.group, {at: decoded})
            elif decoded is not None:
                self.pending.add(of.group, producer_id, {at: decoded})
                self._count(of.group)

    def transaction_ended(self, producer_id: int, is_one_of_them: Callable[[str], bool], *, is_commit: bool) -> None:
        """Handle the end of a transaction in the log of some groups: its offsets take effect, or are dropped."""
        for group_id, changes in self.pending.ended(producer_id, is_one_of_them, is_commit=is_commit):
            if changes:
                self._take_over(group_id, changes)
            else:
                self._count(group_id)

    def apply(self, action: Written) -> None:
        """Apply an action whose records have just been appended."""
        if isinstance(action, PersistOffsets):
            if action.producer is None:
                self._apply_offsets(action.group_id, action.changes)
            else:
                kept = {at: value for at, value in action.changes.items() if value is not None}
                self.pending.add(action.group_id, action.producer[0], kept)
                self._count(action.group_id)
        elif isinstance(action, PersistRecords):
            self._apply_records(action)
        elif action.value is None:
            self._erase(action.group_id)

    def _apply_records(self, action: PersistRecords) -> None:
        if action.is_end:
            self._erase(action.group_id)
        elif action.becomes is not None:
            self._wakes_at_ms.pop(action.group_id, None)
            self._groups[action.group_id] = action.becomes
            self.settle(action.becomes)

    def start(self, now_ms: int) -> list[Action]:
        actions: list[Action] = []
        for group in self:
            actions += group.start(now_ms)
            self.settle(group)
        return actions

    def unload(self, group_id: str, error: ErrorCode) -> list[Action]:
        """Unload a group that is still in the log, and fail its pending requests."""
        group = self._groups.pop(group_id, None)
        self._offsets.pop(group_id, None)
        self.pending.forget(group_id)
        self._wakes_at_ms.pop(group_id, None)
        self._count(group_id)
        return [] if group is None else group.die(error)

    def _replay_group(self, group_id: str, value: bytes | None) -> None:
        if value is not None:
            decoded = decode_group_value(value)
            group = self._groups[group_id] = self.new_classic(group_id, decoded.current_state_timestamp)
            restore(group, decoded)
        elif isinstance(self._groups.get(group_id), ClassicGroup):
            self._erase(group_id)

    def _replay_consumer_group(self, key: Key, value: bytes | None) -> None:
        from ottla.groups.consumer.group import ConsumerGroup  # imported lazily
        from ottla.groups.consumer.records import decode_value

        group = self._groups.get(key.group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            # The existing group had only offsets: a classic group's tombstone is written before another type starts.
            group = self._groups[key.group_id] = ConsumerGroup(key.group_id, self.environment)
        group.replay(key, None if value is None else decode_value(key, value, TOPIC))
        if not group.is_stored:
            self._erase(key.group_id)

    def _apply_offsets(self, group_id: str, changes: Mapping[TopicPartition, OffsetCommitValue | None]) -> None:
        self.pending.overtaken(group_id, changes)
        self._take_over(group_id, changes)

    def _take_over(self, group_id: str, changes: Mapping[TopicPartition, OffsetCommitValue | None]) -> None:
        offsets = self._offsets.setdefault(group_id, GroupOffsets())
        offsets.apply(changes)
        if not offsets:
            del self._offsets[group_id]
        elif group_id not in self._groups:
            # Consumers with manual assignment have only offsets.
            self._make_from(group_id, offsets)
        self._count(group_id)

    def _erase(self, group_id: str) -> None:
        self._groups.pop(group_id, None)
        self._wakes_at_ms.pop(group_id, None)
        if (offsets := self._offsets.get(group_id)) is not None:
            self._make_from(group_id, offsets)
        self._count(group_id)

    def _make_from(self, group_id: str, offsets: GroupOffsets) -> None:
        self.get_or_make(group_id, max(value.commit_timestamp for _, value in offsets))

    # ── Memory ───────────────────────────────────────────────────────────────────────────────────────────────

    def _count(self, group_id: str) -> None:
        group, offsets = self._groups.get(group_id), self._offsets.get(group_id)
        size = self.pending.held_bytes(group_id)
        size += 0 if group is None else GROUP_BYTES + len(group_id) + group.held_bytes
        size += 0 if offsets is None else offsets.held_bytes
        self.memory.held_bytes += size - self._counted.pop(group_id, 0)
        if size:
            self._counted[group_id] = size

    # ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────

    def settle(self, group: Group) -> None:
        """Update a group's next deadline and size after a request that may have changed it."""
        self._note_deadline(group)
        self._count(group.group_id)

    def _note_deadline(self, group: Group) -> None:
        group_id = group.group_id
        if self._groups.get(group_id) is not group:
            return
        is_new = isinstance(group, ClassicGroup) and not group.is_stored
        if is_new and group.is_unused and group_id not in self._offsets:
            self._groups.pop(group_id, None)
            self._wakes_at_ms.pop(group_id, None)
            return
        next_ms = group.next_deadline_ms()
        if next_ms is None:
            return
        known_ms = self._wakes_at_ms.get(group_id)
        if known_ms is None or next_ms < known_ms:
            self._wakes_at_ms[group_id] = next_ms
            heappush(self._wake_ups, (next_ms, group_id))

    def next_deadline_ms(self) -> int | None:
        """When to call `expire`. May be too early, never too late."""
        while self._wake_ups and not self._holds(*self._wake_ups[0]):
            heappop(self._wake_ups)
        return self._wake_ups[0][0] if self._wake_ups else None

    def expire(self, now_ms: int) -> list[Action]:
        actions: list[Action] = []
        while self._wake_ups and self._wake_ups[0][0] <= now_ms:
            at_ms, group_id = heappop(self._wake_ups)
            if not self._holds(at_ms, group_id):
                continue
            del self._wakes_at_ms[group_id]
            group = self._groups[group_id]
            actions += group.expire(now_ms)
            self.settle(group)
        return actions

    def rebalance(self, group_id: str, now_ms: int) -> list[Action] | None:
        """Force a rebalance of a group; None if it has no members."""
        group = self._groups.get(group_id)
        if group is None or group.state is State.EMPTY:
            return None
        actions = group.rebalance(now_ms)
        self.settle(group)
        return actions

    def expire_sessions(self, group_id: str, client_id: str | None, now_ms: int) -> list[Action]:
        """Expire the sessions of a group's members: of this client, or all."""
        group = self._groups.get(group_id)
        if group is None:
            return []
        actions = group.expire_sessions(client_id, now_ms)
        self.settle(group)
        return actions

    def _holds(self, at_ms: int, group_id: str) -> bool:
        return self._wakes_at_ms.get(group_id) == at_ms
