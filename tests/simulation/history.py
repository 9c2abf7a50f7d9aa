"""One history: a cluster, its load, its faults, and the final checks."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.storage.config import LogConfig

from .actions import Actions
from .catalog import Keeper
from .cluster import SimNode, World, quick_settings
from .edges import EDGES
from .loop import NeverEnds, SimLoop, Stuck
from .network import Network
from .placement import Damage, LeaderWatch, places
from .scenes import SCENES, Scene
from .work import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from .plans import Plan

T = TypeVar("T")

_SESSION_S: Final = 2.0
_ENDS_WITHIN_S: Final = 600.0
"""Of virtual time, after the last fault."""


@dataclass
class Outcome:
    seed: int
    profile: str
    violations: list[str]
    story: list[str]
    trace: int
    virtual_s: float
    callbacks: int
    acknowledged: int
    events: int


class HistoryRun:
    def __init__(self, plan: Plan, root: Path) -> None:
        self.plan = plan
        EDGES.chance = random.Random(plan.seed + 1)
        chance = random.Random(plan.seed + 2)
        network = Network(chance)
        self.loop = network.loop = SimLoop(chance, network)
        EDGES.now_s = lambda: self.loop.now_s
        self.world = World(self.loop, network, Keeper(self.loop, _SESSION_S), chance, root)
        scene = SCENES.get(plan.profile, Scene)
        log = LogConfig(flush=plan.flush, segment_bytes=scene.segment_bytes)  # type: ignore[arg-type]
        self.world.settings = quick_settings(log, 2)
        self.world.has_queues = scene.has_queues
        last_s = plan.events[-1].at_s if plan.events else 0.0
        self.loop.ends_by_s = self.loop.now_s + last_s + _ENDS_WITHIN_S
        self.damage = Damage(self.world.keeper.tree)
        self.faults = Actions(self.world, plan, self.damage)
        self.scene = scene(self.world, plan.seed + 3)
        self.found: list[str] = []
        self._leaders = LeaderWatch()
        self.world.keeper.commits.append(self._leaders.committed)

    def run(self) -> Outcome:
        self.loop.set_exception_handler(self._unhandled)
        try:
            self.loop.run_until_complete(self._live())
        except Stuck as stuck:
            self.found.append(f"stuck: {stuck}")
        except NeverEnds as running:
            self.found.append(f"never ends: {running}")
        return Outcome(
            self.plan.seed,
            self.plan.profile,
            [*self._leaders.found, *self.found],
            self.faults.story,
            self.loop.trace,
            self.loop.now_s - 1000.0,
            self.loop.callbacks,
            self.scene.acknowledged,
            len(self.plan.events),
        )

    async def _live(self) -> None:
        world = self.world
        for node_id in range(1, self.plan.nodes + 1):
            world.nodes[node_id] = SimNode(world, node_id)
        for node in world.nodes.values():
            node.start()
        await self._until(lambda: len(world.running) == len(world.nodes), 30, "all nodes are up")
        boss = world.party("boss", "10.0.1.1")
        await self._as_client(boss, self._prepare)
        await self.faults.run()
        await self.faults.heal()
        await self._as_client(boss, self._settle)

    async def _as_client(self, party: Any, what: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
        async def run() -> None:
            async with Client(self.world.servers, client_id="boss", **OPTIONS) as client:
                await what(client)

        try:
            await self.loop.create_task(run(), context=party.context)
        except (ClientError, TimeoutError) as failed:
            self.found.append(f"not available: {failed!r}")

    async def _until(self, holds: Callable[[], bool], for_s: float, what: str) -> None:
        until_s = self.loop.now_s + for_s
        while not holds():
            if self.loop.now_s > until_s:
                self.found.append(f"not within {for_s} s: {what}")
                return
            await asyncio.sleep(0.1)

    async def _prepare(self, client: Client) -> None:
        await asyncio.sleep(0.3)
        await self.scene.prepare(client)
        for job in self.scene.jobs:
            job.start()

    # The end

    async def _settle(self, client: Client) -> None:
        calm_s = self.plan.calm_s
        self.found += [f"node {node.id}: {node.problem}" for node in self.world.nodes.values() if node.problem]
        await self._until(lambda: len(self.world.running) == len(self.world.nodes), calm_s, "all nodes are up")
        await self._until(lambda: not self._not_in_sync(), calm_s, "all replicas are in sync")
        self.found += self._not_in_sync()
        await asyncio.sleep(0.5)
        await self._end_jobs(calm_s)
        lost = {place.at for place in places(self.world.keeper.tree) if self.damage.is_rightly_leaderless(place)}
        if not self.scene.jobs:
            return  # the cluster was never ready, as is noted already
        async with asyncio.timeout(calm_s):
            self.found += await self.scene.check(client, self.damage, lost)

    async def _end_jobs(self, calm_s: float) -> None:
        await self.scene.wind_down()
        for job in self.scene.jobs:
            job.end()
        await self.scene.end()
        tasks = [job.task for job in self.scene.jobs if job.task is not None]
        _, late = await asyncio.wait(tasks, timeout=calm_s) if tasks else (set(), set())
        for job in self.scene.jobs:
            self.found += job.problems
            if job.task in late:
                self.found.append(f"client {job.name} did not come to an end")
            elif job.task is not None and job.task.exception() is not None:
                self.found.append(f"client {job.name} failed: {job.task.exception()!r}")

    def _not_in_sync(self) -> list[str]:
        up = {node.id for node in self.world.running}
        found = []
        for place in places(self.world.keeper.tree):
            wanted = {node for node in place.replicas if (*place.at, node) not in self.damage.broken}
            # A reassignment to an unusable folder does not end.
            is_settled = not place.is_moving or len(wanted) < len(place.replicas)
            is_well = place.leader in up and wanted <= set(place.isr) and is_settled
            if not is_well and not self.damage.is_rightly_leaderless(place):
                found.append(f"not in sync: {place}")
        return found

    def _unhandled(self, _loop: Any, context: dict[str, Any]) -> None:
        self.found.append(f"unhandled: {context['message']}: {context.get('exception')!r}")
