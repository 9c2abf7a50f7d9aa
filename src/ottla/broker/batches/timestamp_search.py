"""Finds a record by timestamp, in slices: batches may have to be decompressed."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.broker.batches.inflating import AT_ONCE_BYTES, uncompressed
from ottla.records.compression import DecompressedTooLarge
from ottla.storage.segment_files.timestamps import Effort, TimestampOffset, Unfinished, first_since

if TYPE_CHECKING:
    from ottla.broker.batches.inflating import Allowance
    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.storage.segment_files.scan import FoundBatch

_BATCHES_IN_A_TURN: Final = 4


class TimestampSearch:
    def __init__(self, broker: Broker, partition: Partition, allowance: Allowance) -> None:
        self.partition = partition
        self._inflating = broker.inflating
        self._allowance = allowance

    async def newest(self) -> TimestampOffset | None:
        """The first record with the highest timestamp."""
        log = self.partition.log
        newest = log.newest_timestamp()
        found = await self.first_since(newest) if newest >= 0 else None
        if found is None and newest >= 0:
            left = log.newest_timestamp_left(AT_ONCE_BYTES)
            found = await self.first_since(left) if left >= 0 else None
        return found

    async def first_since(self, timestamp: int) -> TimestampOffset | None:
        """The first record with this timestamp or a later one."""
        from_offset = 0
        while True:
            found = self.partition.log.search_timestamp(
                timestamp, from_offset, Effort(_BATCHES_IN_A_TURN, AT_ONCE_BYTES)
            )
            if not isinstance(found, Unfinished):
                return found
            from_offset = max(found.next_offset, from_offset)
            if found.large is None:
                await asyncio.sleep(0)
                continue
            in_it = await self._looked_into(found.large, timestamp, from_offset)
            if in_it is not None:
                return in_it
            from_offset = found.large.header.next_offset

    async def _looked_into(self, batch: FoundBatch, timestamp: int, from_offset: int) -> TimestampOffset | None:
        look = partial(_first_since, batch, timestamp, from_offset)
        limit = self._inflating.limit(len(batch.data))
        try:
            found, inflated_bytes = await self._inflating.in_thread(look, limit, self._allowance)
        except DecompressedTooLarge:
            # The batch may start before the searched record, but not after it.
            header = batch.header
            return TimestampOffset(header.max_timestamp, max(header.base_offset, from_offset), header.leader_epoch)
        self._allowance.left -= inflated_bytes
        return found


def _first_since(batch: FoundBatch, timestamp: int, from_offset: int, limit: int) -> tuple[TimestampOffset | None, int]:
    made = uncompressed(batch.data, limit)
    return first_since(batch._replace(data=made), timestamp, from_offset), len(made)
