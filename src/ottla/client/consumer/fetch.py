"""Keeps the queues of one consumer filled: two fetch tasks per broker."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ottla.client.consumer.broker_fetch import BrokerFetch
from ottla.client.consumer.partition_queue import NO_REPLICA
from ottla.client.errors import ClientError, UnknownTopic, broker_error
from ottla.client.view import NO_LEADER
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ottla.client.config import ConsumerConfig
    from ottla.client.consumer.partition_queue import PartitionQueue
    from ottla.client.router import Router
    from ottla.core.ids import TopicPartition


class Fetcher:
    def __init__(
        self,
        router: Router,
        config: ConsumerConfig,
        queues: Mapping[TopicPartition, PartitionQueue],
        on_filled: Callable[[PartitionQueue], None],
        on_error: Callable[[Exception], None],
        on_lost: Callable[[], None],
    ) -> None:
        self.on_filled = on_filled
        self._router = router
        self._config = config
        self._queues = queues
        self._on_error = on_error
        self._on_lost = on_lost
        self._brokers: dict[int, tuple[BrokerFetch, BrokerFetch]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._missing: dict[TopicPartition, asyncio.TimerHandle] = {}
        """Unknown partitions, and when to raise an error for them."""
        self._stop_listening = router.subscribe_to_changes(self._view_changed)

    async def close(self) -> None:
        self._stop_listening()
        for timer in self._missing.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for both in self._brokers.values():
            for each in both:
                each.close()

    def wake(self, queue: PartitionQueue) -> None:
        """Wake the fetch task of this queue, which may have become ready to fetch."""
        if not queue.is_wanted:
            return
        node_id = self._node_of(queue)
        if node_id == NO_LEADER:
            self.miss(queue)
            return
        if queue.at in self._missing:
            self._missing.pop(queue.at).cancel()
        for each in self._brokers.get(node_id) or self._start(node_id):
            each.wake()

    def wake_elsewhere(self, queue: PartitionQueue, node_id: int) -> None:
        """Wake the queue's fetch task unless it belongs to this node, or is no longer assigned."""
        if self._queues.get(queue.at) is queue and self._node_of(queue) != node_id:
            self.wake(queue)

    def _start(self, node_id: int) -> tuple[BrokerFetch, BrokerFetch]:
        long_polls = BrokerFetch(node_id, self._router, self._config, self)
        rest = BrokerFetch(node_id, self._router, self._config, self, long_polls)
        self._brokers[node_id] = long_polls, rest
        for each in (long_polls, rest):
            task = asyncio.create_task(each.run())
            task.add_done_callback(self._ended)
            self._tasks.append(task)
        return long_polls, rest

    def wake_all(self) -> None:
        for queue in self._queues.values():
            self.wake(queue)

    # For the fetch tasks

    def queues_of(self, node_id: int) -> Iterator[PartitionQueue]:
        return (queue for queue in self._queues.values() if self._node_of(queue) == node_id)

    def leader_epoch(self, queue: PartitionQueue) -> int:
        """The known leader epoch, so that a stale or not yet informed leader rejects the fetch (KIP-320)."""
        topic = self._router.view.topics.get(queue.at.topic)
        known = None if topic is None else topic.partitions.get(queue.at.partition)
        return -1 if known is None else known.leader_epoch

    def refused(self, queue: PartitionQueue, era: int, code: int) -> None:
        """Handle an error code of this partition."""
        if queue.era != era:
            return
        was_follower, queue.replica = queue.replica != NO_REPLICA, NO_REPLICA
        if was_follower:
            queue.unanswered(era)
            self.wake(queue)
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            queue.reset(era)
            self._on_lost()
        else:
            self._retry_or_fail(queue, era, broker_error(code, str(queue.at)))

    def failed(self, queue: PartitionQueue, error: ClientError) -> None:
        queue.fail()
        self._on_error(error)

    def _retry_or_fail(self, queue: PartitionQueue, era: int, error: ClientError) -> None:
        if not error.is_retriable:
            self.failed(queue, error)
            return
        delay_s = self._router.backoff.delay_s(queue.failures + 1)
        queue.retry_later(era, asyncio.get_running_loop().time() + delay_s)
        if isinstance(error, UnknownTopic):
            self.miss(queue)
        else:
            self._router.mark_stale()

    def miss(self, queue: PartitionQueue) -> None:
        """Handle a partition without a leader, or a deleted one. It may come back, so the error is raised only after a
        while, and once.
        """
        self._router.mark_stale()
        if queue.at not in self._missing:
            self._look_again(queue, is_to_be_said=True)

    def _look_again(self, queue: PartitionQueue, *, is_to_be_said: bool) -> None:
        timeout_s = self._router.config.leader_election_retry_ms / 1000
        again = partial(self._still_missing, queue, is_to_be_said=is_to_be_said)
        self._missing[queue.at] = asyncio.get_running_loop().call_later(timeout_s, again)

    def _still_missing(self, queue: PartitionQueue, *, is_to_be_said: bool) -> None:
        if self._queues.get(queue.at) is not queue:
            del self._missing[queue.at]
            return
        topic = self._router.view.topics.get(queue.at.topic)
        is_gone = topic is None or queue.at.partition not in topic.partitions
        if is_gone and is_to_be_said:
            self._on_error(broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(queue.at)))
        self._router.mark_stale()
        self._look_again(queue, is_to_be_said=is_to_be_said and not is_gone)

    # Which broker

    def _node_of(self, queue: PartitionQueue) -> int:
        if queue.replica in self._router.view.brokers:
            return queue.replica
        return self._router.leader(queue.at.topic, queue.at.partition)

    def _view_changed(self) -> None:
        for queue in self._queues.values():
            queue.replica = NO_REPLICA
        self.wake_all()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Report a fetch task that ended by a bug, and not by cancellation."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error if isinstance(error, Exception) else ClientError(repr(error)))
