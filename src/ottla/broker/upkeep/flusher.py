"""Flushes logs according to their flush policy, in worker threads."""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from ottla.broker.metrics import Histogram
from ottla.core.errors import NotLeaderOrFollower, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from ottla.broker.partition import Partition
    from ottla.storage.flushing import Flush

_logger: Final = logging.getLogger(__name__)

_TICK_S: Final = 0.25
_AT_ONCE: Final = 32
"""The maximum number of concurrent flushes: each holds file descriptors, and takes some time of the event loop."""


class Flusher:
    def __init__(self, open_partitions: Callable[[], Iterable[Partition]]) -> None:
        self._open_partitions = open_partitions
        self._commits: dict[Partition, _GroupCommit] = {}
        self._last_flush_s: dict[Partition, float] = {}
        self._complaints: dict[Partition, str] = {}
        self._running: dict[Partition, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self.fsync_times = Histogram()
        self.disk_error: Callable[[Partition], OSError | None] = lambda _: None
        """An injected fsync error, for tests."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            # Pending flushes must end before the logs are closed.
            commits = [commit.under_way for commit in self._commits.values() if commit.under_way is not None]
            await asyncio.gather(self._task, *self._running.values(), *commits, return_exceptions=True)

    async def durable(self, partition: Partition, offset: int) -> None:
        """Wait until everything up to `offset` is durable. One fsync serves all waiting callers.

        Raises NotLeaderOrFollower if another broker was leader meanwhile. The
        record at `offset` may have been truncated and replaced.
        """
        commit = self._commits.get(partition)
        if commit is None:
            commit = self._commits[partition] = _GroupCommit(partition, self.flush)
        term = partition.term
        await commit.reach(offset)
        if term is not None and partition.term is not term:
            raise NotLeaderOrFollower(f"the leader of {partition.at} changed while offset {offset} was synced")

    def forget(self, partition: Partition) -> None:
        """Forget a deleted partition."""
        self._commits.pop(partition, None)
        self._last_flush_s.pop(partition, None)
        self._complaints.pop(partition, None)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_TICK_S)
            for partition in list(self._open_partitions()):
                since = self._last_flush_s.get(partition, 0.0)
                if partition not in self._running and partition.log.is_flush_due(loop.time(), since):
                    if len(self._running) >= _AT_ONCE:
                        await asyncio.wait(self._running.values(), return_when=asyncio.FIRST_COMPLETED)
                    self._last_flush_s[partition] = loop.time()
                    self._running[partition] = task = loop.create_task(self.flush(partition))
                    task.add_done_callback(lambda done, partition=partition: self._finished(done, partition))  # type: ignore[misc]

    async def flush(self, partition: Partition) -> None:
        """Sync everything appended so far, without blocking the event loop."""
        # A local reference: after a failure the partition may have another log when the fsync ends.
        log = partition.log
        begun = log.begin_flush()
        if begun is None:
            return
        begun.error = self.disk_error(partition)
        before = log.acknowledged_offset
        self.fsync_times.add(await asyncio.get_running_loop().run_in_executor(None, _timed, begun))
        try:
            log.finish_flush(begun)
        except StorageError:
            partition.waits.end()
            raise
        if log.config.flush == "ack" and log.acknowledged_offset > before:
            partition.synced()

    def _finished(self, task: asyncio.Task[None], partition: Partition) -> None:
        del self._running[partition]
        error = None if task.cancelled() else task.exception()
        if error is None:
            self._complaints.pop(partition, None)
        elif self._complaints.get(partition) != str(error):
            # Logged once, not with every retry: there may be one per second for each of a thousand partitions.
            self._complaints[partition] = str(error)
            _logger.error("%s: flush failed: %s", partition.at, error)


class _GroupCommit:
    """At most one flush at a time; callers that come meanwhile are served by the next."""

    def __init__(self, partition: Partition, flush: Callable[[Partition], Coroutine[object, object, None]]) -> None:
        self._partition = partition
        self._flush = flush
        self.under_way: asyncio.Task[None] | None = None

    async def reach(self, offset: int) -> None:
        while self._partition.log.recovery_point <= offset:
            if self._partition.log.next_offset <= offset:
                raise NotLeaderOrFollower(f"{self._partition.at} was truncated before offset {offset} was synced")
            # A finished flush that is still registered would be awaited without yielding, forever.
            if self.under_way is None or self.under_way.done():
                self.under_way = asyncio.create_task(self._flush(self._partition))
                self.under_way.add_done_callback(self._done)
            # Shielded: a client that disconnects must not cancel the others' flush.
            await asyncio.shield(self.under_way)

    def _done(self, task: asyncio.Task[None]) -> None:
        if self.under_way is task:
            self.under_way = None
        if not task.cancelled():
            task.exception()


def _timed(begun: Flush) -> int:
    began_ns = perf_counter_ns()
    begun.run()
    return perf_counter_ns() - began_ns
