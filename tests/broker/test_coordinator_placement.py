"""A node coordinates the partitions of an internal topic that it leads, once it has loaded them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.cluster.making import TOPIC, brokers, partition

from ottla.broker.coordinators.placement import CoordinatorPlacement
from ottla.cluster.state import ClusterView, ViewChange
from ottla.core.errors import ErrorCode, NotLeaderOrFollower

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.cluster.state import ViewListener

ME = 1
INTERNAL = "t"


class World:
    """One partition of an internal topic: its leader, and whether this node has loaded it."""

    def __init__(self) -> None:
        self.node_id = ME
        self.is_fenced = False
        self.view = ClusterView(brokers(1, 2))
        self.may_load = asyncio.Event()
        self.events: list[str] = []
        self._listeners: list[Callable[[ViewChange], None]] = []
        topic = SimpleNamespace(entry=SimpleNamespace(id=TOPIC), partitions=["the partition"])
        topics = SimpleNamespace(by_name={INTERNAL: topic}, partition=lambda *_: "the partition")
        broker: Any = SimpleNamespace(topics=topics)
        cluster: Any = self
        self.placement = CoordinatorPlacement(broker, cluster, INTERNAL, self)
        self.placement.start()

    def listen(self, listener: ViewListener) -> None:
        self._listeners.append(listener)

    async def led_by(self, leader: int, epoch: int) -> ErrorCode:
        """The coordinated partitions once all pending work is done."""
        state = partition((1, 2), leader=leader, leader_epoch=epoch)
        before, self.view = self.view, self.view.with_partitions({state.key: state})
        for listener in self._listeners:
            listener(ViewChange(before, self.view, frozenset({state.key})))
        for _ in range(5):
            await asyncio.sleep(0)
        return self.placement.error_for("name")

    async def load(self, _partition: object) -> None:
        self.events.append("load")
        await self.may_load.wait()
        self.events.append("loaded")

    def unload(self, index: int) -> None:
        self.events.append(f"unload {index}")


def test_a_led_partition_is_loaded_first_and_unloaded_when_another_node_leads() -> None:
    async def scenario() -> None:
        world = World()
        assert await world.led_by(2, 0) is ErrorCode.NOT_COORDINATOR
        assert await world.led_by(ME, 1) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        world.may_load.set()
        assert await world.led_by(ME, 1) is ErrorCode.NONE
        assert await world.led_by(2, 2) is ErrorCode.NOT_COORDINATOR
        assert world.events == ["load", "loaded", "unload 0"]

    asyncio.run(scenario())


def test_a_partition_led_in_a_later_epoch_is_reloaded() -> None:
    async def scenario() -> None:
        world = World()
        world.may_load.set()
        await world.led_by(ME, 0)
        assert await world.led_by(ME, 2) is ErrorCode.NONE
        assert world.events == ["load", "loaded", "unload 0", "load", "loaded"]

    asyncio.run(scenario())


def test_leadership_lost_and_regained_during_loading_loads_again() -> None:
    async def scenario() -> None:
        world = World()
        await world.led_by(ME, 0)
        lost = world.led_by(2, 1)
        won = world.led_by(ME, 2)
        world.may_load.set()
        await asyncio.gather(lost, won)
        assert world.placement.error_for("name") is ErrorCode.NONE
        assert world.events[-2:] == ["load", "loaded"]

    asyncio.run(scenario())


def test_a_fenced_node_coordinates_nothing() -> None:
    async def scenario() -> None:
        world = World()
        world.may_load.set()
        assert await world.led_by(ME, 0) is ErrorCode.NONE
        world.is_fenced = True
        assert world.placement.error_for("name") is ErrorCode.COORDINATOR_NOT_AVAILABLE

    asyncio.run(scenario())


def test_a_partition_that_cannot_be_loaded_is_not_coordinated() -> None:
    async def scenario() -> None:
        world = World()

        async def refuse(_partition: object) -> None:
            raise NotLeaderOrFollower("not yet")

        world.load = refuse  # type: ignore[method-assign]
        assert await world.led_by(ME, 0) is ErrorCode.NOT_COORDINATOR
        world.placement.stop()

    asyncio.run(scenario())
