"""The transaction rules as used by a broker:

- On start, `replay` every record of `__transaction_state`, then complete the transactions in `unfinished`.
- For a decision with a change: append `records.encode(…)` of it and call `apply(change)` in one step, before any
other call; wait until the record is durable; only then answer. If the append fails, nothing has changed.
- If the change `is_ending`, append the end marker to every partition of the transaction, wait until those are
durable, and do the same with the change that `completed` returns.
- One timer: at `next_deadline_ms()` carry out every change of `expire`. A slower timer: those of `forget`.

The last record is the state of a transaction, so it can be continued after a crash between any two steps: once
its outcome is written, it ends with that outcome; before, it times out and is aborted.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ErrorCode
from ottla.core.memory_budget import MemoryBudget
from ottla.transactions import transaction as becomes
from ottla.transactions.decisions import Change, Decision, refused
from ottla.transactions.ending import decide_end
from ottla.transactions.records import decode_key, decode_value
from ottla.transactions.sizes import partition_bytes, transaction_bytes
from ottla.transactions.states import State
from ottla.transactions.transaction import NO_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ottla.core.ids import TopicPartition
    from ottla.transactions.config import TransactionConfig
    from ottla.transactions.transaction import Transaction


_SPARE_WAKE_UPS: Final = 1000


class Coordinator:
    def __init__(self, config: TransactionConfig, new_producer_id: Callable[[], int]) -> None:
        self.config = config
        self._new_producer_id = new_producer_id
        self._transactions: dict[str, Transaction] = {}
        self.memory = MemoryBudget(config.max_memory_bytes)
        # Deadlines of transactions, possibly stale; see `_holds`.
        self._wake_ups: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[tuple[str, Transaction]]:
        return iter(self._transactions.items())

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    # ── The log ──────────────────────────────────────────────────────────────────────────────────────────────

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply a record of the log. Raises ProtocolError if it is malformed, without changing anything."""
        transactional_id = decode_key(key)
        if transactional_id is not None:
            self.apply(Change(transactional_id, None if value is None else decode_value(value)))

    def apply(self, change: Change) -> None:
        """Apply a change that has just been appended."""
        transactional_id, after = change.transactional_id, change.transaction
        before = self._transactions.pop(transactional_id, None)
        self._count(transactional_id, before, after)
        if after is None:
            return
        self._transactions[transactional_id] = after
        deadline_ms = after.deadline_ms
        if deadline_ms is not None and (before is None or before.deadline_ms != deadline_ms):
            heappush(self._wake_ups, (deadline_ms, transactional_id))
            self._drop_stale_wake_ups()

    def _count(self, transactional_id: str, before: Transaction | None, after: Transaction | None) -> None:
        for known, sign in ((before, -1), (after, 1)):
            if known is not None:
                self.memory.held_bytes += sign * transaction_bytes(transactional_id, known)

    def _drop_stale_wake_ups(self) -> None:
        """Drop stale deadlines: short transactions with long timeouts would leave many behind."""
        if len(self._wake_ups) > 2 * len(self._transactions) + _SPARE_WAKE_UPS:
            self._wake_ups = [each for each in self._wake_ups if self._holds(*each)]
            heapify(self._wake_ups)

    def unfinished(self) -> list[str]:
        """Transactions whose outcome is written, but not all of their end markers."""
        return [each for each, transaction in self._transactions.items() if transaction.state.is_ending]

    def completed(self, transactional_id: str, now_ms: int) -> Change:
        """The change after all end markers are written."""
        return Change(transactional_id, becomes.completed(self._transactions[transactional_id], now_ms))

    def drop(self, which: Callable[[str], bool]) -> list[str]:
        """Unload the ids that another broker coordinates from now on; returns them."""
        dropped = [each for each in self._transactions if which(each)]
        for transactional_id in dropped:
            self._count(transactional_id, self._transactions.pop(transactional_id), None)
        return dropped

    def clear(self) -> None:
        self._transactions.clear()
        self._wake_ups.clear()
        self.memory.held_bytes = 0

    # ── Producers ────────────────────────────────────────────────────────────────────────────────────────────

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None, now_ms: int
    ) -> Decision:
        """Assign a producer id and epoch; the previous producer is fenced.

        `expected` is the current id and epoch of a producer that continues after an error. An open transaction is
        aborted: then the error is retriable.
        """
        if not transactional_id:
            return refused(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self.config.max_timeout_ms:
            return refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        known = self._transactions.get(transactional_id)
        if known is None:
            if len(transactional_id) > self.config.max_id_length:
                return self._too_large(ErrorCode.INVALID_REQUEST)
            if not self.memory.has_room(transaction_bytes(transactional_id, None)):
                return self._too_large(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return _told(transactional_id, becomes.new(self._new_producer_id(), timeout_ms, now_ms))
        if expected is not None and not _may_be(known, *expected):
            return refused(ErrorCode.PRODUCER_FENCED)
        if known.state.is_ending:
            return refused(ErrorCode.CONCURRENT_TRANSACTIONS)
        if known.state is State.ONGOING:
            return Decision(
                ErrorCode.CONCURRENT_TRANSACTIONS, change=Change(transactional_id, becomes.fenced(known, now_ms))
            )
        return self._next_epoch(transactional_id, known, timeout_ms, None if expected is None else expected[1], now_ms)

    def _next_epoch(
        self, transactional_id: str, known: Transaction, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> Decision:
        previous_epoch = NO_EPOCH if expected_epoch is None else known.epoch
        if known.has_no_epochs_left and expected_epoch in (None, known.epoch):
            producer_id = self._new_producer_id()
            return _told(transactional_id, becomes.renumbered(known, producer_id, previous_epoch, timeout_ms, now_ms))
        if expected_epoch in (None, known.epoch):
            return _told(
                transactional_id, becomes.restarted(known, known.epoch + 1, previous_epoch, timeout_ms, now_ms)
            )
        if expected_epoch == known.previous_epoch:
            # The epoch was already bumped, but the producer missed the response.
            return _told(
                transactional_id, becomes.restarted(known, known.epoch, known.previous_epoch, timeout_ms, now_ms)
            )
        return refused(ErrorCode.PRODUCER_FENCED)

    # ── Partitions ───────────────────────────────────────────────────────────────────────────────────────────

    def add_partitions(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: Collection[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> Decision:
        """Add these partitions to the transaction; the first ones start it."""
        error = self._refusal(transactional_id, *producer)
        if error is not ErrorCode.NONE:
            return refused(error)
        known = self._transactions[transactional_id]
        if known.state is State.ONGOING and known.partitions.issuperset(partitions):
            return Decision()
        growth = sum(partition_bytes(each) for each in partitions if each not in known.partitions)
        if not self.memory.has_room(growth):
            return self._too_large(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        change = becomes.with_partitions(known, partitions, client_version, now_ms)
        return Decision(change=Change(transactional_id, change))

    def _too_large(self, error: ErrorCode) -> Decision:
        """The error for an exhausted memory budget. Clients retry COORDINATOR_NOT_AVAILABLE; memory is freed when
        transactions end and ids expire.
        """
        self.memory.refused += 1
        return refused(error)

    def verify(self, transactional_id: str, producer_id: int, epoch: int, at: TopicPartition) -> ErrorCode:
        """Whether this partition is part of the producer's open transaction."""
        error = self._refusal(transactional_id, producer_id, epoch)
        if error is not ErrorCode.NONE:
            return error
        known = self._transactions[transactional_id]
        is_in = known.state is State.ONGOING and at in known.partitions
        return ErrorCode.NONE if is_in else ErrorCode.TRANSACTION_ABORTABLE

    def _refusal(self, transactional_id: str, producer_id: int, epoch: int) -> ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        known = self._transactions.get(transactional_id)
        if known is None or known.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if known.epoch != epoch:
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.CONCURRENT_TRANSACTIONS if known.state.is_ending else ErrorCode.NONE

    # ── The end ──────────────────────────────────────────────────────────────────────────────────────────────

    def end(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        now_ms: int,
        *,
        is_commit: bool,
        client_version: int,
    ) -> Decision:
        """Commit or abort the producer's open transaction."""
        if not transactional_id:
            return refused(ErrorCode.INVALID_REQUEST)
        known = self._transactions.get(transactional_id)
        if known is None:
            return refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        decided = decide_end(known, *producer, is_commit=is_commit, client_version=client_version)
        if decided is not None:
            if decided is not ErrorCode.NONE:
                return refused(decided)
            return Decision(producer_id=known.client_producer_id, epoch=known.client_epoch)
        is_renumbered = client_version >= becomes.EPOCH_PER_TRANSACTION and known.has_no_epochs_left
        change = becomes.ending(
            known,
            is_commit=is_commit,
            client_version=client_version,
            next_producer_id=self._new_producer_id() if is_renumbered else NO_PRODUCER_ID,
            now_ms=now_ms,
        )
        return _told(transactional_id, change)

    # ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────

    def next_deadline_ms(self) -> int | None:
        """When to call `expire`. May be too early, never too late."""
        while self._wake_ups and not self._holds(*self._wake_ups[0]):
            heappop(self._wake_ups)
        return self._wake_ups[0][0] if self._wake_ups else None

    def expire(self, now_ms: int) -> list[Change]:
        """Abort the transactions that have timed out, and fence their producers."""
        late = set()
        while self._wake_ups and self._wake_ups[0][0] <= now_ms:
            at_ms, transactional_id = heappop(self._wake_ups)
            if self._holds(at_ms, transactional_id):
                late.add(transactional_id)
        return [Change(each, becomes.fenced(self._transactions[each], now_ms)) for each in sorted(late)]

    def expire_now(self, transactional_id: str, now_ms: int) -> list[Change]:
        """Abort this producer's open transaction like `expire`, regardless of its timeout."""
        known = self._transactions.get(transactional_id)
        if known is None or known.state is not State.ONGOING:
            return []
        return [Change(transactional_id, becomes.fenced(known, now_ms))]

    def try_again(self, transactional_id: str, now_ms: int) -> None:
        """Schedule a change of `expire` again that could not be written."""
        heappush(self._wake_ups, (now_ms, transactional_id))

    def _holds(self, at_ms: int, transactional_id: str) -> bool:
        known = self._transactions.get(transactional_id)
        return known is not None and known.deadline_ms is not None and known.deadline_ms <= at_ms

    def forget(self, now_ms: int) -> list[Change]:
        """The changes that delete expired ids."""
        return [
            Change(transactional_id, None)
            for transactional_id, known in self._transactions.items()
            if known.state.is_idle and now_ms - known.updated_ms >= self.config.id_expiration_ms
        ]


def _told(transactional_id: str, becoming: Transaction) -> Decision:
    change = Change(transactional_id, becoming)
    return Decision(producer_id=becoming.client_producer_id, epoch=becoming.client_epoch, change=change)


def _may_be(known: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether this may be the current producer; the epoch is checked later.

    A producer that missed its new id may still use the one it had before its epochs were exhausted.
    """
    return producer_id == known.producer_id or (
        producer_id == known.previous_producer_id and epoch >= becomes.LAST_EPOCH
    )
