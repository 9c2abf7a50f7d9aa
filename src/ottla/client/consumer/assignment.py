"""The partitions of one consumer with their state: being located, fetched, ready, failed."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from ottla.client.consumer.fetch import Fetcher
from ottla.client.consumer.locating import Locator
from ottla.client.consumer.ordered import OrderedMerge
from ottla.client.consumer.partition_queue import PartitionQueue, Reading, Start
from ottla.client.consumer.ready import ReadyQueues
from ottla.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.config import ConsumerConfig
    from ottla.client.router import Router
    from ottla.core.ids import TopicPartition
    from ottla.records.reader import Record


class Assignment:
    def __init__(self, router: Router, config: ConsumerConfig, reading: Reading) -> None:
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self._reading = reading
        self._errors: deque[Exception] = deque()
        self._news = asyncio.Event()
        self._fetcher = Fetcher(router, config, self.queues, self._filled, self.report, self._lost)
        self.locator = Locator(router, config, self.queues, self._located, self._fetcher.miss, self.report)
        self.ready = ReadyQueues(self._has_room)
        self._has_room_now = False
        self._merge = OrderedMerge() if config.ordered else None
        self._locating = asyncio.create_task(self.locator.run())

    async def close(self) -> None:
        self.queues.clear()
        self._news.set()
        self._locating.cancel()
        await asyncio.gather(self._locating, return_exceptions=True)
        await self._fetcher.close()

    # Which partitions

    def queue(self, at: TopicPartition) -> PartitionQueue:
        try:
            return self.queues[at]
        except KeyError:
            known = ", ".join(map(str, sorted(self.queues))) or "nothing"
            raise ClientError(f"{at} is not assigned to this consumer; assigned: {known}") from None

    def add(
        self, partitions: Iterable[TopicPartition], start: Start = Start.COMMITTED, *, is_held_back: bool = False
    ) -> None:
        for at in partitions:
            if at not in self.queues:
                queue = self.queues[at] = PartitionQueue(at, self._reading)
                queue.start = start
                queue.is_held_back = is_held_back
        self.locator.wake()
        self._news.set()

    def hold_back(self, partitions: Iterable[TopicPartition]) -> None:
        for at in partitions:
            if at in self.queues:
                self.queues[at].is_held_back = True

    def deliver(self, partitions: Iterable[TopicPartition]) -> None:
        for at in partitions:
            if at in self.queues:
                self.queues[at].is_held_back = False
                self._open(self.queues[at])
        self.locator.wake()

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        for at in partitions:
            queue = self.queues.pop(at, None)
            if queue is not None:
                # An empty queue in a new era: stale references have no effect.
                queue.seek_to(Start.COMMITTED)
            self._forget_merged(at)

    # Where and whether to read

    def seek(self, at: TopicPartition, offset: int, until: int | None = None) -> None:
        queue = self.queue(at)
        queue.seek(offset, until)
        self._forget_merged(at)
        self._fetcher.wake(queue)

    def seek_to(self, at: TopicPartition, start: Start) -> None:
        self.queue(at).seek_to(start)
        self._forget_merged(at)
        self.locator.wake()

    def pause(self, at: TopicPartition) -> None:
        self.queue(at).is_paused = True

    def resume(self, at: TopicPartition) -> None:
        queue = self.queue(at)
        queue.is_paused = False
        self._open(queue)

    def position(self, at: TopicPartition) -> int | None:
        """The offset of the next record to take."""
        held = None if self._merge is None else self._merge.position(at)
        return self.queue(at).position if held is None else held

    # Taking

    def take(self, count: int) -> list[Record]:
        """The available records, at most `count`; a pending error is raised instead, once."""
        self.raise_errors()
        if self._merge is None:
            return self.ready.take(count)
        records = self._merge.take(self.queues.values(), count)
        self._fetcher.wake_all()
        return records

    def raise_errors(self) -> None:
        if self._errors:
            raise self._errors.popleft()

    async def wait(self, deadline: float | None) -> bool:
        """Wait for any change; False once the deadline has passed."""
        loop = asyncio.get_running_loop()
        if deadline is not None and loop.time() >= deadline:
            return False
        self._news.clear()
        timer = None if deadline is None else loop.call_at(deadline, self._news.set)
        try:
            await self._news.wait()
        finally:
            if timer is not None:
                timer.cancel()
        return True

    def report(self, error: Exception) -> None:
        """Raise this error at the next call."""
        self._errors.append(error)
        self._news.set()

    def has_room_since_turn(self) -> bool:
        """Whether a fetch may be sent once the event loop runs."""
        has_room, self._has_room_now = self._has_room_now, False
        return has_room

    # Called by the tasks

    def _filled(self, queue: PartitionQueue) -> None:
        self.ready.add(queue)
        self._news.set()

    def _located(self, queue: PartitionQueue) -> None:
        self._fetcher.wake(queue)
        self._news.set()

    def _has_room(self, queue: PartitionQueue) -> None:
        if not queue.is_pending:
            self._has_room_now = True
            self._fetcher.wake(queue)

    def _lost(self) -> None:
        self.locator.wake()

    def _open(self, queue: PartitionQueue) -> None:
        self.ready.add(queue)
        self._fetcher.wake(queue)
        self._news.set()

    def _forget_merged(self, at: TopicPartition) -> None:
        if self._merge is not None:
            self._merge.drop(at)
