"""The controller task: takes part in the controller election, and makes decisions after changes."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.cluster.catalog_nodes import UNCLEAN_ELECTION
from ottla.cluster.controller import Controller, Deposed
from ottla.cluster.decisions import Task, all_steps, rebalanced
from ottla.cluster.operations import Disconnected
from ottla.cluster.state import NO_NODE
from ottla.storage.catalog.entries import ConfigResource, ConfigScope

if TYPE_CHECKING:
    from ottla.cluster.connecting import Connected
    from ottla.cluster.node import JoinedCluster
    from ottla.cluster.state import PartitionKey, ViewChange
    from ottla.core.ids import TopicId

_logger: Final = logging.getLogger(__name__)

_ALL_BROKERS: Final = ConfigResource(ConfigScope.BROKER, "")


class Control:
    def __init__(self, cluster: JoinedCluster, connected: Connected) -> None:
        self._cluster = cluster
        self._connected = connected
        self._controller: Controller | None = None
        self._wake = asyncio.Event()
        self._partitions: set[PartitionKey] = set()
        self._topics: set[TopicId] = set()
        self._is_all_touched = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_controller(self) -> bool:
        return self._controller is not None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._run())]
        if self._cluster.config.leader_rebalance_interval_ms > 0:
            self._tasks.append(loop.create_task(self._rebalance_periodically()))
        self._wake.set()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        controller, self._controller = self._controller, None
        if controller is not None and not self._cluster.is_fenced:
            try:
                await self._cluster.work(controller.resign)
            except Disconnected:
                _logger.info("could not resign as controller; the end of the session will")

    def noticed(self, change: ViewChange) -> None:
        before, after = change.before, change.after
        self._partitions |= change.partitions
        self._topics |= self._cluster.knowledge.new_topics
        if before.brokers != after.brokers:
            self._is_all_touched = True
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._cluster.is_fenced:
                await self._look_again_soon()
                continue
            try:
                await self._turn()
            except Deposed:
                _logger.warning("no longer the controller: another node was elected")
                self._controller = None
                self._wake.set()
            except Disconnected as lost:
                _logger.warning("the controller is waiting for the catalog: %s", lost)
                self._is_all_touched = True
                await self._look_again_soon()

    async def _look_again_soon(self) -> None:
        await asyncio.sleep(self._connected.store.timeout_s / 10)
        self._wake.set()

    async def _turn(self) -> None:
        controller_id = self._cluster.view.controller_id
        if controller_id != self._cluster.node_id:
            self._controller = None
        if self._controller is None:
            if controller_id not in (NO_NODE, self._cluster.node_id):
                return
            store, mirror, node_id = self._connected.store, self._connected.mirror, self._cluster.node_id
            self._controller = await self._cluster.work(lambda: Controller.elect(store, mirror, node_id))
            self._is_all_touched = True
        controller = self._controller
        if controller is None:
            return
        task = self._take_task()

        def decide_and_do() -> None:
            if wanted := all_steps(task):
                controller.carry_out(wanted)

        await self._cluster.work(decide_and_do)

    def _take_task(self) -> Task:
        knowledge = self._cluster.knowledge
        is_all = self._is_all_touched
        task = Task(
            knowledge.view,
            dict(knowledge.topics),
            frozenset(knowledge.orphans),
            None if is_all else frozenset(self._partitions),
            None if is_all else frozenset(self._topics),
            self._allows_unclean(),
        )
        self._is_all_touched = False
        self._partitions.clear()
        self._topics.clear()
        return task

    def _allows_unclean(self) -> bool:
        held = self._connected.catalog.view.configs.get(_ALL_BROKERS)
        return held is not None and held.configs.get(UNCLEAN_ELECTION) == "true"

    async def _rebalance_periodically(self) -> None:
        while True:
            await asyncio.sleep(self._cluster.config.leader_rebalance_interval_ms / 1000)
            controller = self._controller
            if controller is None or self._cluster.is_fenced:
                continue
            wanted = rebalanced(self._cluster.view)
            try:
                await self._cluster.work(lambda: controller.carry_out(wanted))  # noqa: B023 - awaited at once
            except (Deposed, Disconnected) as failed:
                _logger.info("could not elect preferred leaders: %r", failed)
