"""Faults by seed: a list of faults with their times."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final

from ottla.cluster.nodes import CONTROLLER, read_controller

from .catalog import HOST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .cluster import SimNode, World
    from .placement import Damage
    from .plans import Plan

_MOST_STARTS: Final = 3
"""Timeout for a node to start at the end, without faults."""


class Faults:
    """Of processes, links and the catalog; see `disk_faults` and `actions` for the others."""

    def __init__(self, world: World, planned: Plan, damage: Damage) -> None:
        self.world = world
        self.damage = damage
        self.plan = planned
        self.story: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy: dict[int, None] = {}
        self._is_rolling = False
        self._began_s = world.loop.now_s

    def tell(self, what: str) -> None:
        self.story.append(f"{self.world.loop.now_s - self._began_s:8.3f}  {what}")
        self.world.loop.note(what)

    async def run(self) -> None:
        for event in self.plan.events:
            wait_s = self._began_s + event.at_s - self.world.loop.now_s
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            task = asyncio.create_task(self._happen(event.kind, random.Random(event.seed)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _happen(self, kind: str, chance: random.Random) -> None:
        happen: Callable[[random.Random], Awaitable[None]] = getattr(self, f"_{kind}")
        await happen(chance)

    async def heal(self) -> None:
        self.tell("all is well again")
        self.world.network.heal_all()
        self.world.keeper.slow_s = self.world.loop.slow_threads = 0.0
        for node in self.world.nodes.values():
            node.errors.pop("", None)
            if node.is_alive:
                node.resume()
        starts = dict.fromkeys(self.world.nodes, 0)
        while len(self.world.running) < len(self.world.nodes):
            for node in self.world.nodes.values():
                if not node.is_alive:
                    if starts[node.id] == _MOST_STARTS:
                        return
                    starts[node.id] += 1
                    node.start()
            await asyncio.sleep(0.25)

    # Choosing

    def _node(self, chance: random.Random) -> SimNode:
        return chance.choice(list(self.world.nodes.values()))

    def _pair(self, chance: random.Random) -> tuple[SimNode, SimNode]:
        one, other = chance.sample(list(self.world.nodes.values()), 2)
        return one, other

    # Faults, each with its end

    async def _down(
        self,
        node: SimNode,
        chance: random.Random,
        how: str,
        *,
        power: bool,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        if node.id in self._busy or not node.is_alive:
            return
        self._busy[node.id] = None
        for_s = chance.choice((0.03, 0.25, 1.0, 4.0)) * chance.uniform(0.5, 1.5)
        lost = node.crash(with_machine=power and chance.random() < 0.5, loses_unsynced=power)
        self.tell(f"{how} node {node.id} for {for_s:.2f} s" + (f", {lost} writes are gone" if lost else ""))
        meanwhile()
        await asyncio.sleep(for_s)
        del self._busy[node.id]
        node.start()
        self.tell(f"start node {node.id}")

    async def _kill(self, chance: random.Random) -> None:
        await self._down(self._node(chance), chance, "kill", power=False)

    async def _power(self, chance: random.Random) -> None:
        if self.plan.flush == "ack":
            await self._down(self._node(chance), chance, "cut the power of", power=True)

    async def _power_unsynced(self, chance: random.Random) -> None:
        """Unsynced data is safe only if it is on several disks."""
        node = self._node(chance)
        if node.id not in self._busy and node.is_alive and self.damage.may_hit(node.id):
            self.damage.hit(node.id)
            await self._down(node, chance, "cut the power of", power=True)

    async def _strand(self, chance: random.Random) -> None:
        """Isolate a node, then kill it: only it has its last writes."""
        node = self._node(chance)
        if node.id in self._busy or not node.is_up:
            return
        self.tell(f"strand node {node.id}")
        links = [(node.host, each.host) for each in self.world.nodes.values() if each is not node]
        for link in links:
            self.world.network.cut(*link)
        await asyncio.sleep(chance.choice((0.1, 0.4, 1.0)) * chance.uniform(0.5, 1.5))
        await self._down(node, chance, "kill", power=self.plan.flush == "ack" and chance.random() < 0.5)
        for link in links:
            self.world.network.heal(*link)

    async def _stop(self, chance: random.Random) -> None:
        await self._restart(self._node(chance), chance.uniform(0, 1))

    async def _restart(self, node: SimNode, after_s: float) -> None:
        if node.id in self._busy or not node.is_up:
            return
        self._busy[node.id] = None
        self.tell(f"stop node {node.id}")
        await node.stop()
        await asyncio.sleep(after_s)
        del self._busy[node.id]
        if not node.is_alive:
            node.start()
            self.tell(f"start node {node.id}")

    async def _pause(self, chance: random.Random) -> None:
        node = self._node(chance)
        if node.id in self._busy or not node.is_alive:
            return
        self._busy[node.id] = None
        for_s = chance.choice((0.1, 0.5, 2.0, 4.5)) * chance.uniform(0.5, 1.5)
        self.tell(f"pause node {node.id} for {for_s:.2f} s")
        node.pause()
        await asyncio.sleep(for_s)
        del self._busy[node.id]
        node.resume()
        self.tell(f"node {node.id} goes on")

    async def _cut_links(self, links: list[tuple[str, str]], chance: random.Random, what: str) -> None:
        network = self.world.network
        for_s = chance.choice((0.15, 1.0, 3.0)) * chance.uniform(0.5, 1.5)
        self.tell(f"cut {what} for {for_s:.2f} s")
        for link in links:
            network.cut(*link)
        await asyncio.sleep(for_s)
        for link in links:
            network.heal(*link)

    async def _cut(self, chance: random.Random) -> None:
        one, other = self._pair(chance)
        links = [(one.host, other.host), (other.host, one.host)]
        await self._cut_links(links, chance, f"{one.id} <-> {other.id}")

    async def _cut_one_way(self, chance: random.Random) -> None:
        one, other = self._pair(chance)
        await self._cut_links([(one.host, other.host)], chance, f"{one.id} -> {other.id}")

    async def _isolate(self, chance: random.Random) -> None:
        """From all other nodes, not from the catalog."""
        node = self._node(chance)
        others = [each.host for each in self.world.nodes.values() if each is not node]
        links = [(node.host, other) for other in others] + [(other, node.host) for other in others]
        await self._cut_links(links, chance, f"{node.id} from all nodes")

    async def _cut_catalog(self, chance: random.Random) -> None:
        node = self._node(chance)
        links = [[(node.host, HOST)], [(HOST, node.host)], [(node.host, HOST), (HOST, node.host)]]
        await self._cut_links(chance.choice(links), chance, f"{node.id} from the catalog")

    async def _expire(self, chance: random.Random) -> None:
        node = self._node(chance)
        if node.store is not None and node.is_alive:
            self.tell(f"end the session of node {node.id}")
            self.world.keeper.end(node.store.session_id)

    async def _break_catalog(self, chance: random.Random) -> None:
        node = self._node(chance)
        if node.store is not None and node.is_alive:
            self.tell(f"break the connection of node {node.id} to the catalog")
            node.party.context.copy().run(node.store.break_off)

    async def _reset(self, chance: random.Random) -> None:
        one, other = self._pair(chance)
        self.tell(f"reset {one.id} -> {other.id}")
        self.world.network.reset_some(one.host, other.host)

    async def _slow(self, chance: random.Random) -> None:
        one, other = self._pair(chance)
        for_s, slow_s = chance.uniform(0.25, 3), chance.choice((0.03, 0.15, 0.8))
        self.tell(f"slow {one.id} -> {other.id} by {slow_s} s for {for_s:.2f} s")
        link = self.world.network.link(one.host, other.host)
        link.slow_s = slow_s
        await asyncio.sleep(for_s)
        link.slow_s = 0.0

    async def _slow_catalog(self, chance: random.Random) -> None:
        for_s, slow_s = chance.uniform(0.25, 2.5), chance.choice((0.03, 0.15, 0.5))
        self.tell(f"slow the catalog by {slow_s} s for {for_s:.2f} s")
        self.world.keeper.slow_s = slow_s
        await asyncio.sleep(for_s)
        self.world.keeper.slow_s = 0.0

    async def _slow_threads(self, chance: random.Random) -> None:
        for_s, slow_s = chance.uniform(0.25, 2.5), chance.choice((0.01, 0.1, 0.5))
        self.tell(f"slow threads and disks by {slow_s} s for {for_s:.2f} s")
        self.world.loop.slow_threads = slow_s
        await asyncio.sleep(for_s)
        self.world.loop.slow_threads = 0.0

    async def _clock(self, chance: random.Random) -> None:
        node = self._node(chance)
        jump_ms = chance.choice((-600_000, -5_000, 3_000, 600_000))
        self.tell(f"the wall clock of node {node.id} jumps by {jump_ms} ms")
        node.party.wall_offset_ms += jump_ms

    async def _drift(self, chance: random.Random) -> None:
        """The wall clock of a node runs fast or slow, also after a restart."""
        node = self._node(chance)
        node.drift = chance.choice((-0.3, -0.01, 0.01, 0.3))
        self.tell(f"the wall clock of node {node.id} drifts by {node.drift:.0%}")
        node.party.drift, node.party.began_s = node.drift, self.world.loop.now_s

    async def _controller(self, chance: random.Random) -> None:
        """Another node has to be the controller."""
        known = self.world.keeper.tree.get(CONTROLLER)
        node = None if known is None else self.world.nodes.get(read_controller(known.data))
        if node is None or node.store is None or not node.is_alive:
            return
        if chance.random() < 0.5:
            await self._down(node, chance, "kill the controller,", power=False)
        else:
            self.tell(f"end the session of the controller, node {node.id}")
            self.world.keeper.end(node.store.session_id)

    async def _roll(self, chance: random.Random) -> None:
        """Restart one node after the other, each once the one before is up again."""
        if self._is_rolling:
            return
        self._is_rolling = True
        self.tell("restart all nodes, one after the other")
        for node in chance.sample(list(self.world.nodes.values()), len(self.world.nodes)):
            await self._restart(node, 0.0)
            for _ in range(40):
                if node.is_up:
                    break
                await asyncio.sleep(0.1)
        self._is_rolling = False

    async def _breathe(self, chance: random.Random) -> None:
        """A pause without new faults."""
