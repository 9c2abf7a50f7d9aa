"""The state of a transactional id, and its transitions. Immutable: each step
returns the next state to write.

With transaction version 2 (KIP-890) every end of a transaction bumps the producer epoch, so that late requests
cannot become part of the next transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ottla.transactions.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.core.ids import TopicPartition

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
LAST_EPOCH: Final = (1 << 15) - 2
"""The highest epoch of a producer: one more is reserved for fencing."""

EPOCH_PER_TRANSACTION: Final = 2
"""The first transaction version (KIP-890 part 2) in which every end bumps the producer epoch."""


class Transaction(Struct, frozen=True, kw_only=True):
    producer_id: int
    epoch: int
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIME
    updated_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before its epochs were exhausted."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id after this transaction is complete."""
    client_version: int = 0
    previous_epoch: int = NO_EPOCH
    """The epoch from which the producer requested a bump. Not persisted, as in Kafka."""

    @property
    def has_no_epochs_left(self) -> bool:
        return self.epoch >= LAST_EPOCH

    @property
    def deadline_ms(self) -> int | None:
        return self.started_ms + self.timeout_ms if self.state is State.ONGOING else None

    @property
    def is_commit(self) -> bool:
        return self.state is State.PREPARE_COMMIT

    @property
    def client_producer_id(self) -> int:
        """The producer id and epoch to return to the producer after this end of its transaction."""
        return self.producer_id if self.next_producer_id == NO_PRODUCER_ID else self.next_producer_id

    @property
    def client_epoch(self) -> int:
        return self.epoch if self.next_producer_id == NO_PRODUCER_ID else 0

    def has_replaced(self, producer_id: int, epoch: int) -> bool:
        """Whether the current producer id and epoch replaced the given ones at the end of a transaction."""
        if self.client_version < EPOCH_PER_TRANSACTION:
            # Ended by a client that keeps its epoch, so it is not the holder of the previous epoch, but a later one.
            return False
        if producer_id == self.producer_id:
            return epoch == self.epoch - 1
        return producer_id == self.previous_producer_id and epoch == LAST_EPOCH and self.epoch == 0


def new(producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    return Transaction(producer_id=producer_id, epoch=0, timeout_ms=timeout_ms, updated_ms=now_ms)


def restarted(before: Transaction, epoch: int, previous_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
    """The state after the producer was initialized with this epoch."""
    return replace(
        before,
        epoch=epoch,
        previous_epoch=previous_epoch,
        timeout_ms=timeout_ms,
        state=State.EMPTY,
        partitions=frozenset(),
        started_ms=NO_TIME,
        updated_ms=now_ms,
    )


def renumbered(before: Transaction, producer_id: int, previous_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
    """The state after the producer was initialized with another id, because its epochs were exhausted."""
    moved = replace(before, producer_id=producer_id, previous_producer_id=before.producer_id)
    return restarted(moved, 0, previous_epoch, timeout_ms, now_ms)


def with_partitions(
    before: Transaction, added: Iterable[TopicPartition], client_version: int, now_ms: int
) -> Transaction:
    is_new = before.state.is_idle
    return replace(
        before,
        state=State.ONGOING,
        partitions=frozenset(added) if is_new else before.partitions.union(added),
        started_ms=now_ms if is_new else before.started_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def ending(
    before: Transaction, *, is_commit: bool, client_version: int, next_producer_id: int, now_ms: int
) -> Transaction:
    """The state with a decided outcome."""
    is_next_epoch = client_version >= EPOCH_PER_TRANSACTION
    return replace(
        before,
        state=State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT,
        epoch=before.epoch + 1 if is_next_epoch else before.epoch,
        previous_epoch=before.epoch if is_next_epoch else before.previous_epoch,
        next_producer_id=next_producer_id,
        # An empty transaction starts with its end.
        started_ms=now_ms if before.state.is_idle else before.started_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def fenced(before: Transaction, now_ms: int) -> Transaction:
    """The state of an abort that fences the producer."""
    return replace(
        before,
        state=State.PREPARE_ABORT,
        epoch=before.epoch + 1,
        previous_epoch=NO_EPOCH,
        updated_ms=now_ms,
    )


def completed(before: Transaction, now_ms: int) -> Transaction:
    """The state after all end markers are written."""
    is_renumbered = before.next_producer_id != NO_PRODUCER_ID
    return replace(
        before,
        state=State.COMPLETE_COMMIT if before.is_commit else State.COMPLETE_ABORT,
        producer_id=before.client_producer_id,
        epoch=before.client_epoch,
        previous_producer_id=before.producer_id if is_renumbered else before.previous_producer_id,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        updated_ms=now_ms,
    )
