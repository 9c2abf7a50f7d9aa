"""The transactions of a producer with a transactional id, one at a time.

After an error, the rest of the transaction is dropped, it can only be aborted, and the producer continues
in the next epoch. If the cluster's `transaction.version` is 2 (KIP-890), every transaction has its own epoch,
and a partition is added by writing to it. Otherwise, back to Kafka 0.11, a partition is added with a request to the
coordinator before the first write.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from ottla.client.errors import ClientError, ProducerFenced, TransactionFailed
from ottla.client.producer.batch import NOBODY, Identity
from ottla.client.producer.delivery import finished
from ottla.client.producer.transaction_requests import (
    FEATURE,
    NAMED_FIRST,
    CoordinatorRequest,
    add_offsets,
    add_partitions,
    ask,
    ask_over,
    commit_offsets,
    end,
    flow_of,
    init_producer_id,
)
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.group.interface import GroupProgress
    from ottla.client.producer.partition_queue import PartitionQueue
    from ottla.client.producer.sender import Sender
    from ottla.wire.declare import Response

ResponseT = TypeVar("ResponseT", bound="Response")


class Transactions:
    def __init__(self, sender: Sender, transactional_id: str, timeout_ms: int) -> None:
        self.id = transactional_id
        self.dropping: ClientError | None = None
        """Why the transaction can no longer send; unsent batches get this error."""
        self._sender = sender
        self._timeout_ms = timeout_ms
        self._identity = NOBODY
        self._flow = NAMED_FIRST
        self._is_open = False
        self._fatal: ClientError | None = None
        self._in_it: set[TopicPartition] = set()  # or possibly not yet in it, if added implicitly
        self._joining: dict[TopicPartition, PartitionQueue] = {}
        self._adding: asyncio.Task[None] | None = None
        self._has_groups = False

    async def start(self) -> None:
        """Get a producer id and epoch; fences the previous producer and aborts its open transaction."""
        response, connection = await ask_over(
            self._sender.router, init_producer_id(self.id, self._timeout_ms, self._identity)
        )
        self._flow = flow_of(connection.level_of(FEATURE))
        self._identity = Identity(response.producer_id, response.producer_epoch, is_transactional=True)

    async def close(self) -> None:
        if self._is_open and self._fatal is None:
            await self.abort()
        if self._adding is not None:
            self._adding.cancel()
            await asyncio.gather(self._adding, return_exceptions=True)

    # Called by the application

    @property
    def is_open(self) -> bool:
        return self._is_open

    def refuse_if_not_open(self) -> None:
        """Raise the reason why nothing can be sent now."""
        if self._fatal is not None:
            raise self._fatal
        if not self._is_open:
            raise ClientError("no open transaction; send in a `with producer.transaction():` block")
        if self.dropping is not None:
            raise TransactionFailed("the transaction has failed and can only be aborted") from self.dropping

    def begin(self) -> None:
        if self._fatal is not None:
            raise self._fatal
        if self._is_open:
            raise ClientError("a transaction is already open; end it before starting another")
        self._is_open = True
        self._has_groups = False
        self._in_it.clear()

    async def send_offsets(self, progress: GroupProgress) -> None:
        """Add the group's offsets to the transaction."""
        self.refuse_if_not_open()
        try:
            if not self._flow.joins_by_writing:
                await self._ask(add_offsets(self.id, self._identity, progress.group))
            self._has_groups = True
            await self._ask(commit_offsets(self.id, self._identity, progress, self._flow))
        except ClientError as failed:
            self.failed(failed)
            raise

    async def commit(self) -> None:
        """Commit; on an error the transaction must still be aborted."""
        self.refuse_if_not_open()
        await self._sent()
        self.refuse_if_not_open()
        await self._end(is_commit=True)

    async def abort(self) -> None:
        """Abort."""
        if not self._is_open:
            raise ClientError("no open transaction")
        self.dropping = self.dropping or TransactionFailed("the transaction is aborted")
        for queue in self._sender.queues():
            queue.drop_waiting(self.dropping)
        await self._sent()
        self._sender.failures.take()
        if self._fatal is not None:
            self._is_open = False
            raise self._fatal
        await self._end(is_commit=False)
        if not self._flow.joins_by_writing and any(queue.is_out_of_step for queue in self._sender.queues()):
            await self._next_epoch()
        self.dropping = None

    async def _next_epoch(self) -> None:
        try:
            await self.start()
        except ClientError as failed:
            self._fatal = failed
            raise

    async def _sent(self) -> None:
        unfinished = [batch for queue in self._sender.queues() for batch in queue.unfinished()]
        for batch in unfinished:
            batch.hurry()
        for batch in unfinished:
            await finished(batch)

    async def _end(self, *, is_commit: bool) -> None:
        self._is_open = False
        if not self._in_it and not self._has_groups:
            return
        try:
            response = await self._ask(end(self.id, self._identity, self._flow, is_commit=is_commit))
        except ClientError as failed:
            # The outcome is unknown; the next producer with this id finds it decided.
            self._fatal = failed
            raise
        if self._flow.joins_by_writing:
            self._identity = Identity(response.producer_id, response.producer_epoch, is_transactional=True)

    # Called by the sender

    @property
    def last_produce_version(self) -> int:
        return self._flow.produce

    def may_send(self, queue: PartitionQueue) -> bool:
        """Whether the partition is part of the transaction; if not, adds it first."""
        if self.dropping is not None:
            return False
        at = TopicPartition(queue.topic, queue.partition)
        if self._flow.joins_by_writing:
            self._in_it.add(at)
        if at in self._in_it:
            if queue.identity != self._identity:
                queue.identify(self._identity)
            return True
        self._joining[at] = queue
        if self._adding is None:
            self._adding = asyncio.create_task(self._add())
        return False

    async def _add(self) -> None:
        try:
            while self._joining:
                joining, self._joining = self._joining, {}
                await self._ask(add_partitions(self.id, self._identity, joining))
                self._in_it.update(joining)
                for queue in joining.values():
                    self._sender.look_soon(queue)
        except ClientError as failed:
            self.failed(failed)
        finally:
            self._adding = None

    def failed(self, error: ClientError) -> None:
        """An error in the transaction: it must be aborted."""
        if isinstance(error, ProducerFenced) and not self._may_have_timed_out(error):
            self._fatal = error
        if self.dropping is None:
            self.dropping = error
            self._joining.clear()
            for queue in self._sender.queues():
                self._sender.look_soon(queue)

    def _may_have_timed_out(self, refused: ProducerFenced) -> bool:
        """Whether the coordinator may have aborted on timeout rather than fenced this producer: the abort then returns
        the next epoch.
        """
        return self._flow.joins_by_writing and refused.code is ErrorCode.INVALID_PRODUCER_EPOCH

    async def _ask(self, question: CoordinatorRequest[ResponseT]) -> ResponseT:
        return await ask(self._sender.router, question)
