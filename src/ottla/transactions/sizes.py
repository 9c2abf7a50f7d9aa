"""Estimates of the memory of transactional ids. The constants are the sizes of CPython's objects, rounded up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.core.ids import TopicPartition
    from ottla.transactions.transaction import Transaction

_ID_BYTES: Final = 800
_PARTITION_BYTES: Final = 250


def transaction_bytes(transactional_id: str, transaction: Transaction | None) -> int:
    """The memory of an id and its transaction; None for a new id."""
    size = _ID_BYTES + len(transactional_id)
    if transaction is not None and transaction.partitions:
        size += sum(map(partition_bytes, transaction.partitions))
    return size


def partition_bytes(at: TopicPartition) -> int:
    return _PARTITION_BYTES + len(at.topic)
