"""One task's rows on their way into topics, under a producer id and epoch of the task's own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.errors import ProducerFenced
from ottla.core.ids import TopicPartition
from ottla.records.arrow import RowSource, key_partitions
from ottla.records.encode import BatchBuilder
from ottla.spark.deduplication import Lookout
from ottla.spark.errors import SinkError
from ottla.spark.leaders import produce

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.client.client import Client
    from ottla.spark.attempts import Attempt
    from ottla.spark.sink_options import SinkOptions

_LAST_SEQUENCE = 0x7FFFFFFF


class TaskSender:
    def __init__(self, client: Client, options: SinkOptions, attempt: Attempt) -> None:
        self._client = client
        self._options = options
        self._attempt = attempt
        self._lookout = Lookout(client, attempt, is_on=options.deduplicate)
        self._partition_counts: dict[str, int] = {}
        self._done_topics: set[str] = set()
        self._epochs: dict[str, int] = {}
        self._sequences: dict[TopicPartition, int] = {}
        self._turn = attempt.task
        self.placed: dict[TopicPartition, tuple[int, int]] = {}
        """The first offset written in each partition, and the one after the last."""
        self.row_count = 0

    @property
    def topics(self) -> list[str]:
        return sorted(self._partition_counts)

    @property
    def has_task_group(self) -> bool:
        return self._lookout.has_task_group

    async def send(self, rows: pa.RecordBatch) -> None:
        """Write these rows, but those that an earlier attempt wrote; returns when all are acknowledged."""
        self._turn += 1
        work = []
        for topic, part in self._by_topic(rows):
            await self._meet(topic)
            if topic in self._done_topics:
                continue
            left = self._not_yet_written(topic, part)
            for partition, share in split_rows(left, self._partitions(topic, left)):
                work.append(self._send_to(TopicPartition(topic, partition), share))
        await asyncio.gather(*work)

    def _by_topic(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if self._options.topic is not None:
            yield self._options.topic, rows
            return
        topics = rows.column(rows.schema.get_field_index("topic"))
        if topics.null_count:
            raise SinkError("a row's topic is null; the column topic must say where each row goes")
        for topic in pc.unique(topics).to_pylist():
            yield topic, rows.filter(pc.equal(topics, topic))

    async def _meet(self, topic: str) -> None:
        if topic in self._partition_counts:
            return
        view = await self._client.router.topic(topic, allow_auto_create=True)
        if await self._lookout.is_done(topic):
            self._done_topics.add(topic)
        # Settled for good: numbers in a partition go on under one epoch, whatever is found in other topics later.
        self._epochs[topic] = self._lookout.epoch()
        self._partition_counts[topic] = len(view.partitions)

    def _not_yet_written(self, topic: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        earlier = self._lookout.earlier
        return rows.filter(pa.array(earlier.take(topic, rows))) if earlier else rows

    def _partitions(self, topic: str, rows: pa.RecordBatch) -> pa.Array:
        """Where each row goes: as its column says, by its key, or all without one to one partition after the other."""
        count = self._partition_counts[topic]
        chosen = key_partitions(rows, count)
        chosen = pc.if_else(pc.less(chosen, 0), pa.scalar(self._turn % count, pa.int32()), chosen)
        if "partition" not in self._options.columns:
            return chosen
        given = rows.column(rows.schema.get_field_index("partition"))
        named = pc.min_max(given).as_py()
        if named["min"] is not None and not 0 <= named["min"] <= named["max"] < count:
            raise SinkError(f"a row names partition {named['max']} of {topic}, which has {count}")
        return pc.coalesce(given.cast(pa.int32()), chosen)

    async def _send_to(self, at: TopicPartition, rows: pa.RecordBatch) -> None:
        source = RowSource(rows)
        done = 0
        while done < rows.num_rows:
            builder = BatchBuilder(self._options.compression, self._options.max_batch_bytes)
            first, done = done, source.append_to(builder, done)
            if builder.size > builder.max_bytes:
                raise SinkError(
                    f"a row of {builder.size} bytes for {at}, and a batch may have {builder.max_bytes} "
                    "(raise kafka.max.request.size)"
                )
            await self._send_batch(at, builder, done - first)

    async def _send_batch(self, at: TopicPartition, builder: BatchBuilder, count: int) -> None:
        sequence = self._sequences.get(at, 0)
        batch = builder.build(
            producer_id=self._attempt.producer_id, producer_epoch=self._epochs[at.topic], base_sequence=sequence
        )
        try:
            offset = await produce(self._client.router, at, batch, self._options.delivery_timeout_s)
        except ProducerFenced as fenced:
            raise SinkError(
                f"{at}: a later attempt at micro-batch {self._attempt.batch_id} of query {self._attempt.query_id}, or "
                f"a later micro-batch, has written here; this one must not ({fenced})"
            ) from fenced
        self._sequences[at] = (sequence + count) & _LAST_SEQUENCE
        first, _ = self.placed.get(at, (offset, 0))
        self.placed[at] = first, offset + count
        self.row_count += count


def split_rows(rows: pa.RecordBatch, partitions: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each partition, in their order."""
    for partition in sorted(pc.unique(partitions).to_pylist()):
        is_here = pc.equal(partitions, partition)
        yield partition, rows.filter(is_here)
