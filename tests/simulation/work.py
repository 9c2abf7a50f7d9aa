"""Clients that write and read continuously, and the responses they get."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.checking.checker import UNTOLD
from tests.cluster.checking.history import Acknowledged, Read, Sent

from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.core.ids import TopicPartition

from .edges import EDGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .cluster import World

_MOST_AT_ONCE: Final = 2
"""Records of one partition that a writer sends together: a request has several, and of several partitions."""
_DELIVERED_WITHIN_MS: Final = 10_000
OPTIONS: Final[dict[str, Any]] = {
    "request_timeout_ms": 2_000,
    "connect_timeout_ms": 1_000,
    "metadata_max_age_ms": 10_000,
    "metadata_refresh_retry_count": 3,
    "metadata_refresh_retry_ms": 150,
}


@dataclass
class Told:
    """What clients of one topic saw. As `tests.cluster.checking.history.History`, in memory."""

    topic: str
    partitions: int
    sent: set[Sent] = field(default_factory=set)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    failed: list[tuple[Sent, str]] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    cut_below: dict[int, int] = field(default_factory=dict)
    """By partition: the records below this were to be deleted, and need not be there."""
    is_cut_below: dict[int, int] = field(default_factory=dict)
    """By partition: the acknowledged deletion offset."""
    may_expire: bool = False
    """Its oldest records may be gone by their retention."""
    is_uncertain: bool = False
    """It may have been deleted as a whole."""

    def without_what_was_cut(self) -> Told:
        below = self.cut_below
        return replace(
            self,
            acknowledged=[each for each in self.acknowledged if each.offset >= below.get(each.sent.partition, -1)],
            reads=[each for each in self.reads if each.offset >= below.get(each.partition, -1)],
        )


class Job:
    """A job of a client until stopped; in a separate party, which faults may hit."""

    def __init__(self, world: World, name: str, host: str) -> None:
        self.world = world
        self.name = name
        self.party = world.party(name, host)
        self.is_ending = False
        self.problems: list[str] = []
        """What it saw that must not be."""
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = self.world.loop.create_task(self._run(), context=self.party.context)

    async def _run(self) -> None:
        while not self.is_ending:
            try:
                async with Client(self.world.servers, client_id=self.name, **OPTIONS) as client:
                    await self.use(client)
            except ClientError as failed:
                self.world.loop.note(self.name, str(failed))
            await asyncio.sleep(0.15)

    async def use(self, client: Client) -> None:
        raise NotImplementedError

    def end(self) -> None:
        self.is_ending = True


class Writer(Job):
    """An idempotent producer of numbered records: none, one or two of each partition at a time."""

    def __init__(self, world: World, name: str, host: str, told: Told, pace_s: float) -> None:
        super().__init__(world, name, host)
        self.told = told
        self._pace_s = pace_s
        self._numbers = [0] * told.partitions
        self._waiting: set[asyncio.Task[None]] = set()
        self._lives = 0

    async def use(self, client: Client) -> None:
        self._lives += 1
        producer: Any = client.producer(delivery_timeout_ms=_DELIVERED_WITHIN_MS, producer_batch_timeout_ms=5)
        async with producer:
            turn = 0
            while not self.is_ending:
                turn += 1
                for partition in range(self.told.partitions):
                    for _ in range((turn + partition) % (_MOST_AT_ONCE + 1)):
                        await self._send(producer, partition)
                await asyncio.sleep(self._pace_s)
            if self._waiting:
                await asyncio.wait(self._waiting)

    async def _send(self, producer: Any, partition: int) -> None:
        sent = Sent(f"{self.name}.{self._lives}", self._numbers[partition], partition)
        self._numbers[partition] += 1
        self.told.sent.add(sent)
        delivery = await producer.send(
            self.told.topic, sent.value.encode(), partition=partition, timestamp_ms=EDGES.wall_ms()
        )
        task = asyncio.create_task(self._settle(sent, delivery))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _settle(self, sent: Sent, delivery: Any) -> None:
        try:
            placed = await delivery
        except ClientError as failed:
            self.told.failed.append((sent, str(failed)))
        else:
            self.told.acknowledged.append(Acknowledged(sent, UNTOLD if placed.offset is None else placed.offset))
            self.world.loop.note("ok", sent.value, placed.offset)


class Reader(Job):
    """Reads every partition from its beginning, and continues where it stopped."""

    isolation = "read_uncommitted"

    def __init__(self, world: World, name: str, host: str, told: Told) -> None:
        super().__init__(world, name, host)
        self.told = told
        self._next = [0] * told.partitions

    async def use(self, client: Client) -> None:
        consumer: Any = client.consumer(
            auto_offset_reset="earliest", consumer_max_wait_ms=500, isolation_level=self.isolation
        )
        async with consumer:
            places = [TopicPartition(self.told.topic, index) for index in range(self.told.partitions)]
            await consumer.assign(places)
            for place in places:
                consumer.seek(place, self._next[place.partition])
            while not self.is_ending:
                for record in await consumer.poll(timeout_ms=1000):
                    self._next[record.partition] = record.offset + 1
                    self.told.reads.append(Read(self.name, record.partition, record.offset, record.value.decode()))


@dataclass
class Found:
    """What there is in the end."""

    logs: dict[int, dict[int, str]]
    """By partition and offset."""
    starts: dict[int, int]
    """By partition, the first offset it still has."""


async def read_all(world: World, topic: str, partitions: Sequence[int], isolation: str = "read_uncommitted") -> Found:
    places = [TopicPartition(topic, index) for index in partitions]
    found = Found({index: {} for index in partitions}, {})
    if not places:
        return found
    async with Client(world.servers, client_id="end", **OPTIONS) as client:
        ends = {at: _offset(end) for at, end in (await client.admin.latest_offsets(places)).items()}
        starts = await client.admin.earliest_offsets(places)
        found.starts = {at.partition: _offset(start) for at, start in starts.items()}
        consumer: Any = client.consumer(auto_offset_reset="earliest", isolation_level=isolation)
        async with consumer:
            await consumer.assign(places)
            consumer.seek_to_beginning()
            while any([await consumer.position(at) < end for at, end in ends.items()]):
                for record in await consumer.poll(timeout_ms=1000):
                    found.logs[record.partition][record.offset] = record.value.decode()
    return found


def _offset(found: Any) -> int:
    if isinstance(found, Exception):
        raise found
    return int(found.offset)
