"""The two fetch tasks of a broker; tests decide when it answers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ottla.client.config import ClientConfig, ConsumerConfig
from ottla.client.consumer.broker_fetch import BrokerFetch
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse

from .making import A, B, answer, queue

if TYPE_CHECKING:
    from ottla.client.consumer.partition_queue import PartitionQueue
    from ottla.core.ids import TopicPartition

PATIENCE_S = 5


class Leader:
    """Router, fetcher and connection in one: every request waits here until the test answers it."""

    def __init__(self) -> None:
        self.config = ClientConfig()
        self.queues: list[PartitionQueue] = []
        self.requests: asyncio.Queue[tuple[Any, asyncio.Future[FetchResponse]]] = asyncio.Queue()

    def queues_of(self, _node_id: int) -> list[PartitionQueue]:
        return self.queues

    def leader_epoch(self, _queue: PartitionQueue) -> int:
        return -1

    def wake_elsewhere(self, _queue: PartitionQueue, _node_id: int) -> None:
        """No-op: this broker leads all partitions."""

    async def connection(self, *_: object, **__: object) -> Any:
        return SimpleNamespace(version_of=lambda *_, **__: 12, ask=self._ask)

    async def _ask(self, request: Any, **_: object) -> FetchResponse:
        answered: asyncio.Future[FetchResponse] = asyncio.get_running_loop().create_future()
        await self.requests.put((request, answered))
        return await answered

    async def next_request(self) -> tuple[list[int], int, asyncio.Future[FetchResponse]]:
        """The partitions, the maximum wait, and the future for the response."""
        request, answered = await asyncio.wait_for(self.requests.get(), PATIENCE_S)
        return [part.partition for topic in request.topics for part in topic.partitions], request.max_wait_ms, answered


def nothing_new(at: TopicPartition) -> FetchResponse:
    data = replace(answer(), partition_index=at.partition)
    return FetchResponse(responses=(FetchableTopicResponse(topic=at.topic, partitions=(data,)),))


def test_partitions_fetched_beside_a_long_poll_are_in_the_next_one() -> None:
    async def scenario() -> None:
        leader: Any = Leader()
        long_polls = BrokerFetch(0, leader, ConsumerConfig(), leader)
        rest = BrokerFetch(0, leader, ConsumerConfig(), leader, long_polls)
        tasks = [asyncio.create_task(each.run()) for each in (long_polls, rest)]
        leader.queues = [queue(A)]
        long_polls.wake()
        _, _, long_poll = await leader.next_request()
        # Another partition replaces the first, and is fetched beside the long poll.
        leader.queues = [queue(B)]
        rest.wake()
        asked, wait_ms, beside = await leader.next_request()
        assert (asked, wait_ms) == ([B.partition], 0)

        long_poll.set_result(nothing_new(A))
        await asyncio.sleep(0)  # the long poll plans its next request while B is in flight
        await asyncio.sleep(0)
        beside.set_result(nothing_new(B))

        asked, wait_ms, _ = await leader.next_request()
        assert asked == [B.partition]
        assert wait_ms > 0
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(scenario())
