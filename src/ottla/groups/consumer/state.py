"""The state of a consumer group: its current records, and indexes derived from them.

Every change is a record that is applied here, so a replay after a crash restores the group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.groups.consumer.current import Current
from ottla.groups.consumer.formats import (
    CurrentKey,
    CurrentValue,
    EpochKey,
    EpochValue,
    MemberKey,
    MemberValue,
    RegexKey,
    RegexValue,
    SubscriptionKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)
from ottla.groups.partitions import NOTHING, each_partition
from ottla.groups.sizes import record_bytes, subscription_bytes
from ottla.groups.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.groups.consumer.formats import Key, Value
    from ottla.groups.partitions import Assigned, Partition

_NEW = Current()


class GroupState:
    def __init__(self) -> None:
        self.records: dict[Key, Value] = {}
        self.held_bytes = 0
        self.epoch = 0
        self.metadata_hash = 0
        self.target_epoch = 0
        self.members: dict[str, MemberValue] = {}
        self.regexes: dict[str, RegexValue] = {}
        self._instances: dict[str, str] = {}
        self._target: dict[str, Assigned] = {}
        self._current: dict[str, Current] = {}
        self._owners: dict[Partition, str] = {}

    # ── State ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> State:
        if not self.members:
            return State.EMPTY
        if self.epoch > self.target_epoch:
            return State.ASSIGNING
        is_stable = all(self.current(member_id).is_reconciled_to(self.target_epoch) for member_id in self.members)
        return State.STABLE if is_stable else State.RECONCILING

    def current(self, member_id: str) -> Current:
        return self._current.get(member_id, _NEW)

    def target(self, member_id: str) -> Assigned:
        return self._target.get(member_id, NOTHING)

    def owner(self, partition: Partition) -> str | None:
        """The member that may be reading the partition."""
        return self._owners.get(partition)

    def static_member(self, instance_id: str | None) -> str | None:
        return None if instance_id is None else self._instances.get(instance_id)

    def member_bytes(self, member_id: str, instance_id: str | None) -> int:
        known_id = member_id if member_id in self.members else self.static_member(instance_id)
        return 0 if known_id is None else subscription_bytes(self.members[known_id])

    def topics_of(self, member: MemberValue) -> Iterator[str]:
        """The topics to which a member subscribes, by name or by its expression; they need not exist."""
        yield from member.subscribed_topic_names
        if member.subscribed_topic_regex is not None:
            resolved = self.regexes.get(member.subscribed_topic_regex)
            yield from () if resolved is None else resolved.topics

    def subscribed_topics(self) -> set[str]:
        return {name for member in self.members.values() for name in self.topics_of(member)}

    def patterns(self) -> set[str]:
        """The regular expressions of members."""
        return {member.subscribed_topic_regex for member in self.members.values() if member.subscribed_topic_regex}

    # ── Changes ──────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, key: Key, value: Value | None) -> Value | None:
        """Apply a record; returns the previous value of its key."""
        before = self._keep(key, value)
        match key, value:
            case EpochKey(), EpochValue() | None:
                self.epoch = 0 if value is None else value.epoch
                self.metadata_hash = 0 if value is None else value.metadata_hash
            case TargetEpochKey(), TargetEpochValue() | None:
                self.target_epoch = 0 if value is None else value.assignment_epoch
            case MemberKey(), MemberValue() | None:
                self._put_member(key.member_id, value)
            case TargetKey(), TargetValue() | None:
                self._target.pop(key.member_id, None)
                if value is not None:
                    self._target[key.member_id] = each_partition(value.topic_partitions)
            case CurrentKey(), CurrentValue() | None:
                self._put_current(key.member_id, value)
            case RegexKey(), RegexValue() | None:
                self.regexes.pop(key.regular_expression, None)
                if value is not None:
                    self.regexes[key.regular_expression] = value
            case _:  # SubscriptionKey: written by Kafka 4.0, not used here
                pass
        return before

    def _keep(self, key: Key, value: Value | None) -> Value | None:
        before = self.records.pop(key, None)
        if before is not None:
            self.held_bytes -= record_bytes(key, before)
        if value is not None and not isinstance(key, SubscriptionKey):
            self.records[key] = value
            self.held_bytes += record_bytes(key, value)
        return before

    def _put_member(self, member_id: str, value: MemberValue | None) -> None:
        before = self.members.pop(member_id, None)
        if before is not None and self.static_member(before.instance_id) == member_id:
            del self._instances[before.instance_id]  # type: ignore[arg-type]  # no static member without one
        if value is not None:
            self.members[member_id] = value
            if value.instance_id is not None:
                self._instances[value.instance_id] = member_id

    def _put_current(self, member_id: str, value: CurrentValue | None) -> None:
        before = self._current.pop(member_id, _NEW)
        for partition in (*before.assigned, *before.revoked):
            if self._owners.get(partition) == member_id:
                del self._owners[partition]
        if value is not None:
            now = self._current[member_id] = Current.from_record(value)
            self._owners.update(dict.fromkeys((*now.assigned, *now.revoked), member_id))
