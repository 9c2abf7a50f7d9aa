"""One history: a cluster, its work and its faults, and what must not have come of them."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.cluster.checking.checker import violations

from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.cluster.nodes import PARTITIONS, from_json
from ottla.storage.config import LogConfig

from .catalog import Keeper
from .cluster import SimNode, World, quick_settings
from .edges import EDGES
from .faults import Faults
from .loop import SimLoop, Stuck
from .network import Network
from .work import OPTIONS, Job, Reader, Told, Writer, read_all

if TYPE_CHECKING:
    from pathlib import Path

    from .faults import Plan

_SESSION_S = 4.0


@dataclass
class Outcome:
    seed: int
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
        self.network = Network(chance)
        self.loop = self.network.loop = SimLoop(chance, self.network)
        EDGES.now_s = lambda: self.loop.now_s
        self.world = World(self.loop, self.network, Keeper(self.loop, _SESSION_S), chance, root)
        self.world.settings = quick_settings(LogConfig(flush=plan.flush, segment_bytes=16 * 1024), 2)  # type: ignore[arg-type]
        self.faults = Faults(self.world, plan)
        self.found: list[str] = []
        self.told: list[Told] = []
        self._leaders: dict[tuple[str, int], int] = {}
        self.world.keeper.commits.append(self._watch_leaders)

    def run(self) -> Outcome:
        self.loop.set_exception_handler(self._unhandled)
        try:
            self.loop.run_until_complete(self._live())
        except Stuck as stuck:
            self.found.append(f"stuck: {stuck}")
        return Outcome(
            self.plan.seed,
            self.found,
            self.faults.story,
            self.loop.trace,
            self.loop.now_s - 1000.0,
            self.loop.callbacks,
            sum(len(told.acknowledged) for told in self.told),
            len(self.plan.events),
        )

    async def _live(self) -> None:
        world = self.world
        for node_id in range(1, self.plan.nodes + 1):
            world.nodes[node_id] = SimNode(world, node_id)
        for node in world.nodes.values():
            node.start()
        await self._until(lambda: all(node.is_up for node in world.nodes.values()), 30, "all nodes are up")
        boss = world.party("boss", "10.0.1.1")
        jobs = await self._as(boss, self._prepare())
        for job in jobs:
            job.start()
        await self.faults.run()
        await self.faults.heal()
        await self._as(boss, self._settle(jobs))

    async def _as(self, party, what):  # noqa: ANN001, ANN202
        return await self.loop.create_task(what, context=party.context)

    async def _until(self, holds, for_s: float, what: str) -> bool:  # noqa: ANN001
        until_s = self.loop.now_s + for_s
        while not holds():
            if self.loop.now_s > until_s:
                self.found.append(f"not within {for_s} s: {what}")
                return False
            await asyncio.sleep(0.1)
        return True

    async def _prepare(self) -> list[Job]:
        world = self.world
        await asyncio.sleep(1)
        told = Told("t", 2)
        self.told.append(told)
        async with Client(world.servers, client_id="boss", **OPTIONS) as client:
            await client.admin.create_topic(
                told.topic, partitions=told.partitions, replication_factor=3, configs={"min.insync.replicas": "2"}
            )
        return [
            Writer(world, "w1", "10.0.1.2", told, 0.08),
            Writer(world, "w2", "10.0.1.3", told, 0.15),
            Reader(world, "r1", "10.0.1.4", told),
        ]

    async def _settle(self, jobs: list[Job]) -> None:
        calm_s = self.plan.calm_s
        for node in self.world.nodes.values():
            if node.problem:
                self.found.append(f"node {node.id}: {node.problem}")
        await self._until(lambda: len(self.world.running) == len(self.world.nodes), calm_s, "all nodes are up")
        await self._until(lambda: not self._not_in_sync(), calm_s, "all replicas are in sync")
        if self._not_in_sync():
            self.found.append(f"not in sync: {self._not_in_sync()}")
        await asyncio.sleep(2)
        for job in jobs:
            job.end()
        tasks = [job.task for job in jobs if job.task is not None]
        _, late = await asyncio.wait(tasks, timeout=calm_s)
        if late:
            self.found.append(f"clients did not come to an end: {[job.name for job in jobs if job.task in late]}")
        for job in jobs:
            if job.task is not None and job.task.done() and job.task.exception() is not None:
                self.found.append(f"{job.name} failed: {job.task.exception()!r}")
        for told in self.told:
            try:
                async with asyncio.timeout(calm_s):
                    logs = await read_all(self.world, told)
            except (TimeoutError, ClientError) as failed:
                self.found.append(f"{told.topic} cannot be read: {failed!r}")
                continue
            self.found += violations(told, logs)  # type: ignore[arg-type]

    def _partition_states(self):  # noqa: ANN202
        tree = self.world.keeper.tree
        for topic_id in tree.children(PARTITIONS) or ():
            for index in tree.children(f"{PARTITIONS}/{topic_id}") or ():
                path = f"{PARTITIONS}/{topic_id}/{index}"
                yield path, from_json(tree.get(path).data)

    def _not_in_sync(self) -> list[str]:
        up = {node.id for node in self.world.running}
        return [
            f"{path} {state}"
            for path, state in self._partition_states()
            if state["leader"] not in up or sorted(state["isr"]) != sorted(state["replicas"])
        ]

    def _watch_leaders(self, _at_s: float, operations) -> None:  # noqa: ANN001
        for operation in operations:
            data = getattr(operation, "data", b"")
            if operation.path.startswith(PARTITIONS + "/") and data:
                state = from_json(data)
                key = operation.path, state["leader_epoch"]
                if state["leader"] >= 0:
                    known = self._leaders.setdefault(key, state["leader"])
                    if known != state["leader"]:
                        self.found.append(f"two leaders: {known} and {state['leader']} of {key}")

    def _unhandled(self, _loop, context) -> None:  # noqa: ANN001
        error = context.get("exception")
        self.found.append(f"unhandled: {context['message']}: {error!r}")
