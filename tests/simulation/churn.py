"""A topic that is deleted and re-created, with a writer for each incarnation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ottla.client.errors import BrokerError, ClientError
from ottla.core.errors import ErrorCode

from .work import Told, Writer

if TYPE_CHECKING:
    import random

    from ottla.client.client import Client

    from .cluster import World

_TOPIC = "churn"


class Churn:
    def __init__(self, world: World) -> None:
        self.is_changing = False
        self.told = Told(_TOPIC, 1)
        self.is_there = False
        self._world = world
        self._lives = 0
        self._writer: Writer | None = None

    async def create(self, client: Client) -> None:
        await client.admin.create_topic(
            _TOPIC, partitions=1, replication_factor=3, configs={"min.insync.replicas": "2"}
        )
        self._begin()

    def _begin(self) -> None:
        self.is_there = True
        self._lives += 1
        self.told = Told(_TOPIC, 1)
        self._writer = Writer(self._world, f"churn{self._lives}", "10.0.1.5", self.told, 0.2)
        self._writer.start()

    async def end(self) -> None:
        if self._writer is not None and self._writer.task is not None:
            self._writer.end()
            await asyncio.wait([self._writer.task], timeout=60)
            self._writer = None

    async def recreate(self, client: Client, chance: random.Random) -> None:
        """Without a response it is unknown when the request takes effect."""
        self.told.is_uncertain = True
        await self.end()
        self.is_there = False
        is_certain = await _until_done(lambda: client.admin.delete_topic(_TOPIC), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        await asyncio.sleep(chance.choice((0, 0, 1)))
        configs = {"min.insync.replicas": "2"}
        is_certain &= await _until_done(
            lambda: client.admin.create_topic(_TOPIC, partitions=1, replication_factor=3, configs=configs),
            ErrorCode.TOPIC_ALREADY_EXISTS,
        )
        self._begin()
        self.told.is_uncertain = not is_certain


async def _until_done(ask: Any, done: ErrorCode) -> bool:
    """Whether each question was answered."""
    is_certain = True
    for _ in range(20):
        try:
            await ask()
        except BrokerError as refused:
            if refused.code is done:
                return is_certain
            is_certain = False
        except ClientError:
            is_certain = False
        else:
            return is_certain
        await asyncio.sleep(0.25)
    return False
