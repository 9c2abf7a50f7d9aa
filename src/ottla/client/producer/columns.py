"""A table's rows as records: partitioned and encoded column-wise. Needs pyarrow: `pip install ottla[arrow]`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.errors import RecordTooLarge, UnknownTopic
from ottla.client.producer.batch import Batch, Refused
from ottla.client.producer.delivery import finished
from ottla.core.errors import ErrorCode
from ottla.records.arrow import RowSource, key_partitions
from ottla.records.compression import Compression
from ottla.records.encode import BatchBuilder

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ottla.client.producer.accumulator import Filling, TopicBuffers
    from ottla.client.producer.sender import Sender

_ANY = -1
"""The partition of rows without an assigned partition."""


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    topic: str
    partition: int
    base_offset: int
    """The offset of the first record; -1 if the broker did not return it."""
    count: int


class TableDelivery:
    """A table in flight: await it for the offsets of each of its batches, or the error."""

    __slots__ = ("_batches",)

    def __init__(self, batches: list[Batch]) -> None:
        self._batches = batches

    @property
    def is_done(self) -> bool:
        return all(batch.is_done for batch in self._batches)

    def __await__(self) -> Generator[Any, None, list[BatchMetadata]]:
        return self._delivered().__await__()

    async def _delivered(self) -> list[BatchMetadata]:
        for batch in self._batches:
            batch.observe_all()
        for batch in self._batches:
            await finished(batch)
        return [_place_of(part) for batch in self._batches for part in batch.parts()]


def _place_of(batch: Batch) -> BatchMetadata:
    outcome, _ = batch.outcome_of(0)
    if isinstance(outcome, Refused):
        raise outcome.error.with_traceback(None) from outcome.error.__cause__
    return BatchMetadata(batch.topic, batch.partition, outcome.base_offset, batch.count)


async def send_table(sender: Sender, buffers: TopicBuffers, table: pa.Table | pa.RecordBatch) -> TableDelivery:
    """Append a table's rows, in order within each partition; wait while a partition's buffers are full."""
    batches: list[Batch] = []
    for rows in [table] if isinstance(table, pa.RecordBatch) else table.to_batches():
        for partition, part in _by_partition(rows, _partitions(rows, buffers, sender)):
            await _send_rows(sender, buffers, partition, part, batches)
    return TableDelivery(batches)


def _partitions(rows: pa.RecordBatch, buffers: TopicBuffers, sender: Sender) -> pa.Array:
    """The partition of each row, from its column `partition` or the partitioner."""
    if "partition" in rows.schema.names:
        chosen = rows.column("partition").cast(pa.int32()).fill_null(_ANY)
    elif sender.config.partitioner is not None:
        keys = rows.column("key").to_pylist() if "key" in rows.schema.names else [None] * rows.num_rows
        chosen = pa.array([sender.config.partitioner(key, buffers.count) for key in keys], pa.int32())
    else:
        return key_partitions(rows, buffers.count)
    if rows.num_rows and not _ANY <= pc.min(chosen).as_py() <= pc.max(chosen).as_py() < buffers.count:
        what = f"a row has a partition that does not exist; {buffers.name} has {buffers.count} partitions"
        raise UnknownTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)
    return chosen


def _by_partition(rows: pa.RecordBatch, partitions: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
    if not rows.num_rows:
        return
    order = pc.array_sort_indices(partitions)  # a stable sort: rows of one partition keep their order
    found = sorted((count["values"], count["counts"]) for count in pc.value_counts(partitions).to_pylist())
    if len(found) == 1:
        yield found[0][0], rows
        return
    in_order = rows.take(order)
    first = 0
    for partition, count in found:
        yield partition, in_order.slice(first, count)
        first += count


async def _send_rows(
    sender: Sender, buffers: TopicBuffers, partition: int, rows: pa.RecordBatch, batches: list[Batch]
) -> None:
    source = RowSource(rows)
    done = 0
    while done < rows.num_rows:
        filling = await _room(sender, buffers, partition)
        config = sender.config
        builder = BatchBuilder(Compression[config.compression.upper()], filling.max_bytes, config.compression_level)
        done = source.append_to(builder, done)
        if builder.size > builder.max_bytes:
            what = (
                f"a row of {builder.size} bytes for {buffers.name} exceeds the batch size limit of {builder.max_bytes}"
            )
            raise RecordTooLarge(ErrorCode.MESSAGE_TOO_LARGE, f"{what} (raise producer_max_bytes)")
        batch = Batch(buffers.name, filling.partition, builder, monotonic(), partial(sender.look_soon, filling.queue))
        sender.accumulator.put(filling, batch)
        batches.append(batch)


async def _room(sender: Sender, buffers: TopicBuffers, partition: int) -> Filling:
    """The partition of the next batch, once it has a free buffer."""
    while True:
        filling: Filling = buffers.fillings[sender.sticky_choice(buffers) if partition == _ANY else partition]
        if filling.room > 0:
            return filling
        await sender.room(buffers.name)
        sender.refuse_if_closed()
