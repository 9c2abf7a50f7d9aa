"""Finds start positions: the committed offset, otherwise by the reset policy."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.client.consumer.partition_queue import PartitionQueue, Start
from ottla.client.consumer.positions import EARLIEST, LATEST, OffsetAtTime, list_offsets
from ottla.client.errors import ClientError, broker_error
from ottla.client.view import NO_LEADER
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ottla.client.config import ConsumerConfig
    from ottla.client.router import Router
    from ottla.core.ids import TopicPartition

    Committed = Callable[[list[TopicPartition]], Awaitable[Mapping[TopicPartition, int]]]

_TIMES: Final = {"earliest": EARLIEST, "latest": LATEST}


class Locator:
    """A task that looks up offsets for the queues that need one."""

    def __init__(
        self,
        router: Router,
        config: ConsumerConfig,
        queues: Mapping[TopicPartition, PartitionQueue],
        on_located: Callable[[PartitionQueue], None],
        on_missing: Callable[[PartitionQueue], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        self.committed: Committed | None = None
        """The committed offsets; partitions without one are omitted."""
        self._router = router
        self._config = config
        self._queues = queues
        self._on_located = on_located
        self._on_missing = on_missing
        self._on_error = on_error
        self._wake = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        failures = 0
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._locate({queue: queue.era for queue in self._queues.values() if queue.needs_start})
            if any(queue.needs_start for queue in self._queues.values()):
                failures += 1
                self._router.mark_stale()
                asyncio.get_running_loop().call_later(self._router.backoff.delay_s(failures), self._wake.set)
            else:
                failures = 0

    async def _locate(self, eras: dict[PartitionQueue, int]) -> None:
        try:
            await self._begin_where_committed(eras)
        except ClientError as failed:
            if not failed.is_retriable:
                for queue in eras:
                    queue.fail()
                self._on_error(failed)
            return
        times = {queue.at: time for queue in eras if queue.needs_start and (time := self._time_for(queue)) is not None}
        isolation = int(self._config.isolation_level == "read_committed")
        found = await list_offsets(self._router, times, isolation)
        for queue, era in eras.items():
            answer = found.get(queue.at)
            if isinstance(answer, OffsetAtTime):
                self._begin(queue, era, answer.offset)
            elif answer is not None and queue.era == era:
                self._retry_or_fail(queue, answer)

    def _retry_or_fail(self, queue: PartitionQueue, error: ClientError) -> None:
        if not error.is_retriable:
            queue.fail()
            self._on_error(error)
        elif self._router.leader(queue.at.topic, queue.at.partition) == NO_LEADER:
            self._on_missing(queue)

    async def _begin_where_committed(self, eras: dict[PartitionQueue, int]) -> None:
        asked = {queue.at: queue for queue in eras if queue.start is Start.COMMITTED}
        if self.committed is None or not asked:
            return
        for at, offset in (await self.committed(list(asked))).items():
            self._begin(asked[at], eras[asked[at]], offset)

    def _begin(self, queue: PartitionQueue, era: int, offset: int) -> None:
        queue.begin_at(era, offset)
        self._on_located(queue)

    def _time_for(self, queue: PartitionQueue) -> int | None:
        """The special timestamp to query; None if the policy is to raise an error."""
        if queue.start in (Start.EARLIEST, Start.LATEST):
            return _TIMES[queue.start.value]
        if self._config.auto_offset_reset == "none":
            queue.fail()
            why = f"{queue.at} has no valid offset and no reset policy"
            self._on_error(broker_error(ErrorCode.OFFSET_OUT_OF_RANGE, why))
            return None
        return _TIMES[self._config.auto_offset_reset]
