"""Partition queues without a network: tests supply the fetch responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.consumer.partition_queue import PartitionQueue, Reading
from ottla.core.ids import TopicPartition
from ottla.records.batch import place
from ottla.records.encode import BatchBuilder
from ottla.wire.messages.fetch import AbortedTransaction, PartitionData

if TYPE_CHECKING:
    from collections.abc import Sequence

A = TopicPartition("t", 0)
B = TopicPartition("t", 1)
C = TopicPartition("t", 2)


def batch(first: int, count: int = 1, *, timestamps: Sequence[int] = (), **build: Any) -> bytes:
    """Records whose values are their offsets, as text."""
    builder = BatchBuilder()
    for offset in range(first, first + count):
        timestamp = timestamps[offset - first] if timestamps else 1000 + offset
        assert builder.append(timestamp, None, b"%d" % offset)
    built = builder.build(**build)
    place(built, 0, first, 0)
    return bytes(built)


def answer(
    records: bytes | memoryview = b"",
    end: int = 0,
    *,
    stable: int | None = None,
    aborted: Sequence[tuple[int, int]] = (),
) -> PartitionData:
    """The fetch response of a partition with log end offset `end`."""
    return PartitionData(
        partition_index=0,
        error_code=0,
        high_watermark=end,
        last_stable_offset=end if stable is None else stable,
        log_start_offset=0,
        aborted_transactions=tuple(
            AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in aborted
        ),
        records=records,
    )


def queue(at: TopicPartition = A, offset: int | None = 0, **reading: Any) -> PartitionQueue:
    """A queue that reads from this offset; None if the offset must be looked up first."""
    made = PartitionQueue(at, Reading(**reading))
    if offset is not None:
        made.seek(offset)
    return made


def fill(into: PartitionQueue, records: bytes = b"", end: int = 0, **data: Any) -> bool:
    return into.fill(into.ask(), answer(records, end, **data))


def offsets(records: Sequence[Any]) -> list[int]:
    return [record.offset for record in records]
