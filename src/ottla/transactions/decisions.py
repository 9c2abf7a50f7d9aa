"""Decisions of the rules. The caller writes the change, if there is one, and only then answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ottla.core.errors import ErrorCode
from ottla.transactions.transaction import NO_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from ottla.transactions.transaction import Transaction


class Change(Struct, frozen=True):
    """A record for `__transaction_state`; without a transaction, the tombstone of its id."""

    transactional_id: str
    transaction: Transaction | None

    @property
    def is_ending(self) -> bool:
        """Whether every partition needs an end marker once the change is written."""
        return self.transaction is not None and self.transaction.state.is_ending


class Decision(Struct, frozen=True):
    error: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH
    change: Change | None = None


def refused(error: ErrorCode) -> Decision:
    return Decision(error)
