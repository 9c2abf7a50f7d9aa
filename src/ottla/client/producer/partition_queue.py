"""Which batches of a partition may be sent, in which order, and the effect of each response. Pure: time is an argument.

Records are sent in append order, across failures:

- An open batch is sent when it is full, has waited long enough, or is awaited. While the partition has a batch
in flight, a batch that is not full keeps filling.
- Several full batches may be in flight at once if they have sequence numbers (idempotence): the broker rejects
out-of-order batches. It accepts any first sequence number of an unknown producer, so the first batch is sent alone.
- After a failure nothing new is sent until all batches in flight are answered. Then failed batches are retried, lowest
first, one at a time, with their sequence numbers.
- A batch that fails permanently leaves a gap in the sequence. If the broker certainly does not have it, the later
ones are renumbered from the broker's position. If it may have it, they start at 0 in a new epoch.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from ottla.client.errors import BrokerError, DeliveryFailed
from ottla.client.producer.batch import NO_SEQUENCE, NOBODY, Acknowledged, Batch, Identity, Refused, advance
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.client.errors import ClientError
    from ottla.client.producer.accumulator import Accumulator, Filling

_LAST_EPOCH: Final = 0x7FFF
_LOST_TRACK: Final = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH}
)
"""Errors which mean that the broker expects another sequence number."""
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_order: Final = attrgetter("order")


@dataclass(frozen=True, slots=True)
class QueueRules:
    linger_s: float
    delivery_timeout_s: float
    max_in_flight: int
    is_idempotent: bool
    is_transactional: bool = False


class PartitionQueue:
    def __init__(
        self, filling: Filling, accumulator: Accumulator, rules: QueueRules, when_done: Callable[[Batch], None]
    ) -> None:
        self.topic: str = filling.topic.name
        self.partition: int = filling.partition
        self.filling = filling
        self.identity = NOBODY
        self.in_flight: deque[Batch] = deque()
        self.returned: list[Batch] = []
        self.failures = 0
        """Consecutive failures, without an acknowledgement in between."""
        self.not_before = 0.0
        self.last_error: ClientError | None = None
        self.looked_at: float | None = None
        """When the event loop checks it next, unless something happens before."""
        self._accumulator = accumulator
        self._rules = rules
        self._when_done = when_done
        self._taken = 0
        self._next_sequence = 0
        self._broker_sequence = 0  # the next sequence number by the broker's acknowledgements
        self._is_known = False  # to the broker, under this identity
        self._has_gap = False
        self._needs_epoch = False

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    # What to send

    @property
    def has_unsent(self) -> bool:
        return bool(self.returned or self.filling.sealed or self.filling.batch is not None)

    @property
    def is_idle(self) -> bool:
        return not self.in_flight and not self.has_unsent

    @property
    def is_urgent(self) -> bool:
        """Whether due batches should not wait for other partitions: full, failed, or awaited."""
        batch = self.filling.batch
        return bool(self.returned or self.filling.sealed) or (batch is not None and batch.is_urgent)

    def due_at(self) -> float | None:
        """When a batch may be taken; None if not before a response or an append."""
        if self.in_flight and self._must_wait_for_answers():
            return None
        if self.returned or self.filling.sealed:
            return self.not_before
        batch: Batch | None = self.filling.batch
        if batch is None or self.in_flight:
            return None
        due = batch.begun_s if batch.is_urgent else batch.begun_s + self._rules.linger_s
        return max(due, self.not_before)

    def _must_wait_for_answers(self) -> bool:
        if self.returned or self._has_gap or self._needs_epoch:
            return True
        return len(self.in_flight) >= (self._rules.max_in_flight if self._is_known else 1)

    def take(self) -> Batch:
        """The next batch to send, with its sequence number; it counts as in flight from now on."""
        if self._rules.is_idempotent:
            self._close_gap()
        if self.returned:
            batch = self.returned.pop(0)
        else:
            if not self.filling.sealed:
                self._accumulator.seal(self.filling)
            batch = self.filling.sealed.popleft()
            self._taken += 1
            batch.order = (self._taken,)
        if self._rules.is_idempotent and batch.base_sequence == NO_SEQUENCE:
            batch.base_sequence = self._next_sequence
            self._next_sequence = advance(self._next_sequence, batch.count)
        self.in_flight.append(batch)
        return batch

    @property
    def needs_identity(self) -> bool:
        """Whether a producer id is needed before a batch can be taken."""
        if not self._rules.is_idempotent:
            return False
        return self.identity is NOBODY or (self._needs_epoch and self.identity.epoch >= _LAST_EPOCH)

    def identify(self, identity: Identity) -> None:
        """Use this producer id and epoch, which the broker does not know yet."""
        self.identity = identity
        self._is_known = False
        self._needs_epoch = False
        self._renumber(0)

    def _close_gap(self) -> None:
        if self.in_flight:
            return
        if self._needs_epoch:
            self.identify(Identity(self.identity.producer_id, self.identity.epoch + 1))
        elif self._has_gap:
            self._renumber(self._broker_sequence)

    def _renumber(self, first: int) -> None:
        self._has_gap = False
        self._next_sequence = self._broker_sequence = first
        for batch in self.returned:
            batch.base_sequence = NO_SEQUENCE

    # Outcomes

    def acknowledged(self, batch: Batch, base_offset: int, log_append_time_ms: int) -> None:
        self.in_flight.remove(batch)
        self._is_known = self._rules.is_idempotent
        self._broker_sequence = advance(batch.base_sequence, batch.count)
        self.failures = 0
        self.not_before = 0.0
        self._done(batch, Acknowledged(base_offset, log_append_time_ms))

    def answered_with(self, batch: Batch, error: BrokerError, record_errors: Mapping[int, ClientError]) -> bool:
        """Handle the broker's rejection of a batch. Returns whether to retry it."""
        if error.code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self.acknowledged(batch, -1, -1)
            return False
        if error.code in _TOO_LARGE and batch.count > 1:
            self._split(batch)
            return True
        if self._rules.is_idempotent and not self._rules.is_transactional and error.code in _LOST_TRACK:
            is_first = self.in_flight[0] is batch and not self.returned
            self._needs_epoch |= is_first and not self._has_gap
        elif not error.is_retriable:
            self.in_flight.remove(batch)
            self._has_gap = self._rules.is_idempotent
            self._done(batch, Refused(error, record_errors))
            return False
        self.came_back(batch, error)
        return True

    def came_back(self, batch: Batch, error: ClientError) -> None:
        """Requeue a batch that was not stored, or may not have been: it must be retried."""
        self.in_flight.remove(batch)
        insort(self.returned, batch, key=_order)
        self.last_error = error

    def failed(self, retry_at: float) -> None:
        """Handle a failed request with a batch of this partition: pause until this time."""
        self.failures += 1
        self.not_before = retry_at

    def _split(self, batch: Batch) -> None:
        self.in_flight.remove(batch)
        halves = batch.split()
        for half in halves:
            insort(self.returned, half, key=_order)
        # One buffer became two; later batches are made small enough from the start.
        self._accumulator.give_back(self.filling, -1)
        self.filling.max_bytes = min(self.filling.max_bytes, max(half.size for half in halves))

    # Expiry

    def expires_at(self) -> float | None:
        """When the oldest batch that is not in flight expires."""
        oldest = self._oldest_waiting()
        return None if oldest is None else oldest.begun_s + self._rules.delivery_timeout_s

    def expire(self, now: float) -> None:
        """Fail expired batches that are not in flight."""
        while (oldest := self._oldest_waiting()) is not None:
            if oldest.begun_s + self._rules.delivery_timeout_s > now:
                return
            timeout_ms = round(self._rules.delivery_timeout_s * 1000)
            why = "" if self.last_error is None else f"; last error: {self.last_error}"
            error = DeliveryFailed(f"{self}: not acknowledged within {timeout_ms} ms{why}")
            error.__cause__ = self.last_error
            self._give_up(oldest, error)

    def abandon(self, error: ClientError) -> None:
        """Fail all batches, in flight or not."""
        while self.in_flight:
            self.returned.append(self.in_flight.popleft())
        self.returned.sort(key=_order)
        self.drop_waiting(error)

    def drop_waiting(self, error: ClientError) -> None:
        """Fail batches that are not in flight: their transaction is aborted."""
        while (batch := self._oldest_waiting()) is not None:
            self._give_up(batch, error)

    @property
    def is_out_of_step(self) -> bool:
        """Whether the broker's sequence number may differ from ours."""
        return self._needs_epoch or self._has_gap

    def unfinished(self) -> list[Batch]:
        return [*self.in_flight, *self.returned, *self._accumulator.waiting(self.filling)]

    def _oldest_waiting(self) -> Batch | None:
        # Other threads may seal the open batch at any time; only this one removes sealed batches.
        if self.returned:
            return self.returned[0]
        oldest: Batch | None = self.filling.sealed[0] if self.filling.sealed else self.filling.batch
        return oldest

    def _give_up(self, batch: Batch, error: ClientError) -> None:
        if batch in self.returned:
            self.returned.remove(batch)
        else:
            if not self.filling.sealed:
                self._accumulator.seal(self.filling)
            self.filling.sealed.popleft()
        if batch.base_sequence != NO_SEQUENCE:
            self._needs_epoch = True  # the broker may have stored it
        self._done(batch, Refused(error))

    def _done(self, batch: Batch, outcome: Acknowledged | Refused) -> None:
        self._accumulator.give_back(self.filling, 1)
        batch.finish(outcome)
        self._when_done(batch)
