"""Forces logs to the disk as their flush policy asks, in worker threads."""

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
"""Each takes file descriptors until it is done, and a moment of the loop's time to begin and to end."""


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
        """What an fsync is taken to have failed with. Set by who wants to see what comes of that."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            # What is under way has to end before the logs are closed.
            commits = [commit.under_way for commit in self._commits.values() if commit.under_way is not None]
            await asyncio.gather(self._task, *self._running.values(), *commits, return_exceptions=True)

    async def durable(self, partition: Partition, offset: int) -> None:
        """Return once everything up to `offset` is on the disk. One fsync serves all callers that wait.

        NotLeaderOrFollower: this broker led the partition when it was called, and another one led it meanwhile. The
        record at `offset` may have been truncated, and the one that is there now may be another.
        """
        commit = self._commits.get(partition)
        if commit is None:
            commit = self._commits[partition] = _GroupCommit(partition, self.flush)
        term = partition.term
        await commit.reach(offset)
        if term is not None and partition.term is not term:
            raise NotLeaderOrFollower(f"{partition.at} was led by another broker while offset {offset} was synced")

    def forget(self, partition: Partition) -> None:
        """It has been deleted: nobody will ask for it again."""
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
        """Sync what has been appended so far, without holding up the loop."""
        # Kept: the partition may have another log when the fsync ends, which was opened after this one failed.
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
            # Once, and not with every try, of which there may be one a second for each of a thousand partitions.
            self._complaints[partition] = str(error)
            _logger.error("%s could not be flushed: %s", partition.at, error)


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
            # One that is done and not yet noted so would be waited for without giving way, and for ever.
            if self.under_way is None or self.under_way.done():
                self.under_way = asyncio.create_task(self._flush(self._partition))
                self.under_way.add_done_callback(self._done)
            # Shielded: a client that goes away must not take the others' flush with it.
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
