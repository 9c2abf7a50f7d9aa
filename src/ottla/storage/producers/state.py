"""State of idempotent and transactional producers. Pure rules: no files, no clock.

Per producer: its epoch, its last five batches, and the first offset of its open transaction. A batch is accepted if it
continues the producer's sequence, recognised as a duplicate if it is one of those five, and rejected otherwise.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import (
    DuplicateSequenceNumber,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from ottla.storage.segment_files.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from ottla.records.batch import BatchHeader
    from ottla.records.control import EndMarker

NO_SEQUENCE: Final = -1
NO_TRANSACTION: Final = -1
REMEMBERED_BATCHES: Final = 5
EPOCH_PER_TRANSACTION: Final = 2
"""The first transaction version in which every transaction has its own epoch (KIP-890)."""
_SEQUENCE_MASK: Final = 0x7FFFFFFF


class ProducedBatch(NamedTuple):
    """A batch in the log."""

    base_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class Producer:
    epoch: int
    batches: deque[ProducedBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))
    last_timestamp: int = -1
    coordinator_epoch: int = -1
    transaction_start: int = NO_TRANSACTION
    is_restored: bool = field(default=False, compare=False)
    """Whether it is from a snapshot, which has only the last batch."""
    ends: int = field(default=0, compare=False)
    """The number of transactions ended here since the log was opened: a change means that one ended in between."""


class ProducerStates:
    def __init__(self, producers: dict[int, Producer] | None = None) -> None:
        self.producers = producers if producers is not None else {}
        opened = [(p.transaction_start, n) for n, p in self.producers.items() if p.transaction_start != NO_TRANSACTION]
        # Ordered by first offset, so the first entry is the earliest transaction.
        self._open = {producer_id: start for start, producer_id in sorted(opened)}

    def check(self, header: BatchHeader) -> ProducedBatch | None:
        """The duplicate of this batch in the log, or None if it is the producer's next one."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            # Expired, or new to this partition: any sequence number is accepted.
            return None
        _refuse_fenced(header.producer_id, producer, header.producer_epoch)
        if header.producer_epoch > producer.epoch:
            expected = 0
        else:
            for known in producer.batches:
                if known.base_sequence == header.base_sequence and known.last_sequence == header.last_sequence:
                    return known
            if _was_before_snapshot(producer, header):
                raise DuplicateSequenceNumber(
                    f"sequence {header.base_sequence} of producer {header.producer_id} is in the log; offset unknown"
                )
            last = producer.batches[-1].last_sequence if producer.batches else NO_SEQUENCE
            expected = (last + 1) & _SEQUENCE_MASK
        if header.base_sequence != expected:
            raise OutOfOrderSequenceNumber(
                f"producer {header.producer_id}: out of order sequence {header.base_sequence}, expected {expected}"
            )
        if producer.transaction_start != NO_TRANSACTION and not header.is_transactional:
            raise InvalidTxnState(
                f"producer {header.producer_id} has an open transaction, and this batch is not part of it"
            )
        return None

    def has_open(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has an open transaction here, in this epoch."""
        producer = self.producers.get(producer_id)
        return (
            producer is not None and producer.epoch == producer_epoch and producer.transaction_start != NO_TRANSACTION
        )

    def check_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Raise an error for a fenced producer."""
        producer = self.producers.get(producer_id)
        if producer is not None:
            _refuse_fenced(producer_id, producer, producer_epoch)

    def check_end(self, producer_id: int, producer_epoch: int, marker: EndMarker) -> None:
        """Raise an error for the end marker of a fenced producer or coordinator.

        With transaction version 2 a marker carries the epoch after its transaction's, so a marker in the epoch of
        an open transaction is a late copy for the previous transaction (KIP-1228).
        """
        producer = self.producers.get(producer_id)
        if producer is None:
            return
        _refuse_fenced(producer_id, producer, producer_epoch)
        if marker.transaction_version >= EPOCH_PER_TRANSACTION and self.has_open(producer_id, producer_epoch):
            raise InvalidProducerEpoch(
                f"late end marker: producer {producer_id} has a newer transaction open in epoch {producer_epoch}"
            )
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"producer {producer_id} has coordinator epoch {producer.coordinator_epoch}, "
                f"not {marker.coordinator_epoch}"
            )

    def appended(self, header: BatchHeader, base_offset: int) -> None:
        """Record a data batch in the log."""
        producer = self._producer(header.producer_id, header.producer_epoch)
        producer.batches.append(
            ProducedBatch(
                header.base_sequence,
                header.last_sequence,
                base_offset + header.last_offset_delta,
                header.last_offset_delta,
                header.max_timestamp,
            )
        )
        producer.last_timestamp = header.max_timestamp
        if header.is_transactional and producer.transaction_start == NO_TRANSACTION:
            producer.transaction_start = self._open[header.producer_id] = base_offset

    def ended(self, header: BatchHeader, offset: int, marker: EndMarker) -> AbortedTransaction | None:
        """Record an end marker at `offset`; returns the aborted transaction, if any."""
        producer = self._producer(header.producer_id, header.producer_epoch)
        start = producer.transaction_start
        producer.transaction_start = NO_TRANSACTION
        producer.ends += 1
        self._open.pop(header.producer_id, None)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        if marker.is_commit or start == NO_TRANSACTION:
            return None
        stable = self.first_unstable_offset
        return AbortedTransaction(header.producer_id, start, offset, offset + 1 if stable is None else stable)

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the earliest open transaction, which limits the last stable offset."""
        return next(iter(self._open.values()), None)

    def expire(self, now_ms: int, expiration_ms: int) -> list[int]:
        """Expire idle producers without an open transaction."""
        silent = [
            producer_id
            for producer_id, producer in self.producers.items()
            if now_ms - producer.last_timestamp >= expiration_ms and producer.transaction_start == NO_TRANSACTION
        ]
        for producer_id in silent:
            del self.producers[producer_id]
        return silent

    def _producer(self, producer_id: int, epoch: int) -> Producer:
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = Producer(epoch)
        elif epoch > producer.epoch:
            producer.epoch = epoch
            producer.batches.clear()
            producer.is_restored = False
        return producer


def _was_before_snapshot(producer: Producer, header: BatchHeader) -> bool:
    """Whether the batch repeats one that a snapshot no longer has, which clients treat as success.

    Sequences of an epoch have no gaps, so everything below the first known sequence is in the log.
    """
    known = producer.batches
    if not producer.is_restored or not known or len(known) == REMEMBERED_BATCHES:
        return False
    return 0 <= header.base_sequence <= header.last_sequence < known[0].base_sequence


def _refuse_fenced(producer_id: int, producer: Producer, epoch: int) -> None:
    if epoch < producer.epoch:
        raise InvalidProducerEpoch(f"producer {producer_id} with epoch {epoch} is fenced by epoch {producer.epoch}")
