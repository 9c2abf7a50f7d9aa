"""Makes raised log start offsets durable, so that deleted records do not come back after a crash."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ApiError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition

_logger: Final = logging.getLogger(__name__)

_MOST_TRIES: Final = 5


async def note_starts(broker: Broker, starts: Mapping[Partition, int]) -> dict[Partition, ApiError]:
    """Wait until these log start offsets are durable; returns those that failed, with the error.

    The record at the start is synced first: a power failure must not lose it while the records before it are hidden.
    """
    failed: dict[Partition, ApiError] = {}
    unnoted = dict(starts)
    for _ in range(_MOST_TRIES):
        if not unnoted:
            break
        failed |= await _sync(broker, unnoted)
        try:
            await broker.maintenance.checkpoint()
        except ApiError as refused:
            _logger.error(
                "could not checkpoint log start offsets; deleted records may come back after a crash: %s", refused
            )
            return failed | dict.fromkeys(unnoted, refused)
        # Records appended meanwhile may need another sync first.
        unnoted = {
            each: offset
            for each, offset in unnoted.items()
            if each not in failed and broker.data_dir.checkpoints.durable_start(each.at) < offset
        }
    return failed | {each: StorageError(f"{each.at}: could not checkpoint the log start") for each in unnoted}


async def _sync(broker: Broker, partitions: Iterable[Partition]) -> dict[Partition, ApiError]:
    unsynced = [each for each in partitions if not each.log.is_start_synced]
    flushes = [broker.flusher.durable(each, min(each.log.start_offset, each.log.next_offset - 1)) for each in unsynced]
    failed: dict[Partition, ApiError] = {}
    for partition, error in zip(unsynced, await asyncio.gather(*flushes, return_exceptions=True), strict=True):
        if isinstance(error, ApiError):
            failed[partition] = error
        elif error is not None:
            raise error
    return failed
