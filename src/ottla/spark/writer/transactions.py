"""A task's rows in a transaction that the task leaves open, and the driver ends.

A transaction is identified by its transactional id, producer id and epoch: any process with these can end it. A task
that is retried, or repeated after a crash, initializes its transactional id, which aborts an open transaction.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.client.errors import AuthorizationFailed, BrokerError, UnsupportedByBroker
from ottla.client.producer.batch import NOBODY, Identity
from ottla.client.producer.transaction_requests import NAMED_FIRST, add_partitions, ask, end, init_producer_id
from ottla.client.retries import RetryBudget
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.records.batch import read_header
from ottla.records.control import read_end_marker
from ottla.spark.errors import SinkError
from ottla.spark.reader.leaders import fetch
from ottla.spark.writer.attempts import transactional_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import pyarrow as pa

    from ottla.client.admin.transactions import TransactionListing
    from ottla.client.router import Router
    from ottla.spark.writer.attempts import Attempt

_OVER: Final = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)
_UNLIMITED: Final = (1 << 63) - 1


class Prepared(msgspec.Struct, frozen=True, array_like=True):
    """An open transaction with all rows of a task, and the offset of its first record."""

    task: int
    attempt: int
    producer_id: int
    epoch: int
    topic: str
    partition: int
    offset: int

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def identity(self) -> Identity:
        return Identity(self.producer_id, self.epoch, is_transactional=True)


class TaskTransaction:
    """The transaction of a task; a `Signature` of ottla.spark.writer.sending."""

    def __init__(self, router: Router, attempt: Attempt, timeout_ms: int) -> None:
        self.transactional_id: str | None = attempt.transactional_id
        self._id = attempt.transactional_id
        self._router = router
        self._attempt = attempt
        self._timeout_ms = timeout_ms
        self._identity = NOBODY
        self._joined: set[TopicPartition] = set()

    async def begin(self) -> bool:
        """Whether the broker supports transactions."""
        try:
            self._identity = await _new_identity(self._router, self._id, self._timeout_ms)
        except UnsupportedByBroker:
            return False
        except AuthorizationFailed as refused:
            raise SinkError(
                f"{refused}: give this user access to transactional ids that begin with ottla-sink-, "
                "or set transactional to false"
            ) from refused
        except BrokerError as refused:
            if refused.code is ErrorCode.UNSUPPORTED_VERSION:
                return False
            if refused.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                limit = "the broker's transaction.max.timeout.ms is lower"
                raise SinkError(f"kafka.transaction.timeout.ms is {self._timeout_ms}, but {limit}") from refused
            raise
        return True

    async def meet(self, topic: str) -> None:
        """Does nothing: records of an unfinished transaction are invisible to readers of committed records."""

    def not_yet_written(self, topic: str, rows: pa.RecordBatch) -> pa.RecordBatch:  # noqa: ARG002 - it makes no difference
        return rows

    def identity_in(self, topic: str) -> Identity:  # noqa: ARG002 - it makes no difference
        return self._identity

    async def join(self, partitions: Collection[TopicPartition]) -> None:
        """Adds the partition to the transaction before its first batch."""
        new = set(partitions) - self._joined
        if new:
            await ask(self._router, add_partitions(self._id, self._identity, sorted(new)))
            self._joined |= new

    def prepared(self, placed: Mapping[TopicPartition, tuple[int, int]]) -> Prepared:
        at = min(placed)
        number, identity = self._attempt.number, self._identity
        return Prepared(
            self._attempt.task, number, identity.producer_id, identity.epoch, at.topic, at.partition, placed[at][0]
        )

    async def abort(self) -> None:
        if self._joined:
            await ask(self._router, end(self._id, self._identity, NAMED_FIRST, is_commit=False))


class TransactionEnds:
    """Commits and aborts the transactions of tasks, in the driver."""

    def __init__(self, router: Router, query_id: str) -> None:
        self._router = router
        self._query_id = query_id

    def _id(self, prepared: Prepared) -> str:
        return transactional_id(self._query_id, prepared.task, prepared.attempt)

    async def check_is_open(self, prepared: Prepared) -> None:
        """Check that it is still open: otherwise the others would be committed without it."""
        try:
            # The partition is already in the transaction, so nothing changes.
            await ask(self._router, add_partitions(self._id(prepared), prepared.identity, [prepared.at]))
        except BrokerError as refused:
            if refused.code not in _OVER:
                raise
            raise SinkError(
                f"the transaction of task {prepared.task} was aborted before all tasks were done: it was open for "
                f"longer than kafka.transaction.timeout.ms, or the task was restarted ({refused})"
            ) from refused

    async def commit(self, prepared: Prepared) -> bool:
        """Commit; idempotent. False if it was aborted before."""
        try:
            await ask(self._router, end(self._id(prepared), prepared.identity, NAMED_FIRST, is_commit=True))
        except BrokerError as refused:
            if refused.code not in _OVER:
                raise
            return await self._was_committed(prepared)
        return True

    async def abort(self, prepared: Prepared) -> None:
        """Abort, unless it has already ended."""
        try:
            await ask(self._router, end(self._id(prepared), prepared.identity, NAMED_FIRST, is_commit=False))
        except BrokerError as refused:
            if refused.code not in _OVER:
                raise

    async def fence_earlier_attempts(self, prepared: Prepared, timeout_ms: int) -> None:
        """Abort open transactions, which block readers of committed records."""
        for attempt in range(prepared.attempt):
            await _new_identity(self._router, transactional_id(self._query_id, prepared.task, attempt), timeout_ms)

    async def abort_left_open(self, listed: Iterable[TransactionListing], timeout_ms: int) -> None:
        prefix = transactional_id(self._query_id, 0, 0).removesuffix("0")
        own = re.compile(re.escape(prefix) + r"\d+(-\d+)?")
        for each in listed:
            if own.fullmatch(each.transactional_id):
                await _new_identity(self._router, each.transactional_id, timeout_ms)

    async def _was_committed(self, prepared: Prepared) -> bool:
        """Find the result in the log when the coordinator has forgotten it: the producer's next marker."""
        retries = RetryBudget(self._router)
        while True:
            async for batches in fetch(self._router, prepared.at, prepared.offset, _UNLIMITED):
                is_commit = _next_marker(batches, prepared.producer_id)
                if is_commit is not None:
                    return is_commit
            if await retries.is_over():
                raise SinkError(
                    f"{prepared.at}: nothing after offset {prepared.offset} says whether the transaction of "
                    f"task {prepared.task} in query {self._query_id} was committed"
                )


async def _new_identity(router: Router, an_id: str, timeout_ms: int) -> Identity:
    answer = await ask(router, init_producer_id(an_id, timeout_ms, NOBODY))
    return Identity(answer.producer_id, answer.producer_epoch, is_transactional=True)


def _next_marker(batches: memoryview, producer_id: int) -> bool | None:
    at = 0
    while at < len(batches):
        header = read_header(batches, at)
        if header.is_control and header.producer_id == producer_id:
            marker = read_end_marker(batches[at : at + header.size])
            if marker is not None:
                return marker.is_commit
        at += header.size
    return None
