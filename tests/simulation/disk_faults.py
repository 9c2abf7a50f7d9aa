"""Disk faults: wiped, replaced by an older copy, full, failing in one folder, or a flipped bit."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

from .faults import Faults
from .placement import places

if TYPE_CHECKING:
    import random


class DiskFaults(Faults):
    async def _wipe(self, chance: random.Random) -> None:
        """The node comes back with an empty disk."""
        node = self._node(chance)
        is_last = self.damage.is_last_somewhere(node.id)
        if node.id in self._busy or not node.is_alive or not (self.damage.may_hit(node.id) or is_last):
            return
        self.damage.hit(node.id)
        await self._down(node, chance, "wipe", power=False, meanwhile=node.disk.wipe)

    async def _older_disk(self, chance: random.Random) -> None:
        """Replace the disk by an older copy, as from a backup of a crashed node."""
        node = self._node(chance)
        if node.id in self._busy or not node.is_alive:
            return
        kept = str(self.world.root / f"kept-{node.id}-{chance.getrandbits(32)}")
        self.tell(f"copy the disk of node {node.id}")
        node.disk.save(kept)
        await asyncio.sleep(chance.uniform(0.5, 4))
        if node.id in self._busy or not node.is_alive or not self.damage.may_hit(node.id):
            return
        self.damage.hit(node.id)
        await self._down(node, chance, "bring an older disk to", power=False, meanwhile=lambda: node.disk.restore(kept))

    async def _broken_folder(self, chance: random.Random) -> None:
        """One partition of a node fails with EIO, for a while or forever."""
        node = self._node(chance)
        held = [place for place in places(self.world.keeper.tree) if node.id in place.replicas]
        if not held or self.damage.broken:
            return
        place = chance.choice(held)
        if len(place.isr) < 2 or not self.damage.may_hit(node.id):
            return
        self.damage.hit(node.id)
        self.damage.broken.add((*place.at, node.id))
        self.tell(f"the folder of {place.topic}-{place.partition} at node {node.id} fails")
        folder = f"{place.topic}-{place.partition}/"
        node.errors[folder] = errno.EIO
        for_s = chance.uniform(0.2, 8)
        if chance.random() < 0.6:
            await asyncio.sleep(for_s)
            node.errors.pop(folder, None)
            self.damage.broken.discard((*place.at, node.id))
            self.tell(f"the folder of {place.topic}-{place.partition} at node {node.id} works again")

    async def _full_disk(self, chance: random.Random) -> None:
        node = self._node(chance)
        if "" in node.errors:
            return
        for_s = chance.uniform(0.25, 3)
        self.tell(f"the disk of node {node.id} is full for {for_s:.2f} s")
        node.errors[""] = errno.ENOSPC
        await asyncio.sleep(for_s)
        node.errors.pop("", None)

    async def _rot(self, chance: random.Random) -> None:
        """Flip a bit of a log. Readers must not see it, and the disk is replaced at the end."""
        node = self._node(chance)
        if not node.is_alive or node.id in self._busy or not self.damage.may_hit(node.id):
            return
        flipped = node.disk.flip_a_bit(lambda path: path.endswith(".log"))
        if flipped is None:
            return
        self.damage.hit(node.id)
        self.damage.rotten.add(node.id)
        self.tell(f"flip a bit of {flipped} of node {node.id}")
        await asyncio.sleep(chance.uniform(0.5, 6))
        if node.id not in self._busy and node.is_alive:
            self.damage.hit(node.id)
            self.damage.rotten.discard(node.id)
            await self._down(node, chance, "replace the disk of", power=False, meanwhile=node.disk.wipe)

    async def heal(self) -> None:
        await super().heal()
        for node_id in sorted(self.damage.rotten):
            node = self.world.nodes[node_id]
            self.tell(f"replace the disk of node {node_id}")
            node.crash()
            node.disk.wipe()
            node.start()
        self.damage.rotten.clear()
