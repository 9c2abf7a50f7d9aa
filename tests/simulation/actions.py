"""Administrative actions during a history; their results do not matter."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ottla.client.admin.configs import ConfigResource
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.core.ids import TopicPartition

from .disk_faults import DiskFaults
from .placement import places
from .work import OPTIONS

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable

    from .cluster import World
    from .placement import Damage, Place
    from .plans import Plan

_PATIENCE_S: Final = 8.0


class Actions(DiskFaults):
    def __init__(self, world: World, planned: Plan, damage: Damage) -> None:
        super().__init__(world, planned, damage)
        self._party = world.party("admin", "10.0.1.9")
        self._admin: Client | None = None
        """Opened by the first action; the others use its connections."""
        self._is_opening = asyncio.Lock()

    async def _ask(self, what: Callable[[Client], Awaitable[Any]]) -> Any:
        """The answer, or None if the request failed."""

        async def ask() -> Any:
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    return await what(await self._client())
            except (ClientError, TimeoutError) as failed:
                self.world.loop.note("refused", str(failed))
                return None

        return await self.world.loop.create_task(ask(), context=self._party.context)

    async def _client(self) -> Client:
        async with self._is_opening:
            if self._admin is None:
                client = Client(self.world.servers, client_id="admin", **OPTIONS)
                await client.start()
                self._admin = client
            return self._admin

    async def heal(self) -> None:
        await super().heal()
        if self._admin is not None:
            await self.world.loop.create_task(self._admin.close(), context=self._party.context)

    def _place(self, chance: random.Random, *, moving: bool | None = None) -> Place | None:
        found = [
            place
            for place in places(self.world.keeper.tree)
            if not place.topic.startswith("__") and (moving is None or place.is_moving is moving)
        ]
        return chance.choice(found) if found else None

    async def _move(self, place: Place | None, chance: random.Random, what: str) -> None:
        if place is None:
            return
        least = 1 if place.topic in self.world.single else 3
        count = chance.randint(least, max(least, min(3, len(self.world.nodes))))
        wanted = chance.sample(sorted(self.world.nodes), count)
        self.tell(f"{what} {place.topic}-{place.partition} from {list(place.replicas)} to {wanted}")
        at = TopicPartition(place.topic, place.partition)
        await self._ask(lambda client: client.admin.reassign_partitions({at: wanted}))

    async def _reassign(self, chance: random.Random) -> None:
        await self._move(self._place(chance), chance, "move")

    async def _redirect(self, chance: random.Random) -> None:
        await self._move(self._place(chance, moving=True), chance, "redirect")

    async def _cancel(self, chance: random.Random) -> None:
        place = self._place(chance, moving=True)
        if place is not None:
            self.tell(f"cancel the move of {place.topic}-{place.partition}")
            at = TopicPartition(place.topic, place.partition)
            await self._ask(lambda client: client.admin.reassign_partitions({at: None}))

    async def _elect(self, chance: random.Random) -> None:
        place = self._place(chance)
        if place is not None:
            self.tell(f"elect the preferred leader of {place.topic}-{place.partition}")
            at = TopicPartition(place.topic, place.partition)
            await self._ask(lambda client: client.admin.elect_leaders([at]))

    async def _drain(self, chance: random.Random) -> None:
        """Move all partitions of a node elsewhere."""
        node = self._node(chance)
        others = sorted(each for each in self.world.nodes if each != node.id)
        targets = {}
        for place in places(self.world.keeper.tree):
            if node.id in place.replicas and not place.topic.startswith("__"):
                free = [each for each in others if each not in place.replicas]
                kept = [each for each in place.replicas if each != node.id]
                if free:
                    targets[TopicPartition(place.topic, place.partition)] = [*kept, chance.choice(free)]
        if targets:
            self.tell(f"drain node {node.id}")
            await self._ask(lambda client: client.admin.reassign_partitions(targets))

    async def _delete_records(self, chance: random.Random) -> None:
        told = self.world.cut_topic
        if told is None:
            return
        partition = chance.randrange(told.partitions)
        offsets = [offset for sent, offset in told.acknowledged if sent.partition == partition]
        if not offsets:
            return
        at, before = TopicPartition(told.topic, partition), chance.choice(offsets)
        told.cut_below[partition] = max(told.cut_below.get(partition, 0), before)
        self.tell(f"delete the records of {at} below {before}")
        answer = await self._ask(lambda client: client.admin.delete_records({at: before}))
        if answer is not None and isinstance(answer[at], int):
            self.tell(f"the records of {at} below {answer[at]} are deleted")
            told.is_cut_below[partition] = max(told.is_cut_below.get(partition, 0), answer[at])

    async def _recreate(self, chance: random.Random) -> None:
        churn = self.world.churn
        if churn is None or churn.is_changing:
            return
        churn.is_changing = True
        self.tell(f"delete and create topic {churn.told.topic}")
        try:
            await self._ask(lambda client: churn.recreate(client, chance))
        finally:
            churn.is_changing = False

    async def _configure(self, chance: random.Random) -> None:
        place = self._place(chance)
        if place is None:
            return
        name, values = chance.choice((("retention.bytes", ("20000", "-1")), ("flush.ms", ("100", "5000"))))
        value = chance.choice(values)
        if name == "retention.bytes" and self.world.cut_topic is not None and place.topic == self.world.cut_topic.topic:
            self.world.cut_topic.may_expire = True
        elif name == "retention.bytes":
            return
        self.tell(f"set {name}={value} of {place.topic}")
        resource = ConfigResource.topic(place.topic)
        await self._ask(lambda client: client.admin.alter_configs(resource, {name: value}))

    async def _grow(self, chance: random.Random) -> None:
        place = self._place(chance)
        if place is not None:
            count = sum(each.topic == place.topic for each in places(self.world.keeper.tree)) + 1
            self.tell(f"let {place.topic} have {count} partitions")
            await self._ask(lambda client: client.admin.create_partitions(place.topic, count))
