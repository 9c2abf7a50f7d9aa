"""Nodes of a cluster without brokers around them, in the test's own event loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ottla.cluster.config import ClusterConfig
from ottla.cluster.connecting import connect
from ottla.cluster.node import JoinedCluster
from ottla.cluster.state import NO_LOSSES
from ottla.core.ids import Address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ottla.cluster.catalog import SharedCatalog
    from ottla.cluster.state import Losses

_PATIENCE_S = 20


class TestFolder:
    """The identity of a data folder, without the folder."""

    __test__ = False

    def __init__(self, folder_id: str, generation: int = 0, *, is_new: bool = False) -> None:
        self.id = folder_id
        self.generation = generation
        self.is_new = is_new
        self.is_on_same_machine = True
        self.is_copy = False

    def note_machine(self) -> None:
        self.is_on_same_machine = True

    def raise_generation(self, generation: int) -> bool:
        self.generation = generation
        return True

    def renew(self) -> None:
        self.id, self.is_new = f"{self.id}, renewed", True


class TestNode:
    """A node with shortcuts for these tests."""

    __test__ = False

    def __init__(
        self,
        zookeeper: str,
        node_id: int,
        *,
        rack: str = "",
        session_timeout_ms: int = 6000,
        folder: TestFolder | None = None,
    ) -> None:
        config = ClusterConfig(zookeeper=zookeeper, rack=rack, session_timeout_ms=session_timeout_ms)
        self.connected = connect(config)
        self.folder = TestFolder(f"folder-{node_id}") if folder is None else folder
        self.cluster = JoinedCluster(self.connected, config, node_id, self.folder)  # type: ignore[arg-type]
        self.changed = asyncio.Event()
        self.cluster.listen(lambda _: self.changed.set())

    @property
    def catalog(self) -> SharedCatalog:
        return self.connected.catalog

    async def start(self, losses: Losses = NO_LOSSES) -> None:
        listeners = {"PLAINTEXT": Address("127.0.0.1", 9000 + self.cluster.node_id)}
        await self.cluster.start(listeners, -1, losses)

    def epochs(self, *nodes: int) -> dict[int, int]:
        """The broker epochs that a leader has recently seen."""
        return {node: self.cluster.view.brokers[node].epoch for node in nodes}

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until the view fulfils the condition."""
        async with asyncio.timeout(_PATIENCE_S):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    async def stop(self) -> None:
        await self.cluster.stop()
        self.cluster.close()

    async def die(self) -> None:
        """Crash: the session ends without a clean shutdown."""
        for task in self.cluster.control._tasks:
            task.cancel()
        await self.cluster._session.stop()
        await asyncio.get_running_loop().run_in_executor(None, self.cluster.close)


@asynccontextmanager
async def cluster_of(zookeeper: str, count: int) -> AsyncIterator[list[TestNode]]:
    nodes = [TestNode(zookeeper, node_id) for node_id in range(1, count + 1)]
    for node in nodes:
        await node.start()
    await nodes[0].until(lambda: len(nodes[0].cluster.view.brokers) == count)
    try:
        yield nodes
    finally:
        for node in nodes:
            await node.stop()
