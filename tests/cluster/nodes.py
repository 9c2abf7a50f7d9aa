"""Nodes of a cluster without brokers around them, in the test's own event loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ottla.cluster.config import ClusterConfig
from ottla.cluster.connecting import connect
from ottla.cluster.node import JoinedCluster
from ottla.core.ids import Address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ottla.cluster.catalog import SharedCatalog

_PATIENCE_S = 20


class TestNode:
    """A node, and the short ways to it that these tests need."""

    __test__ = False

    def __init__(self, zookeeper: str, node_id: int, *, rack: str = "", session_timeout_ms: int = 6000) -> None:
        config = ClusterConfig(zookeeper=zookeeper, rack=rack, session_timeout_ms=session_timeout_ms)
        self.connected = connect(config)
        self.cluster = JoinedCluster(self.connected, config, node_id, f"folder-{node_id}")
        self.changed = asyncio.Event()
        self.cluster.listen(lambda _: self.changed.set())

    @property
    def catalog(self) -> SharedCatalog:
        return self.connected.catalog

    async def start(self, *, may_lack_records: bool = False) -> None:
        listeners = {"PLAINTEXT": Address("127.0.0.1", 9000 + self.cluster.node_id)}
        await self.cluster.start(listeners, -1, may_lack_records=may_lack_records)

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for the view to show it."""
        async with asyncio.timeout(_PATIENCE_S):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    async def stop(self) -> None:
        await self.cluster.stop()
        self.cluster.close()

    async def die(self) -> None:
        """Be gone without a word: the session ends, and nothing was put in order before."""
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
