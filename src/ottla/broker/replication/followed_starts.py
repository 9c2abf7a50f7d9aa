"""The log start offsets that a follower reports to its leader: only durable ones.

The leader answers DeleteRecords by the log start offsets of the fetches, and lets a replica join the ISR by them. A
start offset that a crash or a full disk can undo would bring deleted records back once this replica is elected.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.upkeep.log_starts import note_starts
from ottla.core.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.replication.replica import Replica

_logger: Final = logging.getLogger(__name__)

_RETRY_S: Final = 5.0


class FollowedStarts:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._task: asyncio.Task[None] | None = None
        self.are_being_written = False

    def durable(self, replica: Replica) -> int:
        """The log start offset that survives a crash."""
        start = replica.log.start_offset
        return start and min(start, self._broker.data_dir.checkpoints.durable_start(replica.partition.at))

    def check(self, replicas: Iterable[Replica]) -> None:
        """Start to write the raised log start offsets, many of them together, while fetches go on."""
        if self._task is None:
            raised = {each.partition: each.log.start_offset for each in replicas if self._is_raised(each)}
            if raised:
                self.are_being_written = True
                self._task = asyncio.create_task(self._write(raised))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _is_raised(self, replica: Replica) -> bool:
        try:
            return self.durable(replica) < replica.log.start_offset
        except ApiError:
            return False  # it is offline

    async def _write(self, raised: Mapping[Partition, int]) -> None:
        try:
            have_failed = bool(await note_starts(self._broker, raised))
        except ApiError:
            have_failed = True  # a log went offline
        except Exception:  # a bug must not end replication
            _logger.exception("writing log start offsets failed")
            have_failed = True
        finally:
            self.are_being_written = False
        if have_failed:
            await asyncio.sleep(_RETRY_S)
        self._task = None
