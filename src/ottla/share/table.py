"""All share groups of a broker, and session timeouts."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from ottla.share.group import ShareGroup
from ottla.share.log import replayed
from ottla.share.records import decode_group_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.core.memory_budget import MemoryBudget
    from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest


class ShareGroups:
    def __init__(self, memory: MemoryBudget) -> None:
        self.memory = memory
        self._groups: dict[str, ShareGroup] = {}
        self._counted: dict[str, int] = {}
        self._seen_until_ms: dict[tuple[str, str], int] = {}
        # Heartbeats only extend a session, and do not touch the heap: each member is in it once, and members that have
        # rejoined may be in it again with a stale deadline.
        self._wake_ups: list[tuple[int, str, str]] = []
        self._wakes_at_ms: dict[tuple[str, str], int] = {}

    def __iter__(self) -> Iterator[ShareGroup]:
        return iter(list(self._groups.values()))

    def get(self, group_id: str) -> ShareGroup | None:
        return self._groups.get(group_id)

    def put(self, group: ShareGroup) -> None:
        self._groups[group.id] = group
        size = group.held_bytes
        self.memory.held_bytes += size - self._counted.get(group.id, 0)
        self._counted[group.id] = size

    def remove(self, group_id: str) -> None:
        self._groups.pop(group_id, None)
        self.memory.held_bytes -= self._counted.pop(group_id, 0)

    def clear(self) -> None:
        self._groups.clear()
        self.memory.held_bytes -= sum(self._counted.values())
        self._counted.clear()
        self._seen_until_ms.clear()
        self._wakes_at_ms.clear()

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply a record of the log. Raises ProtocolError if it is malformed, without changing anything."""
        record = decode_group_record(key, value)
        if record is None:
            return
        group_id = record.key.group_id
        known = self._groups.get(group_id)
        if known is None and record.value is None:
            return
        after = replayed(known or ShareGroup(id=group_id), record)
        if after is None:
            self.remove(group_id)
        else:
            self.put(after)

    def listed(self, request: ListGroupsRequest) -> tuple[ListedGroup, ...]:
        states = {state.lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        return tuple(
            listed
            for listed in (group.listed() for group in self)
            if (not states or listed.group_state.lower() in states) and (not types or listed.group_type in types)
        )

    # ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────

    def heard_of(self, group_id: str, member_id: str, now_ms: int, timeout_ms: int) -> None:
        key = group_id, member_id
        self._seen_until_ms[key] = now_ms + timeout_ms
        if key not in self._wakes_at_ms:
            self._wake(key, now_ms + timeout_ms)

    def _wake(self, key: tuple[str, str], at_ms: int) -> None:
        self._wakes_at_ms[key] = at_ms
        heappush(self._wake_ups, (at_ms, *key))

    def gone(self, group_id: str, member_id: str) -> None:
        self._seen_until_ms.pop((group_id, member_id), None)
        self._wakes_at_ms.pop((group_id, member_id), None)

    def next_deadline_ms(self) -> int | None:
        return self._wake_ups[0][0] if self._wake_ups else None

    def silent(self, now_ms: int) -> list[tuple[str, str]]:
        """Members with expired sessions, by group."""
        late = []
        while self._wake_ups and self._wake_ups[0][0] <= now_ms:
            at_ms, group_id, member_id = heappop(self._wake_ups)
            key = group_id, member_id
            if self._wakes_at_ms.get(key) != at_ms:
                continue
            if self._seen_until_ms[key] > now_ms:
                self._wake(key, self._seen_until_ms[key])
            else:
                self.gone(group_id, member_id)
                late.append(key)
        return late
