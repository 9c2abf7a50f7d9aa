"""Model test: a partition's records are stored once and in order under any sequence of failures."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.producer.batch import Acknowledged, Batch
from ottla.core.errors import ApiError, ErrorCode, MessageTooLarge
from ottla.records.batch import check_produced
from ottla.records.reader import RecordReader
from ottla.storage.producers.state import ProducerStates

from .making import Partition, rules

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = tuple[Batch, "int | ErrorCode"]


class Broker:
    """The broker's sequence number rules, over a log in memory."""

    def __init__(self, max_records: int) -> None:
        self.log: list[int] = []
        self._max_records = max_records
        self._producers = ProducerStates()

    def append(self, data: bytes) -> int | ErrorCode:
        """The base offset, or the error."""
        header = check_produced(data)
        try:
            if header.record_count > self._max_records:
                raise MessageTooLarge
            known = self._producers.check(header)
        except ApiError as refused:
            return refused.code
        if known is not None:
            return known.base_offset
        base_offset = len(self.log)
        self.log += [int(record.value or b"") for record in RecordReader(data)]
        self._producers.appended(header, base_offset)
        return base_offset


class Play:
    """A partition, a connection and a broker; each step is one event."""

    def __init__(self, max_records: int) -> None:
        self.partition = Partition(buffers=1_000_000, queue_rules=rules())
        self.broker = Broker(max_records)
        self.sent = 0
        self.deliveries: list[Any] = []
        self.wire: deque[tuple[Batch, bytes]] = deque()
        self.answers: deque[Answer] = deque()

    def append(self) -> None:
        self.deliveries.append(self.partition.append(b"%d" % self.sent))
        self.sent += 1

    def seal(self) -> None:
        self.partition.accumulator.seal(self.partition.filling)

    def send(self) -> None:
        queue = self.partition.queue
        due = queue.due_at()
        if due is not None and due <= self.partition.now:
            batch = queue.take()
            self.wire.append((batch, bytes(batch.encode(queue.identity))))

    def process(self) -> None:
        if self.wire:
            batch, data = self.wire.popleft()
            self.answers.append((batch, self.broker.append(data)))

    def refuse(self) -> None:
        """The broker has a temporary problem."""
        if self.wire:
            self.answers.append((self.wire.popleft()[0], ErrorCode.NOT_ENOUGH_REPLICAS))

    def answer(self) -> None:
        if not self.answers:
            return
        batch, answer = self.answers.popleft()
        if isinstance(answer, ErrorCode):
            self.partition.refuse(batch, answer)
        else:
            self.partition.queue.acknowledged(batch, answer, -1)

    def break_connection(self) -> None:
        """The records may have been stored, without a response."""
        lost = [batch for batch, _ in self.answers] + [batch for batch, _ in self.wire]
        self.answers.clear()
        self.wire.clear()
        self.partition.lose(*lost)

    def wait(self) -> None:
        self.partition.now += 0.1

    def finish(self) -> None:
        """Finish without further failures."""
        for _ in range(20 * self.sent + 100):
            for step in (self.seal, self.send, self.process, self.answer):
                step()
        assert self.partition.queue.is_idle


STEPS: list[Callable[[Play], None]] = [
    *[Play.append] * 3,
    *[Play.seal] * 2,
    *[Play.send] * 4,
    *[Play.process] * 3,
    *[Play.answer] * 3,
    Play.refuse,
    Play.break_connection,
    Play.wait,
]


@pytest.mark.parametrize("max_records", [1_000, 2])
@given(steps=st.lists(st.sampled_from(STEPS), max_size=200))
def test_every_record_is_stored_once_and_in_order(max_records: int, steps: list[Callable[[Play], None]]) -> None:
    play = Play(max_records)

    for step in steps:
        step(play)
    play.finish()

    assert play.broker.log == list(range(play.sent))
    for number, delivery in enumerate(play.deliveries):
        outcome, place = delivery.batch.outcome_of(delivery.index)
        assert isinstance(outcome, Acknowledged)
        assert outcome.base_offset + place == number
    assert play.partition.filling.room == 1_000_000
