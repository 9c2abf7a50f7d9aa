"""Model test of members, time, crashes and dead letters: every record ends once, none is lost or acquired twice."""

from __future__ import annotations

import os
from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.core.errors import InvalidRecordState
from ottla.share.partition import Acknowledgement, Acquired, Change, Delay, Limits, SharePartition
from ottla.share.spans import State

MEMBERS = ("ann", "bob", "cyd")
LIMITS = Limits(lock_ms=100, deliveries=3, in_flight=12, has_dead_letters=True)


class Batch(NamedTuple):
    first: int
    last: int
    due_ms: dict[int, int]
    is_data: bool


class Written:
    """The state after a crash: a snapshot, and the changes since."""

    def __init__(self) -> None:
        self.start = 0
        self.snapshot: list[Change] = []
        self.updates: list[tuple[int, list[Change]]] = []

    def restored(self) -> SharePartition:
        partition = SharePartition(self.start)
        partition.replay(self.start, self.snapshot)
        for start, changes in self.updates:
            partition.replay(start, changes)
        partition.settle()
        return partition


class ShareModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1000
        self.log: list[Batch] = []
        self.log_start = 0
        self.written = Written()
        self.partition = SharePartition(0)
        self.holder: dict[int, str] = {}
        self.counts: dict[int, int] = {}
        """The persisted delivery count of each record."""
        self.lasting_counts: dict[int, int] = {}
        self.over: set[int] = set()
        self.highest_start = 0

    @property
    def log_end(self) -> int:
        return self.log[-1].last + 1 if self.log else 0

    def _write(self, changes: list[Change]) -> None:
        """Write first, then apply, as the broker does."""
        lasting = [change for change in changes if change.is_lasting]
        self.written.updates.append((self.partition.start_after(changes), lasting))
        self.partition.apply(changes)
        for change in changes:
            for offset in range(change.first, change.last + 1):
                self.holder.pop(offset, None)
                if change.state is State.AVAILABLE:
                    self.counts[offset] = self.lasting_counts[offset] = change.deliveries
                if change.state.is_final:
                    self.over.add(offset)

    # What happens

    @rule(
        gap=st.sampled_from([0, 0, 0, 2]),
        delays=st.lists(st.sampled_from([0, 0, 0, 50, 500]), min_size=1, max_size=6),
        is_data=st.sampled_from([True, True, True, False]),
    )
    def append(self, gap: int, delays: list[int], is_data: bool) -> None:  # noqa: FBT001
        first = self.log_end + gap
        due = {first + at: self.now_ms + delay for at, delay in enumerate(delays) if delay}
        self.log.append(Batch(first, first + len(delays) - 1, due, is_data))

    @rule(member=st.sampled_from(MEMBERS), most=st.integers(1, 8))
    def fetch(self, member: str, most: int) -> None:
        for _ in range(4):
            offset = self.partition.wanted(LIMITS.in_flight)
            if offset is None or offset >= self.log_end:
                return
            batch = next(batch for batch in self.log if batch.last >= offset)
            if self.partition.is_unknown(min(offset, batch.first), batch.last):
                delays = [Delay(*one) for one in batch.due_ms.items() if one[1] > self.now_ms]
                self.partition.look_at(offset, batch.first, batch.last, delays, is_data=batch.is_data)
            got = self.partition.acquire(batch.first, batch.last, member, most, LIMITS, self.now_ms)
            for acquired in got:
                self._delivered(member, acquired, batch)
                most -= acquired.size
            if most <= 0:
                return

    def _delivered(self, member: str, acquired: Acquired, batch: Batch) -> None:
        assert batch.is_data
        for offset in range(acquired.first, acquired.last + 1):
            assert batch.first <= offset <= batch.last
            assert offset not in self.holder, "acquired by two members"
            assert offset not in self.over, "already settled"
            assert batch.due_ms.get(offset, 0) <= self.now_ms, "it is not due"
            self.counts[offset] = self.counts.get(offset, 0) + 1
            assert acquired.deliveries == self.counts[offset] <= LIMITS.deliveries
            self.holder[offset] = member

    @rule(data=st.data(), member=st.sampled_from(MEMBERS))
    def acknowledge(self, data: st.DataObject, member: str) -> None:
        held = self.partition.held_by(member)
        if not held:
            return
        one = data.draw(st.sampled_from(held))
        first = data.draw(st.integers(one.first, one.last))
        last = data.draw(st.integers(first, one.last))
        count = data.draw(st.sampled_from([1, last - first + 1]))
        kinds = data.draw(st.lists(st.sampled_from(Acknowledgement), min_size=count, max_size=count))
        changes, renewed = self.partition.acknowledge(member, first, last, kinds, LIMITS)
        self.partition.renew(renewed, LIMITS, self.now_ms)
        self._write(changes)

    @rule(member=st.sampled_from(MEMBERS), was_delivered=st.booleans())
    def leave(self, member: str, was_delivered: bool) -> None:  # noqa: FBT001
        self._write(self.partition.release(member, LIMITS, was_delivered=was_delivered))

    @rule(most=st.integers(1, 8))
    def try_in_vain(self, most: int) -> None:
        self.fetch("ann", most)
        self.leave("ann", was_delivered=True)

    @rule()
    def crash_behind_a_snapshot(self) -> None:
        self.snapshot()
        self.crash()

    @rule(passed_ms=st.sampled_from([10, 60, 200]))
    def wait(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        changes, _ = self.partition.expire(LIMITS, self.now_ms)
        self._write(changes)
        deadline_ms = self.partition.next_deadline_ms()
        assert deadline_ms is None or deadline_ms > self.now_ms

    @rule()
    def bury(self) -> None:
        self._write(self.partition.buried(self.partition.dying()))

    @rule()
    def snapshot(self) -> None:
        self.written.start = self.partition.start
        self.written.snapshot = self.partition.lasting()
        self.written.updates = []

    @rule()
    def crash(self) -> None:
        self.partition = self.written.restored()
        self.partition.move_start(self.log_start)
        # Batches without data are found again, and the start moves over them again.
        self.highest_start = self.partition.start
        assert all(
            offset in self.over
            for batch in self.log
            for offset in range(batch.first, batch.last + 1)
            if batch.is_data and self.log_start <= offset < self.partition.start
        )
        self.holder.clear()
        self.counts = dict(self.lasting_counts)

    @rule()
    def delete_the_oldest(self) -> None:
        if self.log:
            doomed = self.log.pop(0)
            self.log_start = doomed.last + 1
            if not self.log:
                self.log.append(Batch(doomed.last + 1, doomed.last + 1, {}, is_data=True))
            self.partition.move_start(self.log_start)
            self.holder = {offset: member for offset, member in self.holder.items() if offset >= self.partition.start}

    # Invariants

    @invariant()
    def the_start_only_moves_forward(self) -> None:
        assert self.highest_start <= self.partition.start <= self.partition.end
        self.highest_start = self.partition.start

    @invariant()
    def what_is_before_the_start_is_over(self) -> None:
        for batch in self.log:
            for offset in range(batch.first, min(batch.last + 1, self.partition.start)):
                assert offset in self.over or not batch.is_data or offset < self.log_start

    @invariant()
    def holders_are_as_known(self) -> None:
        for member in MEMBERS:
            held = {o for a in self.partition.held_by(member) for o in range(a.first, a.last + 1)}
            assert held == {offset for offset, one in self.holder.items() if one == member}

    def teardown(self) -> None:
        """Nothing is lost: every unsettled record is delivered eventually."""
        self.now_ms += 10_000
        for _ in range(60):
            for member in MEMBERS:
                self.fetch(member, 8)
                for first, last, _ in self.partition.held_by(member):
                    changes, _ = self.partition.acknowledge(member, first, last, [Acknowledgement.ACCEPT], LIMITS)
                    self._write(changes)
            self.bury()
            self.wait(200)
        assert self.partition.start == self.partition.end >= self.log_end
        with pytest.raises(InvalidRecordState):
            self.partition.acknowledge("ann", self.log_end, self.log_end, [1], LIMITS)


TestShareModel = ShareModel.TestCase
TestShareModel.settings = settings(
    max_examples=int(os.environ.get("MODEL_EXAMPLES", "150")), stateful_step_count=50, deadline=None
)
