"""Records as Arrow columns, directly from fetched batches. Needs pyarrow: `pip install ottla[arrow]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ottla.client.consumer.ready import failed
from ottla.core.errors import CorruptMessage
from ottla.records.arrow import SCHEMA as RECORD_SCHEMA
from ottla.records.arrow import to_arrow
from ottla.records.batch import count_intact

if TYPE_CHECKING:
    from ottla.client.consumer.partition_queue import PartitionQueue
    from ottla.client.consumer.ready import ReadyQueues
    from ottla.core.ids import TopicPartition

SCHEMA: Final = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        *RECORD_SCHEMA,
    ]
)


def take_columns(ready: ReadyQueues, max_bytes: int, *, check_crcs: bool) -> tuple[pa.Table, dict[TopicPartition, int]]:
    """All ready records, a chunk per buffer, and the first offset of each partition in it.

    At least one buffer, and more while their batches take less than `max_bytes`.
    """
    chunks: list[pa.RecordBatch] = []
    starts: dict[TopicPartition, int] = {}
    taken_bytes = 0
    while (queue := ready.first()) is not None:
        size = len(queue.first_buffer[0])
        if chunks and taken_bytes + size > max_bytes:
            break
        taken_bytes += size
        try:
            rows, from_offset = _take_buffer(queue, check_crcs=check_crcs)
        except Exception as error:
            if chunks:
                break
            raise failed(queue, error) from error
        ready.served(queue)
        if rows.num_rows:
            starts.setdefault(queue.at, from_offset)
            chunks.append(_placed(rows, queue.at))
    return pa.Table.from_batches(chunks, SCHEMA), starts


def _take_buffer(queue: PartitionQueue, *, check_crcs: bool) -> tuple[pa.RecordBatch, int]:
    batches, from_offset = queue.first_buffer
    try:
        rows = to_arrow(batches, from_offset, check_crcs=check_crcs)
    except CorruptMessage:
        # Records before the corruption are delivered first.
        intact, _ = count_intact(batches, 0)
        if not 0 < intact < len(batches):
            raise
        batches = batches[:intact]
        rows = to_arrow(batches, from_offset, check_crcs=check_crcs)
    queue.pass_over(len(batches))
    return rows, from_offset


def _placed(rows: pa.RecordBatch, at: TopicPartition) -> pa.RecordBatch:
    count = rows.num_rows
    topics = pa.repeat(pa.scalar(at.topic, pa.string()), count)
    partitions = pa.repeat(pa.scalar(at.partition, pa.int32()), count)
    return pa.RecordBatch.from_arrays([topics, partitions, *rows.columns], schema=SCHEMA)
