"""The changes of one request to a consumer group, step by step.

Members join, leave or change; the group epoch is incremented if the change affects the assignment, or topics have
changed; then the target assignment is computed; then the requesting member takes one reconciliation step. Each record
is applied when it is created, and can be rolled back if it cannot be written.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from ottla.core.patterns import InvalidPattern
from ottla.groups.actions import PersistRecords
from ottla.groups.consumer.assignors import ASSIGNORS, Subscriber
from ottla.groups.consumer.current import JOINING, Current
from ottla.groups.consumer.formats import (
    CurrentKey,
    EpochKey,
    EpochValue,
    MemberKey,
    RegexKey,
    RegexValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetPartitions,
    TargetValue,
)
from ottla.groups.consumer.reconciling import reconcile
from ottla.groups.consumer.records import Record
from ottla.groups.partitions import by_topic
from ottla.groups.topic_view import hash_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.groups.actions import Action
    from ottla.groups.classic import ClassicGroup
    from ottla.groups.consumer.formats import Key, MemberValue, Value
    from ottla.groups.consumer.group import ConsumerGroup
    from ottla.groups.consumer.state import GroupState
    from ottla.groups.partitions import Assigned

_FIRST_EPOCH: Final = 2
"""As in Kafka, whose first members have epoch 2."""


class Update:
    def __init__(
        self,
        group: ConsumerGroup,
        now_ms: int,
        may_see: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`may_see` returns whether the sender's regular expression may match a topic."""
        self.state = group.state_of_members
        self._group = group
        self._group_id = group.group_id
        self._topics = group.environment.topics
        self._now_ms = now_ms
        self._may_see = may_see
        self._has_news = False
        self._records: list[Record] = []
        self._replaced: list[Record] = []

    def put(self, key: Key, value: Value | None) -> None:
        before = self.state.records.get(key)
        if before != value:
            self.state.put(key, value)
            self._records.append(Record(key, value))
            self._replaced.append(Record(key, before))

    def actions(self) -> list[Action]:
        """The records to write."""
        if not self._records:
            return []
        return [PersistRecords(self._group_id, tuple(self._records), tuple(self._replaced))]

    def conversion(self, classic: ClassicGroup) -> PersistRecords:
        """Convert to a classic group; this group is deleted."""
        for key in list(self.state.records):
            self.put(key, None)
        records, replaced = tuple(self._records), tuple(self._replaced)
        return PersistRecords(self._group_id, records, replaced, becomes=classic, classic=classic.persist())

    # ── Members ──────────────────────────────────────────────────────────────────────────────────────────────

    def subscribe(self, member_id: str, member: MemberValue) -> None:
        before = self.state.members.get(member_id)
        self.put(MemberKey(group_id=self._group_id, member_id=member_id), member)
        self._has_news |= (
            before is None
            or before.subscribed_topic_names != member.subscribed_topic_names
            or before.subscribed_topic_regex != member.subscribed_topic_regex
        )

    def remove(self, member_id: str) -> None:
        self._erase(member_id)
        self._has_news = True

    def replace(self, old_id: str, new_id: str) -> None:
        """Replace a static member by its new instance: nothing moves."""
        state, group_id = self.state, self._group_id
        member = state.members[old_id]
        target = state.records.get(TargetKey(group_id=group_id, member_id=old_id))
        current = state.current(old_id)
        self._erase(old_id)
        self.put(MemberKey(group_id=group_id, member_id=new_id), member)
        self.put(TargetKey(group_id=group_id, member_id=new_id), target)
        self.put_current(new_id, Current(JOINING, JOINING, current.state, current.assigned, current.revoked))

    def put_current(self, member_id: str, current: Current) -> None:
        self.put(CurrentKey(group_id=self._group_id, member_id=member_id), current.to_record())

    def _erase(self, member_id: str) -> None:
        self.put(CurrentKey(group_id=self._group_id, member_id=member_id), None)
        self.put(TargetKey(group_id=self._group_id, member_id=member_id), None)
        self.put(MemberKey(group_id=self._group_id, member_id=member_id), None)

    # ── The group's epoch ────────────────────────────────────────────────────────────────────────────────────

    def force_new_epoch(self) -> None:
        """Start another epoch with the next `refresh`, even if nothing has changed."""
        self._has_news = True

    def refresh(self) -> None:
        """Start another epoch if the members have changed, or the topics since the group was last updated.

        It is called again later if a regular expression has not been evaluated yet; until then its previous matches are
        kept.
        """
        if not self._has_news and self._group.has_seen_topics:
            return
        is_complete = self._resolve_patterns(are_new=not self._group.has_seen_topics)
        known = (self._topics.by_name(name) for name in self.state.subscribed_topics())
        metadata_hash = hash_of(info for info in known if info is not None)
        if self._has_news or metadata_hash != self.state.metadata_hash:
            epoch = max(self.state.epoch + 1, _FIRST_EPOCH)
            value = EpochValue(epoch=epoch, metadata_hash=metadata_hash)
            self.put(EpochKey(group_id=self._group_id), value)
        self._group.seen_version = self._topics.version if is_complete else None

    def _resolve_patterns(self, *, are_new: bool) -> bool:
        used = self.state.patterns()
        for regex in self.state.regexes.keys() - used:
            self.put(RegexKey(group_id=self._group_id, regular_expression=regex), None)
        resolved = [self._resolve(regex) for regex in used if are_new or regex not in self.state.regexes]
        return all(resolved)

    def _resolve(self, regex: str) -> bool:
        try:
            matched = self._group.environment.matching.known(regex)
        except InvalidPattern:
            # Too expensive with the current topics: its previous matches are kept.
            return True
        if matched is None:
            return False
        found = tuple(name for name in matched if self._may_see(name))
        before = self.state.regexes.get(regex)
        if before is None or before.topics != found:
            value = RegexValue(topics=found, version=self._topics.version, timestamp=self._now_ms)
            self.put(RegexKey(group_id=self._group_id, regular_expression=regex), value)
        return True

    # ── Assignment ───────────────────────────────────────────────────────────────────────────────────────────

    def assign(self) -> None:
        """Compute the target assignment, unless it is known for this epoch."""
        state = self.state
        if state.epoch <= state.target_epoch:
            return
        members, partitions = self._subscribers()
        target = ASSIGNORS[self.assignor](members, partitions)
        for member_id in members:
            self._put_target(member_id, target[member_id])
        value = TargetEpochValue(assignment_epoch=state.epoch, assignment_timestamp=self._now_ms)
        self.put(TargetEpochKey(group_id=self._group_id), value)

    @property
    def assignor(self) -> str:
        return preferred_assignor(self.state) or self._group.environment.config.consumer_assignors[0]

    def reconcile(self, member_id: str, owned: Assigned | None) -> Current:
        state = self.state
        before = state.current(member_id)
        current = reconcile(
            before,
            state.target_epoch,
            state.target(member_id),
            owned,
            lambda partition: state.owner(partition) in (None, member_id),
        )
        if current != before:
            self.put_current(member_id, current)
        return current

    def _subscribers(self) -> tuple[dict[str, Subscriber], dict[bytes, int]]:
        partitions: dict[bytes, int] = {}
        members: dict[str, Subscriber] = {}
        for member_id, member in self.state.members.items():
            known = [self._topics.by_name(name) for name in self.state.topics_of(member)]
            topics = {info.id: info.partitions for info in known if info is not None}
            partitions.update(topics)
            members[member_id] = Subscriber(frozenset(topics), self.state.target(member_id), member.instance_id)
        return members, partitions

    def _put_target(self, member_id: str, target: Assigned) -> None:
        topics = tuple(TargetPartitions(topic_id=topic_id, partitions=each) for topic_id, each in by_topic(target))
        self.put(TargetKey(group_id=self._group_id, member_id=member_id), TargetValue(topic_partitions=topics))


def preferred_assignor(state: GroupState) -> str | None:
    """The assignor chosen by most members."""
    wanted = Counter(member.server_assignor for member in state.members.values() if member.server_assignor in ASSIGNORS)
    return wanted.most_common(1)[0][0] if wanted else None
