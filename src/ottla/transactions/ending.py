"""Whether a producer may end its transaction.

Up to EndTxn version 4 a producer keeps its epoch, so a retry is recognised by the state. From version 5
on (KIP-890) by its epoch: the first request has bumped the epoch by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import ErrorCode
from ottla.transactions.states import State
from ottla.transactions.transaction import EPOCH_PER_TRANSACTION

if TYPE_CHECKING:
    from ottla.transactions.transaction import Transaction


def decide_end(
    known: Transaction, producer_id: int, epoch: int, *, is_commit: bool, client_version: int
) -> ErrorCode | None:
    """The immediate response; None if the transaction ends now, NONE if it has already ended in the same way."""
    if client_version >= EPOCH_PER_TRANSACTION:
        return _decide_with_epochs(known, producer_id, epoch, is_commit=is_commit)
    if known.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.epoch != epoch:
        return ErrorCode.PRODUCER_FENCED
    if known.state is State.ONGOING:
        return None
    return _repeated_end(known.state, is_commit=is_commit)


def _decide_with_epochs(known: Transaction, producer_id: int, epoch: int, *, is_commit: bool) -> ErrorCode | None:
    is_current = (producer_id, epoch) == (known.producer_id, known.epoch)
    is_again = known.has_replaced(producer_id, epoch)
    if producer_id != known.producer_id and not is_again:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if is_again and known.state not in (State.ONGOING, State.EMPTY):
        return _repeated_end(known.state, is_commit=is_commit)
    if not is_current or known.state.is_ending:
        return ErrorCode.PRODUCER_FENCED
    if known.state is State.ONGOING:
        return None
    # There is nothing to commit; but an abort bumps the epoch, to fence requests that never arrived.
    return ErrorCode.INVALID_TXN_STATE if is_commit else None


def _repeated_end(state: State, *, is_commit: bool) -> ErrorCode:
    wanted = (State.PREPARE_COMMIT, State.COMPLETE_COMMIT) if is_commit else (State.PREPARE_ABORT, State.COMPLETE_ABORT)
    if state not in wanted:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.CONCURRENT_TRANSACTIONS if state.is_ending else ErrorCode.NONE
