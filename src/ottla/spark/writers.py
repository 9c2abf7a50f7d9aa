"""The sinks: rows into topics, in a batch or a micro-batch at a time."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.client.errors import ClientError
from ottla.spark.attempts import Attempt
from ottla.spark.deduplication import Mark, set_marks
from ottla.spark.errors import SinkError
from ottla.spark.link import link_to
from ottla.spark.sending import TaskSender

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from ottla.core.ids import TopicPartition
    from ottla.spark.sink_options import SinkOptions

_log: Final = logging.getLogger(__name__)
_BATCH_ID: Final = "streaming.sql.batchId"
_QUERY_ID: Final = "sql.streaming.queryId"
_RUN_ID: Final = "spark.jobGroup.id"


@dataclass
class Written(WriterCommitMessage):
    """What one task has done."""

    attempt: Attempt
    topics: list[str]
    placed: dict[TopicPartition, tuple[int, int]]
    row_count: int
    has_task_group: bool


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job_id = str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = _task()
        attempt = Attempt(self._job_id, self._job_id, 0, task.partitionId(), task.attemptNumber())
        return write_rows(iterator, self._options, attempt)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _forget_task_groups(_written(messages), self._options)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        written = _written(messages)
        _forget_task_groups(written, self._options)
        places = [f"{at} {first} to {end - 1}" for each in written for at, (first, end) in sorted(each.placed.items())]
        if places:
            _log.error("the write failed, and these offsets are written and stay: %s", ", ".join(places))


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = _task()
        batch_id, query_id, run_id = (task.getLocalProperty(name) for name in (_BATCH_ID, _QUERY_ID, _RUN_ID))
        if batch_id is None or query_id is None or run_id is None:
            raise SinkError("Spark does not say which micro-batch of which query this is; versions 4.2 and 4.3 do")
        attempt = Attempt(query_id, run_id, int(batch_id), task.partitionId(), task.attemptNumber())
        return write_rows(iterator, self._options, attempt)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        written = _written(messages)
        topics = sorted({topic for each in written for topic in each.topics})
        if not topics or not self._options.deduplicate:
            return
        attempt = written[0].attempt
        link = link_to(self._options.kafka)
        link.call(set_marks(link.client, attempt.query_group, topics, Mark(attempt.run_id, batchId)))
        _forget_task_groups(written, self._options)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Nothing: what is written is found when the micro-batch is repeated."""


def write_rows(iterator: Iterator[pa.RecordBatch], options: SinkOptions, attempt: Attempt) -> Written:
    link = link_to(options.kafka)
    if not options.deduplicate:
        # Nothing is to be found again, so the name may be any; but no two may share it.
        attempt = replace(attempt, query_id=str(uuid.uuid4()))
    sender = TaskSender(link.client, options, attempt)
    for rows in iterator:
        if rows.num_rows:
            link.call(sender.send(rows))
    return Written(attempt, sender.topics, sender.placed, sender.row_count, sender.has_task_group)


def _task() -> TaskContext:
    task = TaskContext.get()
    if task is None:
        raise SinkError("rows are written by tasks of Spark only")
    return task


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [message for message in messages if isinstance(message, Written)]


def _forget_task_groups(written: list[Written], options: SinkOptions) -> None:
    groups = sorted({each.attempt.task_group for each in written if each.has_task_group})
    if not groups:
        return
    link = link_to(options.kafka)
    try:
        link.call(link.client.admin.delete_groups(groups))
    except ClientError as failed:
        _log.warning("marks that are of no more use stay in %s: %s", ", ".join(groups), failed)
