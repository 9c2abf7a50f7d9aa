"""A coordinator whose log is a list."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from ottla.core.ids import TopicPartition
from ottla.transactions.config import TransactionConfig
from ottla.transactions.coordinator import Coordinator
from ottla.transactions.records import encode

if TYPE_CHECKING:
    from ottla.transactions.decisions import Change, Decision
    from ottla.transactions.records import KeyValue

OLD, NEW = 0, 2
"""Transaction versions of clients."""
MINUTE_MS = 60_000
A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Written:
    """What a broker does with decisions, without a disk."""

    def __init__(self, config: TransactionConfig | None = None) -> None:
        self.log: list[KeyValue] = []
        self._config = config or TransactionConfig()
        self._ids = count(1000)
        self.rules = self._new_rules()

    def _new_rules(self) -> Coordinator:
        return Coordinator(self._config, lambda: next(self._ids))

    def restart(self) -> None:
        self.rules = self._new_rules()
        for key, value in self.log:
            self.rules.replay(key, value)

    def write(self, change: Change) -> None:
        self.log.append(encode(change.transactional_id, change.transaction))
        self.rules.apply(change)

    def done(self, decision: Decision, now_ms: int = 0) -> Decision:
        """Carry out all actions."""
        if decision.change is not None:
            self.write(decision.change)
            if decision.change.is_ending:
                self.write(self.rules.completed(decision.change.transactional_id, now_ms))
        return decision

    def producer(self, transactional_id: str = "t", now_ms: int = 0) -> tuple[int, int]:
        told = self.done(self.rules.init_producer_id(transactional_id, MINUTE_MS, None, now_ms))
        return told.producer_id, told.epoch

    def begin(
        self, producer: tuple[int, int], *partitions: TopicPartition, version: int = NEW, now_ms: int = 0
    ) -> None:
        decided = self.done(self.rules.add_partitions("t", producer, partitions, version, now_ms))
        assert not decided.error

    def end(
        self, producer: tuple[int, int], *, is_commit: bool = True, version: int = NEW, now_ms: int = 0
    ) -> Decision:
        return self.done(self.rules.end("t", producer, now_ms, is_commit=is_commit, client_version=version), now_ms)
