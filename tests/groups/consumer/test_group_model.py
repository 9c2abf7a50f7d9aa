"""Model test of consumer groups: no partition has two owners, and finally all have one."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.core.errors import ErrorCode
from ottla.groups.partitions import Partition, each_partition
from ottla.groups.sizes import GROUP_BYTES, record_bytes
from ottla.groups.states import State

from .making import REBALANCE_MS, SESSION_MS, Office, topic_partitions

if TYPE_CHECKING:
    from typing import Any

TOPICS = ("a", "b", "c")
REGEX = "a|c"
SUBSCRIPTIONS = st.one_of(
    st.builds(lambda names: {"subscribed_topic_names": tuple(sorted(names))}, st.sets(st.sampled_from(TOPICS))),
    st.just({"subscribed_topic_regex": REGEX}),
)


class Reader:
    """A member that revokes with a delay."""

    def __init__(self, name: str, instance: str | None, subscription: dict[str, Any]) -> None:
        self.id = name
        self.instance = instance
        self.subscription = subscription
        self.epoch = 0
        self.reads: set[Partition] = set()
        self.revoked: set[Partition] = set()
        self.has_missed_something = False
        """After a lost response it sends and receives its full state."""

    @property
    def topics(self) -> set[str]:
        if "subscribed_topic_regex" in self.subscription:
            return set(REGEX.split("|"))
        return set(self.subscription["subscribed_topic_names"])


class ConsumerGroups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.office = Office({"a": 3, "b": 2})
        self.readers: list[Reader] = []
        self.now = 0
        self.count = 0
        self.highest_epoch = 0

    # ── Events ───────────────────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: len(self.readers) < 5)
    @rule(subscription=SUBSCRIPTIONS, is_static=st.booleans())
    def join(self, subscription: dict[str, Any], is_static: bool) -> None:
        self.count += 1
        instance = f"i{self.count}" if is_static else None
        reader = Reader(f"r{self.count}", instance, subscription)
        self.readers.append(reader)
        self._beat(reader)

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        self._beat(data.draw(st.sampled_from(self.readers)))

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), subscription=SUBSCRIPTIONS)
    def subscribe(self, data: st.DataObject, subscription: dict[str, Any]) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        both = {"subscribed_topic_names": (), "subscribed_topic_regex": "", **subscription}
        if self._beat(reader, **both):
            reader.subscription = subscription

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        reader.reads -= reader.revoked
        reader.revoked = set()

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def lose_an_answer(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        self._ask(reader)
        reader.has_missed_something = True

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        reader.reads.clear()
        self.readers.remove(reader)
        self.office.beat(reader.id, now=self.now, member_epoch=-1, instance_id=reader.instance)

    @precondition(lambda self: any(reader.instance for reader in self.readers))
    @rule(data=st.data())
    def restart_a_static_member(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from([one for one in self.readers if one.instance]))
        answer = self.office.beat(reader.id, now=self.now, member_epoch=-2, instance_id=reader.instance)
        self.readers.remove(reader)
        if answer.error_code == ErrorCode.NONE:
            self.count += 1
            again = Reader(f"r{self.count}", reader.instance, reader.subscription)
            self.readers.append(again)
            self._beat(again)

    @rule(name=st.sampled_from(TOPICS), partitions=st.integers(1, 4))
    def change_a_topic(self, name: str, partitions: int) -> None:
        known = self.office.topics.by_name(name)
        if known is None or known.partitions < partitions:
            self.office.topics.put(name, partitions, generation=0 if known else self.count)

    @rule(name=st.sampled_from(TOPICS))
    def delete_a_topic(self, name: str) -> None:
        info = self.office.topics.by_name(name)
        if info is not None:
            self.office.topics.delete(name)

    @rule(passed_ms=st.integers(1, SESSION_MS // 2))
    def wait(self, passed_ms: int) -> None:
        self.now += passed_ms
        self.office.expire(self.now)

    @rule(can_write=st.booleans())
    def break_or_mend_the_disk(self, can_write: bool) -> None:
        self.office.can_write = can_write

    @rule()
    def restart_the_broker(self) -> None:
        can_write = self.office.can_write
        before = self.office
        self.office = before.reopened()
        for group in before.groups.table:
            again = self.office.groups.table.get(group.group_id)
            assert again is not None
            assert again.state_of_members.records == group.state_of_members.records  # type: ignore[union-attr]
        self.office.carry_out(self.office.groups.table.start(self.now))
        self.office.can_write = can_write

    # ── Invariants ───────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def no_partition_is_read_by_two(self) -> None:
        members = {member for group in self.office.groups.table for member in _members(group)}
        # A dropped member must notice that its session expired, and stop.
        there = [reader for reader in self.readers if reader.id in members]
        for one, other in combinations(there, 2):
            assert not one.reads & other.reads

    @invariant()
    def the_memory_of_groups_is_accounted(self) -> None:
        table = self.office.groups.table
        for group in table:
            state = group.state_of_members  # type: ignore[union-attr]
            assert state.held_bytes == sum(record_bytes(key, value) for key, value in state.records.items())
        groups = sum(GROUP_BYTES + len(group.group_id) + group.held_bytes for group in table)
        assert table.memory.held_bytes == groups + sum(table.offsets(group.group_id).held_bytes for group in table)

    @invariant()
    def epochs_only_grow(self) -> None:
        for group in self.office.groups.table:
            state = group.state_of_members  # type: ignore[union-attr]
            assert state.target_epoch <= state.epoch
            if self.office.can_write:
                assert state.epoch >= self.highest_epoch
                self.highest_epoch = state.epoch

    def teardown(self) -> None:
        """Finally every subscribed partition has exactly one owner."""
        self.restart_the_broker()
        self.office.can_write = True
        # Long enough to expire members whose leave could not be written.
        for _ in range(12):
            for reader in list(self.readers):
                reader.reads -= reader.revoked
                reader.revoked = set()
                self._beat(reader)
            self.wait(SESSION_MS // 3)
        if not self.readers:
            return
        assert self.office.group.state is State.STABLE
        wanted = {
            Partition(info.id, number)
            for name in set().union(*(reader.topics for reader in self.readers))
            if (info := self.office.topics.by_name(name)) is not None
            for number in range(info.partitions)
        }
        assert sorted(each for reader in self.readers for each in reader.reads) == sorted(wanted)

    # ── Helpers ──────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, reader: Reader, **fields: Any) -> Any:
        is_full = reader.has_missed_something or not reader.epoch
        joins = {"rebalance_timeout_ms": REBALANCE_MS, **reader.subscription} if is_full else {}
        owned = topic_partitions(reader.reads) if reader.epoch else ()
        request = {"member_epoch": reader.epoch, "instance_id": reader.instance, "topic_partitions": owned}
        return self.office.beat(reader.id, now=self.now, **{**request, **joins, **fields})

    def _beat(self, reader: Reader, **fields: Any) -> bool:
        answer = self._ask(reader, **fields)
        if answer.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            reader.epoch = 0
            reader.reads, reader.revoked = set(), set()
            answer = self._ask(reader, **fields)
        if answer.error_code != ErrorCode.NONE:
            assert answer.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.GROUP_ID_NOT_FOUND), answer
            reader.has_missed_something = True
            if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                reader.epoch = 0
            return False
        reader.epoch = answer.member_epoch
        reader.has_missed_something = False
        if answer.assignment is not None:
            assigned = each_partition(answer.assignment.topic_partitions)
            reader.revoked = (reader.reads | reader.revoked) - assigned
            reader.reads |= assigned
        return True


def _members(group: Any) -> set[str]:
    return set(group.state_of_members.members)


ConsumerGroups.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestConsumerGroups = ConsumerGroups.TestCase
