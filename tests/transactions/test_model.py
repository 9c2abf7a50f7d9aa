"""Model test: random producers, time, and crashes between any two writes; transactions are atomic."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.transactions.states import ALLOWED_PREDECESSORS, State

from .making import MINUTE_MS, NEW, OLD, Written

if TYPE_CHECKING:
    from ottla.transactions.decisions import Change

PARTITIONS = [TopicPartition("p", number) for number in range(3)]
ALWAYS = 100
"""More writes than any end of a transaction takes."""


@dataclass
class Producer:
    transactional_id: str
    version: int
    identity: tuple[int, int] = (-1, -1)
    token: int = -1
    """Of the transaction it believes to have under way."""
    is_dead: bool = False


@dataclass
class Log:
    """A partition: data of transactions, and how they ended."""

    entries: list[tuple[int, int | bool]] = field(default_factory=list)
    epochs: dict[int, int] = field(default_factory=dict)

    def append(self, producer: tuple[int, int], token: int) -> None:
        assert producer[1] >= self.epochs.get(producer[0], 0)
        self.epochs[producer[0]] = producer[1]
        self.entries.append((producer[0], token))

    def end(self, producer_id: int, epoch: int, *, is_commit: bool) -> None:
        self.epochs[producer_id] = max(epoch, self.epochs.get(producer_id, 0))
        self.entries.append((producer_id, is_commit))

    def outcomes(self) -> dict[int, set[bool | None]]:
        """By token: committed, aborted, or undecided."""
        found: dict[int, set[bool | None]] = {}
        open_tokens: dict[int, list[int]] = {}
        for producer_id, what in self.entries:
            if isinstance(what, bool):
                for token in open_tokens.pop(producer_id, []):
                    found.setdefault(token, set()).add(what)
            else:
                open_tokens.setdefault(producer_id, []).append(what)
        for tokens in open_tokens.values():
            for token in tokens:
                found.setdefault(token, set()).add(None)
        return found


class Crash(Exception):
    """The broker is killed here."""


class Transactions(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.written = Written()
        self.logs = {at: Log() for at in PARTITIONS}
        self.producers: list[Producer] = []
        self.now_ms = 0
        self.tokens = 0
        self.confirmed: dict[int, bool] = {}
        self.writes_left = ALWAYS

    # What a broker does, with a crash where the schedule has one

    def _one_write(self) -> None:
        if self.writes_left == 0:
            raise Crash
        self.writes_left -= 1

    def _write(self, change: Change) -> None:
        self._one_write()
        before = self.written.rules.get(change.transactional_id)
        assert change.transaction is not None
        assert before is None or change.transaction.state in ALLOWED_PREDECESSORS[before.state]
        self.written.write(change)

    def _finish(self, transactional_id: str) -> None:
        ending = self.written.rules.get(transactional_id)
        assert ending is not None
        for at in sorted(ending.partitions):
            self._one_write()
            self.logs[at].end(ending.producer_id, ending.epoch, is_commit=ending.is_commit)
        self._write(self.written.rules.completed(transactional_id, self.now_ms))

    def _carry_out(self, change: Change | None) -> None:
        if change is not None:
            self._write(change)
            if change.is_ending:
                self._finish(change.transactional_id)

    def _restart(self) -> None:
        self.writes_left = ALWAYS
        self.written.restart()
        for transactional_id in self.written.rules.unfinished():
            self._finish(transactional_id)
        assert self.written.rules.unfinished() == []

    # What happens

    @rule(transactional_id=st.sampled_from(["s", "t"]), version=st.sampled_from([OLD, NEW]), writes=st.integers(0, 8))
    def start_producer(self, transactional_id: str, version: int, writes: int) -> None:
        producer = Producer(transactional_id, version)
        rules = self.written.rules
        self.writes_left = writes
        try:
            decided = rules.init_producer_id(transactional_id, MINUTE_MS, None, self.now_ms)
            self._carry_out(decided.change)
            if decided.error is ErrorCode.CONCURRENT_TRANSACTIONS:
                decided = rules.init_producer_id(transactional_id, MINUTE_MS, None, self.now_ms)
                self._carry_out(decided.change)
        except Crash:
            self._restart()
            return
        assert decided.error is ErrorCode.NONE
        producer.identity = decided.producer_id, decided.epoch
        for other in self.producers:
            other.is_dead |= other.transactional_id == transactional_id
        self.producers.append(producer)
        self.writes_left = ALWAYS

    @rule(data=st.data(), at=st.sampled_from(PARTITIONS), writes=st.sampled_from([0, 1, ALWAYS]))
    def produce(self, data: st.DataObject, at: TopicPartition, writes: int) -> None:
        producer = self._some(data)
        if producer is None:
            return
        rules = self.written.rules
        self.writes_left = writes
        decided = rules.add_partitions(
            producer.transactional_id, producer.identity, [at], producer.version, self.now_ms
        )
        assert not (producer.is_dead and decided.error is ErrorCode.NONE)
        try:
            self._carry_out(decided.change)
            if decided.error is not ErrorCode.NONE:
                return
            self._one_write()
        except Crash:
            self._restart()
            return
        finally:
            self.writes_left = ALWAYS
        if producer.token < 0:
            self.tokens += 1
            producer.token = self.tokens
        assert rules.verify(producer.transactional_id, *producer.identity, at) is ErrorCode.NONE
        self.logs[at].append(producer.identity, producer.token)

    @rule(data=st.data(), is_commit=st.booleans(), writes=st.integers(0, 6))
    def end(self, data: st.DataObject, is_commit: bool, writes: int) -> None:
        producer = self._some(data)
        if producer is None:
            return
        self.writes_left = writes
        for _ in range(2):  # a client that heard nothing asks again
            decided = self.written.rules.end(
                producer.transactional_id,
                producer.identity,
                self.now_ms,
                is_commit=is_commit,
                client_version=producer.version,
            )
            try:
                self._carry_out(decided.change)
                break
            except Crash:
                self._restart()
        self.writes_left = ALWAYS
        if decided.error is not ErrorCode.NONE:
            return
        assert not producer.is_dead
        if producer.token >= 0:
            self.confirmed[producer.token] = is_commit
            producer.token = -1
        if producer.version >= NEW:
            producer.identity = decided.producer_id, decided.epoch

    @rule(passed_ms=st.sampled_from([1, MINUTE_MS // 2, MINUTE_MS]), writes=st.integers(0, 8))
    def time_passes(self, passed_ms: int, writes: int) -> None:
        self.now_ms += passed_ms
        self.writes_left = writes
        try:
            for change in self.written.rules.expire(self.now_ms):
                self._carry_out(change)
        except Crash:
            self._restart()
        self.writes_left = ALWAYS

    @rule()
    def crash(self) -> None:
        self._restart()

    def _some(self, data: st.DataObject) -> Producer | None:
        return data.draw(st.sampled_from(self.producers)) if self.producers else None

    # What must hold

    def _outcomes(self) -> dict[int, set[bool | None]]:
        found: dict[int, set[bool | None]] = {}
        for log in self.logs.values():
            for token, outcomes in log.outcomes().items():
                found.setdefault(token, set()).update(outcomes)
        return found

    @invariant()
    def every_transaction_is_atomic(self) -> None:
        if hasattr(self, "logs"):
            assert all(len(outcomes) == 1 for outcomes in self._outcomes().values())

    @invariant()
    def confirmed_outcomes_hold(self) -> None:
        if hasattr(self, "logs"):
            outcomes = self._outcomes()
            for token, is_commit in self.confirmed.items():
                assert outcomes[token] == {is_commit}

    @invariant()
    def no_open_transaction_is_abandoned(self) -> None:
        if hasattr(self, "logs"):
            ongoing = {
                (known.producer_id, at)
                for _, known in self.written.rules
                if known.state is State.ONGOING
                for at in known.partitions
            }
            for at, log in self.logs.items():
                for producer_id, _ in _open(log):
                    assert (producer_id, at) in ongoing

    def teardown(self) -> None:
        if hasattr(self, "logs"):
            for change in self.written.rules.expire(self.now_ms + 2 * MINUTE_MS):
                self._carry_out(change)
            assert None not in set().union(*self._outcomes().values(), set())


def _open(log: Log) -> list[tuple[int, int | bool]]:
    last_end = {producer_id: number for number, (producer_id, what) in enumerate(log.entries) if isinstance(what, bool)}
    return [
        entry
        for number, entry in enumerate(log.entries)
        if not isinstance(entry[1], bool) and number > last_end.get(entry[0], -1)
    ]


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
