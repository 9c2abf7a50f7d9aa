"""Workers that run one transaction after the other, and readers of what is committed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.checking.stories import Fate, Story

from ottla.client.errors import ClientError
from ottla.client.group.interface import Committed, GroupProgress
from ottla.core.ids import TopicPartition

from .edges import EDGES
from .work import Job, Reader

if TYPE_CHECKING:
    import random

    from ottla.client.client import Client

    from .cluster import World
    from .work import Told

_TIMEOUT_MS: Final = 5_000


class CommittedReader(Reader):
    isolation = "read_committed"


class Worker(Job):
    """A transactional id and its producers: sometimes a new one takes over while a transaction is open."""

    def __init__(self, world: World, name: str, host: str, told: Told, chance: random.Random) -> None:
        super().__init__(world, name, host)
        self.told = told
        self.stories: list[Story] = []
        self._chance = chance
        self._position = 0

    async def use(self, client: Client) -> None:
        producer: Any = client.producer(
            transactional_id=self.name,
            transaction_timeout_ms=_TIMEOUT_MS,
            delivery_timeout_ms=4_000,
            producer_batch_timeout_ms=2,
        )
        async with producer:
            while not self.is_ending:
                await self._transact(producer)
                await asyncio.sleep(self._chance.uniform(0.1, 1.2))

    async def _transact(self, producer: Any) -> None:
        story = Story(self.name, len(self.stories))
        self.stories.append(story)
        end = self._chance.choices(("commit", "abort", "leave"), (8, 2, 1))[0]
        transactions = producer._transactions
        transactions.begin()
        try:
            await self._send(producer, story)
            if end == "leave":
                # As a process that dies: another takes its id over, and what was open is aborted.
                raise ClientError("left open")  # noqa: TRY301
            if end == "commit":
                await self._commit(transactions, story)
                return
        except ClientError:
            if story.fate is Fate.UNKNOWN or end == "leave":
                raise
        await transactions.abort()

    async def _commit(self, transactions: Any, story: Story) -> None:
        await transactions._sent()
        transactions.refuse_if_not_open()
        story.fate = Fate.UNKNOWN
        await transactions.commit()
        story.fate = Fate.COMMITTED
        self.world.loop.note("committed", story.worker, story.number)

    async def _send(self, producer: Any, story: Story) -> None:
        for _ in range(self._chance.randint(1, 4)):
            partition = self._chance.randrange(self.told.partitions)
            value = story.next_value(partition).encode()
            await producer.send(self.told.topic, value, partition=partition, timestamp_ms=EDGES.wall_ms())
        if self._chance.random() < 0.4:
            moved_to = story.number + 1
            at = TopicPartition(self.told.topic, 0)
            story.moved_to = moved_to
            await producer.send_offsets(GroupProgress(f"g-{self.name}", {at: Committed(moved_to)}))

    async def settle(self, client: Client) -> None:
        """Decide the open transaction for the next producer."""
        with suppress(ClientError):
            producer: Any = client.producer(transactional_id=self.name, transaction_timeout_ms=_TIMEOUT_MS)
            async with producer:
                return
