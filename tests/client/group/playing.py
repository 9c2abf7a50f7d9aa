"""Members of a group, each in a separate task, and the records they received."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from tests.clients.making import create_topic

import ottla
from ottla.broker.settings import Settings
from ottla.client.client import Client
from ottla.core.ids import TopicPartition
from ottla.groups.config import GroupConfig
from ottla.groups.records import TOPIC, OffsetKey, decode_key, decode_offset_value
from ottla.net.config import NetConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from ottla.client.consumer.consumer import Consumer
    from ottla.client.group.interface import RebalanceListener
    from ottla.client.group.member import GroupMember

PATIENCE_S: Final = 20.0
SESSION_MS: Final = 1000


def broker(**groups: int) -> ottla.Broker:
    """A broker that allows short session timeouts."""
    config = GroupConfig(**({"min_session_timeout_ms": SESSION_MS} | groups))
    return ottla.Broker(settings=Settings(net=NetConfig(port=0), groups=config))


class Crew:
    """All members of one group, on one topic."""

    def __init__(self, servers: str, topic: str, partitions: int, **options: Any) -> None:
        self.servers = servers
        self.topic = topic
        self.partitions = [TopicPartition(topic, index) for index in range(partitions)]
        self.members: list[Worker] = []
        self.received: Counter[TopicPartition | tuple[TopicPartition, int]] = Counter()
        """How often each record was delivered, by any member."""
        self.changed = asyncio.Condition()
        self._options = {
            "group": topic,
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 50,
            "session_timeout_ms": SESSION_MS * 10,
            "auto_commit_interval_ms": 50,
        } | options

    async def __aenter__(self) -> Crew:
        create_topic(self.servers, self.topic, len(self.partitions))
        return self

    async def __aexit__(self, *_: object) -> None:
        for member in list(self.members):
            await self.dismiss(member)

    async def hire(self, listener: RebalanceListener | None = None, **options: Any) -> Worker:
        member = Worker(self, self._options | options)
        self.members.append(member)
        await member.start(listener)
        return member

    async def dismiss(self, member: Worker) -> None:
        self.members.remove(member)
        await member.stop()

    async def produce(self, numbers: Iterable[int]) -> None:
        """Produce records round-robin over the partitions."""
        async with Client(self.servers) as client, client.producer() as producer:
            for number in numbers:
                at = self.partitions[number % len(self.partitions)]
                await producer.send(at.topic, value=b"%d" % number, partition=at.partition)
            await producer.flush()

    async def until(self, claim: Callable[[], bool], what: str) -> None:
        def is_over() -> bool:
            return claim() or any(member.error for member in self.members)

        try:
            async with asyncio.timeout(PATIENCE_S), self.changed:
                await self.changed.wait_for(is_over)
        except TimeoutError:
            shares = [sorted(map(str, member.assignment)) for member in self.members]
            raise AssertionError(f"{what} did not happen: {shares}, {len(self.received)} received") from None
        for member in self.members:
            if member.error is not None:
                raise member.error

    async def settle(self) -> None:
        """Wait until every partition has one owner and all members have a share."""
        low, more = divmod(len(self.partitions), len(self.members))

        def is_settled() -> bool:
            counts = sorted(len(member.assignment) for member in self.members)
            held = set().union(*(member.assignment for member in self.members))
            return len(held) == len(self.partitions) and counts == sorted(
                [low + 1] * more + [low] * (len(self.members) - more)
            )

        await self.until(is_settled, "an even assignment")

    async def receive(self, count: int) -> None:
        await self.until(lambda: len(self.received) >= count, f"{count} records")

    async def committed(self) -> dict[TopicPartition, int]:
        async with Client(self.servers) as client, client.consumer(group=self.topic) as watcher:
            return {at: found.offset for at, found in (await watcher.committed(*self.partitions)).items()}

    async def history(self) -> dict[TopicPartition, list[int]]:
        """Every commit of the group, read from __consumer_offsets."""
        found: dict[TopicPartition, list[int]] = {at: [] for at in self.partitions}
        async with Client(self.servers) as client, client.consumer(auto_offset_reset="earliest") as reader:
            places = [TopicPartition(TOPIC, index) for index in await client.partitions(TOPIC)]
            await reader.assign(places)
            for at in places:
                while await reader.lag(at):
                    for record in await reader.poll(timeout_ms=100):
                        key = decode_key(record.key or b"")
                        if isinstance(key, OffsetKey) and key.group == self.topic and record.value is not None:
                            offset = decode_offset_value(record.value).offset
                            found[TopicPartition(key.topic, key.partition)].append(offset)
        return found


class Worker:
    """Polls until told to stop."""

    def __init__(self, crew: Crew, options: dict[str, Any]) -> None:
        self.error: Exception | None = None
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        """While cleared, the application hangs after receiving records."""
        self._crew = crew
        self._client = Client(crew.servers, metadata_max_age_ms=200)
        self._options = options
        self.consumer: Consumer[bytes, bytes]
        self._task: asyncio.Task[None] | None = None

    async def start(self, listener: RebalanceListener | None) -> None:
        await self._client.start()
        self.consumer = self._client.consumer(**self._options)
        await self.consumer.subscribe(self._crew.topic, listener=listener)
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        await self._end_task()
        await self._client.close()

    async def vanish(self) -> None:
        """End without leaving the group, like a killed process."""
        self._crew.members.remove(self)
        await self._end_task()
        for task in self.member._tasks:
            task.cancel()
        await asyncio.gather(*self.member._tasks, return_exceptions=True)
        assert self.consumer._grouping is not None
        self.consumer._grouping._member = None
        await self._client.close()

    @property
    def member(self) -> GroupMember:
        assert self.consumer._grouping is not None
        assert self.consumer._grouping._member is not None
        return self.consumer._grouping._member

    async def _end_task(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while self.error is None:
            try:
                records = await self.consumer.poll(timeout_ms=20)
            except Exception as error:  # noqa: BLE001 - raised again where the test waits
                records, self.error = [], error
            async with self._crew.changed:
                self._crew.received.update((TopicPartition(one.topic, one.partition), one.offset) for one in records)
                self.assignment = self.consumer.assignment
                self._crew.changed.notify_all()
            if records:
                await self.may_go_on.wait()


@asynccontextmanager
async def crew(topic: str = "work", partitions: int = 6, **options: Any) -> AsyncIterator[Crew]:
    """A crew with a separate broker."""
    with broker() as running:
        async with Crew(running.bootstrap_servers, topic, partitions, **options) as made:
            yield made
