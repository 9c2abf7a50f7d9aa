"""A fetch task of one broker: at most one request in flight, for every partition with free buffers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.client.bundling import BundleRule
from ottla.client.connections import Purpose
from ottla.client.consumer.fetch_plan import FetchPlan, WaitRule, plan_fetch
from ottla.client.consumer.partition_queue import NO_REPLICA
from ottla.client.errors import BrokerUnavailable, ClientError, broker_error
from ottla.core.errors import ApiError, ErrorCode
from ottla.wire.apis import FETCH
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

if TYPE_CHECKING:
    from ottla.client.config import ConsumerConfig
    from ottla.client.connection import Connection
    from ottla.client.consumer.fetch import Fetcher
    from ottla.client.consumer.partition_queue import PartitionQueue
    from ottla.client.router import Router
    from ottla.wire.messages.fetch import FetchResponse, PartitionData

_BY_NAME_UNTIL: Final = 12
"""Later versions use topic ids, which change when a topic is re-created."""
_MOST_ANSWER_BYTES: Final = 50 << 20
"""Kafka's fetch.max.bytes."""

Asked = dict[tuple[str, int], tuple["PartitionQueue", int]]


class BrokerFetch:
    """Long polls; or, next to a given long-poll task, fetches that must not wait for the long poll to end."""

    def __init__(
        self,
        node_id: int,
        router: Router,
        config: ConsumerConfig,
        fetcher: Fetcher,
        long_polls: BrokerFetch | None = None,
    ) -> None:
        self._long_polls = long_polls
        self._is_asking = False
        self._node_id = node_id
        self._router = router
        self._config = config
        self._fetcher = fetcher
        self._connection: Connection | None = None
        self._wake = asyncio.Event()
        self._wait = WaitRule(config.consumer_max_wait_ms)
        self._not_before = 0.0
        self._failures = 0
        self._isolation = int(config.isolation_level == "read_committed")
        client = router.config
        self._rule = BundleRule(client.fetcher_bundle_min_requests, client.fetcher_bundle_max_wait_ms / 1000)
        self._timeout_s = (client.request_timeout_ms + config.consumer_max_wait_ms) / 1000

    def wake(self) -> None:
        """Check for work: something changed that may concern this task."""
        self._wait.has_room()
        self._wake.set()

    async def run(self) -> None:
        while True:
            plan = await self._collect()
            asked = {(queue.at.topic, queue.at.partition): (queue, queue.ask()) for queue in plan.ready}
            self._is_asking = True
            try:
                await self._fetch(asked, plan)
            except BrokerUnavailable:
                self._unavailable(asked)
            except ClientError as refused:
                self._refused(asked, refused)
            finally:
                self._is_asking = False
                for queue, era in asked.values():
                    queue.unanswered(era)
                if self._long_polls is not None:
                    # The long-poll task may have checked while these were in flight, and found nothing to fetch.
                    self._long_polls.wake()
            # The same applies to the tasks of brokers that lead these partitions by now.
            for queue, _ in asked.values():
                self._fetcher.wake_elsewhere(queue, self._node_id)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    async def _collect(self) -> FetchPlan:
        """Wait until a request is due."""
        loop = asyncio.get_running_loop()
        first_at: float | None = None
        while True:
            self._wake.clear()
            now = loop.time()
            plan = self._plan(now)
            if plan.ready and first_at is None:
                first_at = now
            send_at = plan.send_at(self._rule, now if first_at is None else first_at)
            if send_at is not None:
                send_at = max(send_at, self._not_before)
                if send_at <= now:
                    return plan
            await self._sleep_until(send_at, plan.retry_at)

    def _plan(self, now: float) -> FetchPlan:
        if self._long_polls is None:
            return plan_fetch(self._fetcher.queues_of(self._node_id), now, with_caught_up=True)
        if self._long_polls._is_asking:  # noqa: SLF001 - it is one of us
            return plan_fetch(self._fetcher.queues_of(self._node_id), now, with_caught_up=False)
        return FetchPlan([], 0, None)

    async def _sleep_until(self, *times: float | None) -> None:
        due = min((time for time in times if time is not None), default=None)
        timer = None if due is None else asyncio.get_running_loop().call_at(due, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _fetch(self, asked: Asked, plan: FetchPlan) -> None:
        connection = await self._router.connection(self._node_id, Purpose.FETCH, owner=self)
        self._connection = connection
        version = connection.version_of(FETCH, max_version=_BY_NAME_UNTIL)
        request = self._request(plan)
        response = await connection.ask(request, version=version, timeout_s=self._timeout_s)
        self._take(response, asked)

    def _request(self, plan: FetchPlan) -> FetchRequest:
        topics: dict[str, list[FetchPartition]] = {}
        for queue in plan.ready:
            if queue.fetch_offset is not None:  # otherwise it was released while connecting
                topics.setdefault(queue.at.topic, []).append(self._partition(queue, queue.fetch_offset))
        return FetchRequest(
            max_wait_ms=self._wait.next_wait_ms(has_all=plan.has_all) if self._long_polls is None else 0,
            min_bytes=self._config.consumer_min_bytes,
            max_bytes=max(_MOST_ANSWER_BYTES, self._config.consumer_max_bytes),
            isolation_level=self._isolation,
            topics=tuple(FetchTopic(topic=name, partitions=tuple(each)) for name, each in topics.items()),
            rack_id=self._config.rack,
        )

    def _partition(self, queue: PartitionQueue, fetch_offset: int) -> FetchPartition:
        return FetchPartition(
            partition=queue.at.partition,
            current_leader_epoch=self._fetcher.leader_epoch(queue),
            fetch_offset=fetch_offset,
            partition_max_bytes=queue.max_bytes,
        )

    def _take(self, response: FetchResponse, asked: Asked) -> None:
        self._failures = 0
        self._not_before = asyncio.get_running_loop().time() + response.throttle_time_ms / 1000
        if response.error_code:
            raise broker_error(response.error_code, f"fetch from broker {self._node_id}")
        for topic in response.responses:
            for data in topic.partitions:
                queue, era = asked.get((topic.topic, data.partition_index), (None, 0))
                if queue is not None and queue.era == era:
                    self._take_partition(queue, era, data)

    def _take_partition(self, queue: PartitionQueue, era: int, data: PartitionData) -> None:
        if data.error_code:
            self._fetcher.refused(queue, era, data.error_code)
            return
        try:
            has_more = queue.fill(era, data)
        except ApiError as broken:
            about = f"{queue.at} at offset {queue.fetch_offset}"
            self._fetcher.failed(queue, broker_error(broken.code, about, str(broken)))
            return
        if has_more:
            self._fetcher.on_filled(queue)
        elif data.preferred_read_replica >= 0:
            queue.replica = data.preferred_read_replica
            self._fetcher.wake(queue)

    def _unavailable(self, asked: Asked) -> None:
        """Retry at once, in case an idle connection broke; then after a delay."""
        self._not_before = asyncio.get_running_loop().time() + self._router.backoff.delay_s(self._failures)
        self._failures += 1
        self._router.mark_stale()
        for queue, _ in asked.values():
            queue.replica = NO_REPLICA

    def _refused(self, asked: Asked, error: ClientError) -> None:
        """Handle an error of the whole request: retry after a delay if it is retriable."""
        for queue, era in asked.values():
            if error.is_retriable:
                self._fetcher.refused(queue, era, getattr(error, "code", ErrorCode.UNKNOWN_SERVER_ERROR))
            elif queue.era == era:
                self._fetcher.failed(queue, error)
