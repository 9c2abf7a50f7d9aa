"""Records written by share groups, and when they are safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ottla.records.encode import BatchBuilder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.share.records import KeyValue


class Written(Protocol):
    """A completed or pending write."""

    async def safe(self) -> None:
        """Wait until the write is safe. Raises ApiError if it may be lost."""


class Place(NamedTuple):
    """The position of a write."""

    partition: Partition
    offset: int

    async def safe(self) -> None:
        await self.partition.until_safe(self.offset)


async def all_safe(written: Iterable[Written | None]) -> None:
    for each in written:
        if each is not None:
            await each.safe()


def append_records(broker: Broker, partition: Partition, records: Iterable[KeyValue]) -> Place:
    """Append the records in one batch."""
    builder = BatchBuilder()
    now_ms = broker.clock.now_ms()
    for key, value in records:
        builder.append(now_ms, key, value)
    return append_batch(partition, builder.build())


def append_batch(partition: Partition, batch: bytearray) -> Place:
    partition.check_can_append()
    return Place(partition, partition.append(batch).last_offset)
