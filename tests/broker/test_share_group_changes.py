"""Changes of a share group that wait for other nodes, and members that join meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.cluster.test_replication import in_loop

from ottla.broker.broker import Broker
from ottla.broker.config import BrokerConfig
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode, NonEmptyGroup
from ottla.net.config import NetConfig
from ottla.share.group import Caller
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

TURNS = 50
"""Turns of the event loop: more than a heartbeat takes that does not wait."""


@asynccontextmanager
async def broker_of(folder: Path) -> AsyncIterator[Broker]:
    broker = Broker(Settings(broker=BrokerConfig(data_dir=folder), net=NetConfig(port=0)))
    await broker.start()
    broker.topics.create("t", 1)
    try:
        yield broker
    finally:
        await broker.stop()


async def beat(broker: Broker, member: str, epoch: int = 0) -> int:
    names = ("t",) if epoch == 0 else None
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id=member, member_epoch=epoch, rack_id=None, subscribed_topic_names=names
    )
    answer = await broker.share.heartbeat(request, Caller("client", "host"))
    return answer.error_code


class Held:
    """A call that waits, as for another node, while a member joins."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker = broker
        self._really: Callable[..., Awaitable[Any]] = getattr(broker.share.states, name)
        self.joining: asyncio.Task[int] | None = None
        setattr(broker.share.states, name, self._call)

    async def _call(self, *args: Any) -> Any:
        self.joining = asyncio.create_task(beat(self._broker, "late"))
        for _ in range(TURNS):
            await asyncio.sleep(0)
        return await self._really(*args)

    async def joined(self) -> int:
        assert self.joining is not None
        return await self.joining


async def empty_group(broker: Broker) -> None:
    assert await beat(broker, "first") == ErrorCode.NONE
    assert await beat(broker, "first", -1) == ErrorCode.NONE


@in_loop
async def test_a_member_that_joins_while_the_group_is_deleted_is_in_the_next_one(tmp_path: Path) -> None:
    async with broker_of(tmp_path) as broker:
        await empty_group(broker)
        held = Held(broker, "forget")

        assert await broker.share.delete("g") == ErrorCode.NONE
        assert await held.joined() == ErrorCode.NONE

        group = broker.share.groups.get("g")
        assert group is not None
        assert set(group.members) == {"late"}


@in_loop
async def test_offsets_are_altered_before_a_member_joins_or_not_at_all(tmp_path: Path) -> None:
    async with broker_of(tmp_path) as broker:
        await empty_group(broker)
        held = Held(broker, "move")

        await broker.share.move("g", "t", 0, 0)
        assert held.joining is not None
        assert not held.joining.done()
        assert await held.joined() == ErrorCode.NONE
        with pytest.raises(NonEmptyGroup):
            await broker.share.move("g", "t", 0, 0)


@in_loop
async def test_a_member_that_joins_while_offsets_are_deleted_stays(tmp_path: Path) -> None:
    async with broker_of(tmp_path) as broker:
        await empty_group(broker)
        held = Held(broker, "forget")

        await broker.share.forget_topic("g", broker.topics.by_name["t"].raw_id)
        assert await held.joined() == ErrorCode.NONE

        group = broker.share.groups.get("g")
        assert group is not None
        assert set(group.members) == {"late"}
        assert group.initialized
