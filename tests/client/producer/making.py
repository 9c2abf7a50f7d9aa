"""A partition queue without a network: tests append records, take batches and supply the broker's responses."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ottla.client.errors import BrokerError, ClientError, ConnectionLost, broker_error
from ottla.client.producer import accumulator as compiled
from ottla.client.producer.batch import Batch, Identity, Refused
from ottla.client.producer.partition_queue import PartitionQueue, QueueRules
from ottla.records.batch import check_produced
from ottla.records.reader import RecordReader

if TYPE_CHECKING:
    from types import ModuleType

    from ottla.core.errors import ErrorCode

LINGER_S = 0.1
TIMEOUT_S = 120.0
ME = Identity(producer_id=7, epoch=0)
LOST = ConnectionLost("the connection is lost")


def rules(*, is_idempotent: bool = True, max_in_flight: int = 5) -> QueueRules:
    return QueueRules(
        linger_s=LINGER_S,
        delivery_timeout_s=TIMEOUT_S,
        max_in_flight=max_in_flight,
        is_idempotent=is_idempotent,
    )


class Partition:
    """One partition of topic "t", its clock, and its outcomes."""

    def __init__(
        self,
        form: ModuleType = compiled,
        max_bytes: int = 1 << 20,
        buffers: int = 10,
        queue_rules: QueueRules | None = None,
    ) -> None:
        self.now = 100.0
        self.woken: list[Any] = []
        self.done: list[Batch] = []
        self.accumulator = form.Accumulator(threading.Lock(), self.woken.append, clock=lambda: self.now)
        self.topic = form.TopicBuffers("t", lambda _topic: 0)
        self.filling = form.Filling(self.topic, 0, max_bytes, buffers)
        self.topic.fillings.append(self.filling)
        self.topic.count = 1
        self.queue = PartitionQueue(self.filling, self.accumulator, queue_rules or rules(), self.done.append)
        self.filling.queue = self.queue
        if self.queue.needs_identity:
            self.queue.identify(ME)

    def append(self, value: bytes = b"value") -> Any:
        return self.accumulator.append(self.topic, 0, 1000, None, value)

    def seal(self, *values: bytes) -> Batch:
        """Add a separate batch of these records that counts as full."""
        for value in values:
            self.append(value)
        self.accumulator.seal(self.filling)
        batch: Batch = self.filling.sealed[-1]
        return batch

    def take(self) -> Batch:
        """Take and encode a batch, which must be due."""
        due = self.queue.due_at()
        assert due is not None
        assert due <= self.now
        batch = self.queue.take()
        batch.encode(self.queue.identity)
        return batch

    def introduce(self) -> None:
        """Acknowledge a first batch, so that more than one may be in flight."""
        self.seal(b"first")
        self.queue.acknowledged(self.take(), 0, -1)

    def lose(self, *batches: Batch) -> None:
        for batch in batches:
            self.queue.came_back(batch, LOST)

    def refuse(self, batch: Batch, code: ErrorCode) -> bool:
        return self.queue.answered_with(batch, refusal(code), {})


def refusal(code: ErrorCode) -> BrokerError:
    return broker_error(code, "t-0")


def error_of(batch: Batch) -> ClientError:
    assert isinstance(batch.outcome, Refused)
    return batch.outcome.error


def stamps(batch: Batch, identity: Identity = ME) -> tuple[int, int, int]:
    """The producer id, epoch and base sequence that the broker sees."""
    header = check_produced(batch.encode(identity))
    return header.producer_id, header.producer_epoch, header.base_sequence


def values(batch: Batch, identity: Identity = ME) -> list[bytes | None]:
    return [record.value for record in RecordReader(batch.encode(identity))]
