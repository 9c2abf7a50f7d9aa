"""Batch and streaming writers of topics."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.client.errors import ClientError
from ottla.spark.errors import SinkError
from ottla.spark.link import link_to
from ottla.spark.writer.attempts import Attempt
from ottla.spark.writer.committing import Commit
from ottla.spark.writer.deduplication import BatchMark, TaskDeduplication, set_marks
from ottla.spark.writer.sending import TaskSender
from ottla.spark.writer.transactions import TaskTransaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from ottla.client.blocking.background import Background
    from ottla.core.ids import TopicPartition
    from ottla.spark.writer.options import SinkOptions
    from ottla.spark.writer.transactions import Prepared

_log: Final = logging.getLogger(__name__)
_BATCH_ID: Final = "streaming.sql.batchId"
_QUERY_ID: Final = "sql.streaming.queryId"
_RUN_ID: Final = "spark.jobGroup.id"
_WRITES: Final = uuid.UUID("6f74746c-6177-4372-a974-655f69640001")


@dataclass
class Written(WriterCommitMessage):
    """The result of one task."""

    attempt: Attempt
    prepared: Prepared | None = None
    """Its open transaction."""
    was_there: bool | None = None
    """Whether an earlier attempt committed its rows; None if nothing of the micro-batch is committed."""
    topics: list[str] = field(default_factory=list)
    """The offsets written without a transaction."""
    placed: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    has_task_group: bool = False


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job_id = str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = _task()
        attempt = Attempt(self._job_id, self._job_id, 0, task.partitionId(), task.attemptNumber())
        return TaskWrite(self._options, attempt, may_be_decided=False).write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        written = _written(messages)
        link = link_to(self._options.kafka)
        link.call(self._commit(link).commit_all(_prepared(written)))
        _forget_task_groups(written, self._options)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        written = _written(messages)
        link = link_to(self._options.kafka)
        link.call(self._commit(link).abort_all(_prepared(written)))
        _forget_task_groups(written, self._options)
        places = [f"{at} {first} to {end - 1}" for each in written for at, (first, end) in sorted(each.placed.items())]
        if places:
            _log.error("the write failed; these offsets are written and not rolled back: %s", ", ".join(places))

    def _commit(self, link: Background) -> Commit:
        return Commit(link.client, self._job_id, self._options.transaction_timeout_ms)


class NamedBatchWriter(DataSourceArrowWriter):
    """A batch write with a writeId: committed like the only micro-batch of a query with that id."""

    def __init__(self, options: SinkOptions, write_id: str) -> None:
        self._options = options
        # Hashed, so that no id is a prefix of another. The same id in another topic is another write.
        self._query_id = str(uuid.uuid5(_WRITES, f"{options.topic or ''}/{write_id}"))
        self._run_id = str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = _task()
        attempt = Attempt(self._query_id, self._run_id, 0, task.partitionId(), task.attemptNumber())
        return TaskWrite(self._options, attempt, may_be_decided=True).write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        commit_named_write(self._options, self._query_id, _written(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        link = link_to(self._options.kafka)
        commit = Commit(link.client, self._query_id, self._options.transaction_timeout_ms)
        link.call(commit.abort_micro_batch(0, _prepared(_written(messages))))


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = _task()
        batch_id, query_id, run_id = (task.getLocalProperty(name) for name in (_BATCH_ID, _QUERY_ID, _RUN_ID))
        if batch_id is None or query_id is None or run_id is None:
            raise SinkError("Spark does not say which micro-batch of which query this is; versions 4.2 and 4.3 do")
        attempt = Attempt(query_id, run_id, int(batch_id), task.partitionId(), task.attemptNumber())
        return TaskWrite(self._options, attempt, may_be_decided=True).write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        commit_micro_batch(self._options, _written(messages), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Records written without transactions are found when the micro-batch is repeated."""
        written = _written(messages)
        if prepared := _prepared(written):
            link = link_to(self._options.kafka)
            commit = Commit(link.client, written[0].attempt.query_id, self._options.transaction_timeout_ms)
            link.call(commit.abort_micro_batch(batchId, prepared))


class TaskWrite:
    """One attempt at one task: in a transaction or, without transactions, idempotent."""

    def __init__(self, options: SinkOptions, attempt: Attempt, *, may_be_decided: bool) -> None:
        self._options = options
        self._attempt = attempt
        self._may_be_decided = may_be_decided
        self._link = link_to(options.kafka)
        self._was_there: bool | None = None
        self._transaction: TaskTransaction | None = None
        self._deduplication: TaskDeduplication | None = None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        sender: TaskSender | None = None
        try:
            for rows in iterator:
                # Existing rows are consumed as well: the upstream must be read to its end.
                if rows.num_rows and not self._was_there:
                    sender = sender or self._link.call(self._begin())
                    if sender is not None:
                        encode = self._options.encode
                        self._link.call(sender.send(rows if encode is None else encode(rows)))
        except BaseException:
            self._give_up()
            raise
        return self._written(sender)

    async def _begin(self) -> TaskSender | None:
        """None if there is nothing to write because an earlier attempt committed it."""
        client, attempt, options = self._link.client, self._attempt, self._options
        if options.transactional:
            transaction = TaskTransaction(client.router, attempt, options.transaction_timeout_ms)
            if self._may_be_decided:
                # Before the transaction begins, which would abort the one that is to be committed.
                commit = Commit(client, attempt.query_id, options.transaction_timeout_ms)
                self._was_there = await commit.is_written(attempt.batch_id, attempt.task)
                if self._was_there:
                    return None
            if await transaction.begin():
                self._transaction = transaction
                return TaskSender(client, options, attempt, transaction)
        if options.write_id is not None:
            raise SinkError("writeId needs a broker with transactions; this broker does not support them")
        if not options.deduplicate:
            # Never looked up again, so any unique name will do.
            attempt = replace(attempt, query_id=str(uuid.uuid4()))
        self._deduplication = TaskDeduplication(client, attempt, is_on=options.deduplicate)
        return TaskSender(client, options, attempt, self._deduplication)

    def _give_up(self) -> None:
        if self._transaction is None:
            return
        try:
            self._link.call(self._transaction.abort())
        except ClientError as failed:
            _log.warning("could not abort a transaction; it will time out: %s", failed)

    def _written(self, sender: TaskSender | None) -> Written:
        if sender is None:
            return Written(self._attempt, was_there=self._was_there)
        if self._transaction is not None:
            return Written(self._attempt, self._transaction.prepared(sender.placed), self._was_there)
        has_task_group = self._deduplication is not None and self._deduplication.has_task_group
        return Written(self._attempt, topics=sender.topics, placed=sender.placed, has_task_group=has_task_group)


def commit_micro_batch(options: SinkOptions, written: Sequence[Written], batch_id: int) -> None:
    if not written:
        return
    attempt = written[0].attempt
    link = link_to(options.kafka)
    topics = sorted({topic for each in written for topic in each.topics})
    if topics and options.deduplicate:
        link.call(set_marks(link.client, attempt.query_group, topics, BatchMark(attempt.run_id, batch_id)))
        _forget_task_groups(written, options)
    if topics or not options.transactional:
        return
    commit = Commit(link.client, attempt.query_id, options.transaction_timeout_ms)
    prepared = _prepared(written)
    if prepared and all(each.was_there is None for each in written):
        link.call(commit.commit_new(batch_id, prepared, len(written)))
    else:
        settled = {each.attempt.task for each in written if each.was_there}
        link.call(commit.commit_repeated(batch_id, prepared, len(written), settled))


def commit_named_write(options: SinkOptions, query_id: str, written: Sequence[Written]) -> None:
    """Also abort transactions that an earlier call left open in tasks that this call does not have."""
    link = link_to(options.kafka)
    if any(each.was_there is not None for each in written):
        _log.warning("the write %s was committed by an earlier call; its rows are not written again", options.write_id)
    commit_micro_batch(options, written, 0)
    link.call(Commit(link.client, query_id, options.transaction_timeout_ms).roll_back_rest())


def _task() -> TaskContext:
    task = TaskContext.get()
    if task is None:
        raise SinkError("rows can be written only by tasks of Spark")
    return task


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [message for message in messages if isinstance(message, Written)]


def _prepared(written: Sequence[Written]) -> list[Prepared]:
    return [each.prepared for each in written if each.prepared is not None]


def _forget_task_groups(written: Sequence[Written], options: SinkOptions) -> None:
    groups = sorted({each.attempt.task_group for each in written if each.has_task_group})
    if not groups:
        return
    link = link_to(options.kafka)
    try:
        link.call(link.client.admin.delete_groups(groups))
    except ClientError as failed:
        _log.warning("could not remove old marks from group %s: %s", ", ".join(groups), failed)
