"""The load of a history by profile, and its final checks."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.checking.checker import violations
from tests.cluster.checking.story_checker import Ending, broken_promises

from ottla.client.admin.configs import ConfigResource
from ottla.core.ids import TopicPartition

from .churn import Churn
from .grouping import ClassicMember, GroupLedger, ModernMember
from .keys import CONFIGS, KeyLedger, KeyWriter, read_keys
from .queues import Popper, Pusher, QueueLedger, expose
from .queues import drain as drain_queue
from .sharing import GROUP, ShareLedger, ShareMember, drain
from .transacting import CommittedReader, Worker
from .work import Job, Reader, Told, Writer, read_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.client import Client

    from .cluster import World
    from .placement import Damage

_SAFE: Final = {"min.insync.replicas": "2"}


class Scene:
    """Idempotent producers and a reader of one topic."""

    partitions = 2
    factor = 3
    configs = _SAFE
    segment_bytes = 16 * 1024
    has_queues = False

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.told = Told("t", self.partitions)
        self.jobs: list[Job] = []

    async def prepare(self, client: Client) -> None:
        await client.admin.create_topic(
            self.told.topic, partitions=self.partitions, replication_factor=self.factor, configs=self.configs
        )
        self.jobs += self.workers()

    def workers(self) -> Iterable[Job]:
        yield Writer(self.world, "w1", "10.0.1.2", self.told, 0.2)
        yield Writer(self.world, "w2", "10.0.1.3", self.told, 0.35)
        yield Reader(self.world, "r1", "10.0.1.4", self.told)

    async def wind_down(self) -> None:
        """What has to be done before the jobs end."""

    async def end(self) -> None:
        """What has to end besides the jobs."""

    @property
    def acknowledged(self) -> int:
        return len(self.told.acknowledged)

    async def check(self, client: Client, damage: Damage, lost: set[tuple[str, int]]) -> list[str]:  # noqa: ARG002
        """`lost`: partitions that correctly have no leader."""
        readable = [index for index in range(self.partitions) if (self.told.topic, index) not in lost]
        return await _check(self.world, self.told, readable)


async def _check(world: World, told: Told, readable: list[int]) -> list[str]:
    found = await read_all(world, told.topic, readable)
    if told.may_expire:
        told = replace(
            told, cut_below={index: max(told.cut_below.get(index, 0), found.starts[index]) for index in readable}
        )
    kept = told.without_what_was_cut()
    kept.acknowledged = [each for each in kept.acknowledged if each.sent.partition in readable]
    kept.reads = [each for each in kept.reads if each.partition in readable]
    back = [
        f"brought back: {told.topic}-{index} begins at {found.starts[index]}, though all below {below} was deleted"
        for index, below in told.is_cut_below.items()
        if index in readable and found.starts[index] < below
    ]
    return [*back, *violations(kept, found.logs)]  # type: ignore[arg-type]


class Moves(Scene):
    """A topic that may be on one node alone, besides."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world, seed)
        self.lone = Told("lone", 2)
        world.single.add("lone")

    async def prepare(self, client: Client) -> None:
        await client.admin.create_topic("lone", partitions=2, replication_factor=1)
        await super().prepare(client)

    def workers(self) -> Iterable[Job]:
        yield Writer(self.world, "w1", "10.0.1.2", self.told, 0.2)
        yield Writer(self.world, "w3", "10.0.1.3", self.lone, 0.3)
        yield Reader(self.world, "r1", "10.0.1.4", self.told)

    async def check(self, client: Client, damage: Damage, lost: set[tuple[str, int]]) -> list[str]:
        readable = [index for index in range(2) if ("lone", index) not in lost]
        return [*await super().check(client, damage, lost), *await _check(self.world, self.lone, readable)]


class Topics(Scene):
    """One topic of which records are deleted, and one that is deleted and created again."""

    async def prepare(self, client: Client) -> None:
        await super().prepare(client)
        self.world.cut_topic = self.told
        self.world.churn = Churn(self.world)
        await self.world.churn.create(client)

    def workers(self) -> Iterable[Job]:
        yield Writer(self.world, "w1", "10.0.1.2", self.told, 0.2)
        yield Reader(self.world, "r1", "10.0.1.4", self.told)

    async def end(self) -> None:
        if self.world.churn is not None:
            await self.world.churn.end()

    async def check(self, client: Client, damage: Damage, lost: set[tuple[str, int]]) -> list[str]:
        found = await super().check(client, damage, lost)
        churn = self.world.churn
        if churn is None or not churn.is_there or churn.told.is_uncertain or (churn.told.topic, 0) in lost:
            return found
        return [
            *found,
            *(f"churn {each}" for each in await _check(self.world, churn.told, [0]) if "nowhere:" not in each),
        ]


class Transactions(Scene):
    def workers(self) -> Iterable[Job]:
        self.crew = [
            Worker(self.world, name, f"10.0.1.{number}", self.told, random.Random(self.chance.getrandbits(32)))
            for number, name in enumerate(("a", "b"), 2)
        ]
        self.reader = CommittedReader(self.world, "r1", "10.0.1.6", self.told)
        yield from self.crew
        yield self.reader

    @property
    def acknowledged(self) -> int:
        return sum(len(worker.stories) for worker in self.crew) if self.jobs else 0

    async def check(self, client: Client, damage: Damage, lost: set[tuple[str, int]]) -> list[str]:  # noqa: ARG002
        if lost:
            return []
        for worker in self.crew:
            await worker.settle(client)
        found = await read_all(self.world, self.told.topic, range(self.partitions), "read_committed")
        at = TopicPartition(self.told.topic, 0)
        progress: dict[str, Any] = {}
        for worker in self.crew:
            offsets = await client.admin.group_offsets(f"g-{worker.name}")
            progress[worker.name] = offsets[at].offset if at in offsets else None
        stories = [story for worker in self.crew for story in worker.stories]
        return broken_promises(stories, self.told.reads, Ending(found.logs, progress))


class Groups(Scene):
    def workers(self) -> Iterable[Job]:
        self.ledger = GroupLedger("classic")
        yield Writer(self.world, "w1", "10.0.1.2", self.told, 0.25)
        for number in (1, 2):
            yield ClassicMember(self.world, f"c{number}", f"10.0.1.{2 + number}", self.told, self.ledger)
            yield ModernMember(self.world, f"m{number}", f"10.0.1.{4 + number}", self.told, "modern")

    async def check(self, client: Client, damage: Damage, lost: set[tuple[str, int]]) -> list[str]:
        found = await super().check(client, damage, lost)
        if lost:
            return found
        offsets = await client.admin.group_offsets(self.ledger.group)
        for at, committed in self.ledger.committed.items():
            kept = offsets[at].offset if at in offsets else None
            if kept is None or kept < committed:
                found.append(f"commit lost: {self.ledger.group} is at {kept} in {at}, though {committed} was committed")
        return [*found, *self.ledger.problems]


class Sharing(Scene):
    """A share group, of which two members have each partition."""

    async def prepare(self, client: Client) -> None:
        await client.admin.alter_configs(ConfigResource.group(GROUP), {"share.auto.offset.reset": "earliest"})
        await super().prepare(client)

    def workers(self) -> Iterable[Job]:
        self.ledger = ShareLedger()
        yield Writer(self.world, "w1", "10.0.1.2", self.told, 0.25)
        for number in range(4):
            work = self.ledger, number % self.partitions, random.Random(self.chance.getrandbits(32))
            yield ShareMember(self.world, f"s{number}", f"10.0.1.{3 + number}", self.told, work)

    async def wind_down(self) -> None:
        writer = self.jobs[0]
        writer.end()
        if writer.task is not None:
            await asyncio.wait([writer.task], timeout=30)
        await drain(self.ledger, self.told, 30)

    async def check(self, client: Client, damage: Damage, lost: set[tuple[str, int]]) -> list[str]:
        found = await super().check(client, damage, lost)
        return [*found, *self.ledger.problems, *self.ledger.missing(self.told)]


class Keys(Scene):
    """A compacted topic."""

    configs = CONFIGS
    segment_bytes = 2048

    def workers(self) -> Iterable[Job]:
        self.ledger = KeyLedger()
        for number, pace_s in ((1, 0.1), (2, 0.2)):
            yield KeyWriter(self.world, f"k{number}", f"10.0.1.{1 + number}", self.told, (self.ledger, pace_s))

    @property
    def acknowledged(self) -> int:
        return sum(len(values) for values in self.ledger.sent.values()) if self.jobs else 0

    async def check(self, client: Client, damage: Damage, lost: set[tuple[str, int]]) -> list[str]:  # noqa: ARG002
        readable = [index for index in range(self.partitions) if (self.told.topic, index) not in lost]
        logs = await read_keys(self.world, self.told.topic, readable)
        for index, log in logs.items():
            self.world.loop.note("kept", index, len(log), max(log, default=-1))
        return self.ledger.violations(logs)


class Queues(Scene):
    """A topic that is exposed over DMQP."""

    has_queues = True

    async def prepare(self, client: Client) -> None:
        self.ledger = QueueLedger(self.told.topic)
        await super().prepare(client)
        await expose(self.world, self.told.topic)

    def workers(self) -> Iterable[Job]:
        yield Pusher(self.world, "p1", "10.0.1.2", self.ledger)
        yield Pusher(self.world, "p2", "10.0.1.3", self.ledger)
        yield Popper(self.world, "c1", "10.0.1.4", self.ledger)
        yield Popper(self.world, "c2", "10.0.1.5", self.ledger)

    @property
    def acknowledged(self) -> int:
        return len(self.ledger.acknowledged) if self.jobs else 0

    async def wind_down(self) -> None:
        pushers = [job for job in self.jobs if isinstance(job, Pusher)]
        for pusher in pushers:
            pusher.end()
        await asyncio.wait([pusher.task for pusher in pushers if pusher.task is not None], timeout=30)
        await drain_queue(self.ledger, 60)

    async def check(self, client: Client, damage: Damage, lost: set[tuple[str, int]]) -> list[str]:  # noqa: ARG002
        return self.ledger.violations() if not lost else list(self.ledger.problems)


SCENES: Final[dict[str, type[Scene]]] = {
    "moves": Moves,
    "topics": Topics,
    "transactions": Transactions,
    "groups": Groups,
    "sharing": Sharing,
    "keys": Keys,
    "queues": Queues,
    "everything": Topics,
}
