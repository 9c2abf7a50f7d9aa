"""Sends one task's rows to topics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.errors import ProducerFenced
from ottla.core.ids import TopicPartition
from ottla.records.arrow import RowSource, key_partitions
from ottla.records.encode import BatchBuilder
from ottla.spark.errors import SinkError
from ottla.spark.reader.leaders import produce

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ottla.client.client import Client
    from ottla.client.producer.batch import Identity
    from ottla.spark.writer.attempts import Attempt
    from ottla.spark.writer.options import SinkOptions

_LAST_SEQUENCE = 0x7FFFFFFF


class Signature(Protocol):
    """The producer identity of a task, and its rows that were already written."""

    transactional_id: str | None

    async def meet(self, topic: str) -> None:
        """Called before the first row for a topic is written."""

    def not_yet_written(self, topic: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Called once for each row."""

    async def join(self, partitions: Collection[TopicPartition]) -> None:
        """Called before anything is written to these."""

    def identity_in(self, topic: str) -> Identity: ...


class TaskSender:
    def __init__(self, client: Client, options: SinkOptions, attempt: Attempt, signature: Signature) -> None:
        self._client = client
        self._options = options
        self._attempt = attempt
        self._signature = signature
        self._partition_counts: dict[str, int] = {}
        self._sequences: dict[TopicPartition, int] = {}
        self._turn = attempt.task
        self.placed: dict[TopicPartition, tuple[int, int]] = {}
        """The first offset written in each partition, and the one after the last."""

    @property
    def topics(self) -> list[str]:
        return sorted(self._partition_counts)

    async def send(self, rows: pa.RecordBatch) -> None:
        """Write these rows, except those that an earlier attempt wrote; returns when all are acknowledged."""
        self._turn += 1
        work: dict[TopicPartition, pa.RecordBatch] = {}
        for topic, part in self._by_topic(rows):
            await self._meet(topic)
            left = self._signature.not_yet_written(topic, part)
            for partition, share in split_rows(left, self._partitions(topic, left)):
                work[TopicPartition(topic, partition)] = share
        await self._signature.join(work)
        await asyncio.gather(*(self._send_to(at, share) for at, share in work.items()))

    def _by_topic(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if self._options.topic is not None:
            yield self._options.topic, rows
            return
        topics = rows.column(rows.schema.get_field_index("topic"))
        if topics.null_count:
            raise SinkError("the column topic is null in a row, and the option topic is not set")
        for topic in pc.unique(topics).to_pylist():
            yield topic, rows.filter(pc.equal(topics, topic))

    async def _meet(self, topic: str) -> None:
        if topic in self._partition_counts:
            return
        view = await self._client.router.topic(topic, allow_auto_create=True)
        await self._signature.meet(topic)
        self._partition_counts[topic] = len(view.partitions)

    def _partitions(self, topic: str, rows: pa.RecordBatch) -> pa.Array:
        """The partition of each row: by its column, by its key, or round robin for rows without a key."""
        count = self._partition_counts[topic]
        chosen = key_partitions(rows, count)
        chosen = pc.if_else(pc.less(chosen, 0), pa.scalar(self._turn % count, pa.int32()), chosen)
        if "partition" not in self._options.columns:
            return chosen
        given = rows.column(rows.schema.get_field_index("partition"))
        named = pc.min_max(given).as_py()
        if named["min"] is not None and not 0 <= named["min"] <= named["max"] < count:
            raise SinkError(f"no partition {named['max']} in topic {topic} (it has {count})")
        return pc.coalesce(given.cast(pa.int32()), chosen)

    async def _send_to(self, at: TopicPartition, rows: pa.RecordBatch) -> None:
        source = RowSource(rows)
        done = 0
        while done < rows.num_rows:
            builder = BatchBuilder(self._options.compression, self._options.max_batch_bytes)
            first, done = done, source.append_to(builder, done)
            if builder.size > builder.max_bytes:
                raise SinkError(
                    f"{at}: a row of {builder.size} bytes is larger than a batch ({builder.max_bytes}) "
                    "(raise kafka.max.request.size)"
                )
            await self._send_batch(at, builder, done - first)

    async def _send_batch(self, at: TopicPartition, builder: BatchBuilder, count: int) -> None:
        sequence = self._sequences.get(at, 0)
        identity = self._signature.identity_in(at.topic)
        batch = builder.build(
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=sequence,
            is_transactional=identity.is_transactional,
        )
        timeout_s, transactional_id = self._options.delivery_timeout_s, self._signature.transactional_id
        try:
            offset = await produce(self._client.router, at, batch, timeout_s, transactional_id)
        except ProducerFenced as fenced:
            raise SinkError(
                f"{at}: a later attempt at micro-batch {self._attempt.batch_id} of query {self._attempt.query_id}, or "
                f"a later micro-batch, has written here and fenced this one ({fenced})"
            ) from fenced
        self._sequences[at] = (sequence + count) & _LAST_SEQUENCE
        first, _ = self.placed.get(at, (offset, 0))
        self.placed[at] = first, offset + count


def split_rows(rows: pa.RecordBatch, partitions: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each partition, in their order."""
    for partition in sorted(pc.unique(partitions).to_pylist()):
        is_here = pc.equal(partitions, partition)
        yield partition, rows.filter(is_here)
