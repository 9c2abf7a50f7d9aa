"""A cluster's catalog in memory, with conditional writes, and brokers around it in one event loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.broker.broker import Broker
from ottla.broker.config import BrokerConfig
from ottla.broker.settings import Settings
from ottla.client.config import ClientConfig
from ottla.client.opening import ConnectionSettings, open_connection
from ottla.cluster.election import given_up, settle, without
from ottla.cluster.replication.config import ReplicationConfig
from ottla.cluster.state import (
    NO_NODE,
    BrokerInfo,
    ClusterView,
    InvalidUpdateVersion,
    NotInSession,
    PartitionKey,
    PartitionState,
    ViewChange,
)
from ottla.core.errors import NotLeaderOrFollower
from ottla.core.ids import TopicId
from ottla.net.config import NetConfig
from ottla.storage.config import LogConfig
from ottla.wire.declare import Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from ottla.client.connection import Connection
    from ottla.cluster.state import ViewListener
    from ottla.wire.codec import RequestFor

ResponseT = TypeVar("ResponseT", bound=Response)

PATIENCE_S = 20.0
QUICK = ReplicationConfig(replica_lag_time_max_ms=500, replica_fetch_wait_max_ms=100, replica_fetch_backoff_ms=20)


class MemoryCatalog:
    """State shared by all nodes. Each is notified of changes in a later turn of the loop, as by a watch."""

    def __init__(self) -> None:
        self.view = ClusterView()
        self.nodes: dict[int, MemoryCluster] = {}

    def put(self, state: PartitionState) -> PartitionState:
        """Write a state as the controller, overriding the previous one."""
        known = self.view.partitions.get(state.key)
        state = replace(state, version=0 if known is None else known.version + 1)
        self._show(self.view.with_partitions({state.key: state}), {state.key})
        return state

    def change(self, key: PartitionKey, **fields: Any) -> PartitionState:
        return self.put(replace(self.view.partitions[key], **fields))

    def elect(self, key: PartitionKey, leader: int, isr: Sequence[int] | None = None) -> None:
        state = self.view.partitions[key]
        self.change(
            key, leader=leader, leader_epoch=state.leader_epoch + 1, isr=state.isr if isr is None else tuple(isr)
        )

    def register(self, broker: BrokerInfo) -> None:
        self._show(replace(self.view, brokers={**self.view.brokers, broker.id: broker}), set())

    def expire(self, node_id: int) -> None:
        brokers = {number: broker for number, broker in self.view.brokers.items() if number != node_id}
        self._show(replace(self.view, brokers=brokers), set())

    def _show(self, view: ClusterView, changed: Collection[PartitionKey]) -> None:
        self.view = view
        for node in self.nodes.values():
            if not node.is_deaf:
                asyncio.get_running_loop().call_soon(node.learn, view, frozenset(changed))


class MemoryCluster:
    """One node's view of the catalog."""

    def __init__(self, catalog: MemoryCatalog, node_id: int) -> None:
        self.catalog = catalog
        self.node_id = node_id
        self.view = catalog.view
        self.is_fenced = False
        self.folder_id = f"folder-{node_id}"
        self.is_deaf = False
        """Receives no notifications, like a paused process."""
        self.is_cut_off = False
        """Its changes do not reach the catalog."""
        self._listeners: list[ViewListener] = []
        self._on_lost: list[Callable[[], None]] = []
        catalog.nodes[node_id] = self

    def learn(self, view: ClusterView, changed: frozenset[PartitionKey]) -> None:
        before, self.view = self.view, view
        for listener in self._listeners:
            listener(ViewChange(before, view, changed))

    def listen(self, listener: ViewListener) -> None:
        self._listeners.append(listener)

    def on_session_lost(self, callback: Callable[[], None]) -> None:
        self._on_lost.append(callback)

    def lose_session(self) -> None:
        self.is_fenced = True
        for callback in self._on_lost:
            callback()

    async def change_isr(
        self,
        at: PartitionKey,
        new_isr: Mapping[int, int],
        leader_epoch: int,
        expected_version: int,
        lost: Collection[int] = (),  # noqa: ARG002
    ) -> PartitionState:
        await asyncio.sleep(0)
        state = self.catalog.view.partitions[at]
        if self.is_fenced:
            raise NotInSession("cut off")
        if state.leader != self.node_id or state.leader_epoch != leader_epoch:
            raise NotLeaderOrFollower("another leads")
        if state.version != expected_version:
            raise InvalidUpdateVersion("changed meanwhile")
        return self.catalog.change(at, isr=tuple(node for node in state.replicas if node in new_isr))

    async def leave_isr(self, at: PartitionKey, *, may_lack_records: bool) -> PartitionState:
        await self._ask()
        state = self.catalog.view.partitions[at]
        rule = given_up if may_lack_records else without
        return self.catalog.put(rule(state, self.node_id, self.catalog.view.brokers))

    async def _ask(self) -> None:
        await asyncio.sleep(0)
        if self.is_cut_off:
            raise NotInSession("cut off")

    async def report_offline(self, replicas: Collection[PartitionKey]) -> None:
        await self._ask()
        if self.node_id in self.catalog.view.brokers:
            self.catalog.register(replace(self.catalog.view.brokers[self.node_id], offline=frozenset(replicas)))


class Brokers:
    """Brokers of one catalog. Partition 0 of topic `t` is on all of them."""

    def __init__(self, folder: Path, log: LogConfig) -> None:
        self.catalog = MemoryCatalog()
        self.topic_id = TopicId.random()
        self.key = PartitionKey(self.topic_id, 0)
        self.running: dict[int, Broker] = {}
        self._folder = folder
        self._log = log
        self._connections: dict[int, Connection] = {}

    async def start(self, node_id: int, rack: str | None = None) -> None:
        settings = Settings(
            broker=BrokerConfig(data_dir=self._folder / str(node_id), node_id=node_id),
            net=NetConfig(port=0),
            log=self._log,
            replication=QUICK,
        )
        broker = Broker(settings)
        cluster = MemoryCluster(self.catalog, node_id)
        broker.replicate(cluster)
        await broker.start()
        self.running[node_id] = broker
        if self.topic_id.raw not in broker.topics.by_id:
            self._create(broker, {})
        self.catalog.register(BrokerInfo(node_id, {"PLAINTEXT": broker.address}, rack=rack))

    def _create(self, broker: Broker, configs: Mapping[str, str]) -> None:
        broker.topics.put(broker.catalog.create_topic("t", 1, configs, topic_id=self.topic_id))

    def place(self, leader: int, isr: Sequence[int] | None = None, min_insync: int = 1) -> None:
        nodes = tuple(self.running)
        for broker in self.running.values():
            state = broker.topics.by_name["t"]
            broker.topics.configure(state, lambda _: {"min.insync.replicas": str(min_insync)})
        self.catalog.put(PartitionState(self.topic_id, "t", 0, nodes, leader, 0, nodes if isr is None else tuple(isr)))

    def settle(self) -> None:
        """Run the controller's election rules."""
        self.catalog.put(settle(self.state(), self.catalog.view.brokers))

    async def kill(self, node_id: int) -> None:
        """Remove the node from the cluster; its files stay."""
        await self.end_process(node_id)
        self.catalog.expire(node_id)

    async def end_process(self, node_id: int) -> None:
        """End the process; its session stays open for a while."""
        self.catalog.nodes[node_id].is_deaf = True
        self.catalog.nodes[node_id].lose_session()
        if connection := self._connections.pop(node_id, None):
            connection.close()
        await self.running.pop(node_id).stop()
        self.catalog.nodes.pop(node_id)

    def __getitem__(self, node_id: int) -> Broker:
        return self.running[node_id]

    def state(self) -> PartitionState:
        return self.catalog.view.partitions[self.key]

    def log(self, node_id: int) -> Any:
        return self.running[node_id].topics.partition("t", 0).log

    def replica(self, node_id: int) -> Any:
        broker = self.running[node_id]
        assert broker.replication is not None
        return broker.replication.replica_of(broker.topics.partition("t", 0))

    async def ask(self, node_id: int, request: RequestFor[ResponseT], version: int | None = None) -> ResponseT:
        connection = self._connections.get(node_id)
        if connection is None or not connection.is_open:
            manner = ConnectionSettings(
                ClientConfig(request_timeout_ms=int(PATIENCE_S * 1000)), None, bytearray(1 << 16)
            )
            connection = self._connections[node_id] = await open_connection(self.running[node_id].address, manner)
        return await connection.ask(request, version=version)

    async def stop(self) -> None:
        for connection in self._connections.values():
            connection.close()
        for broker in self.running.values():
            await broker.stop()


@asynccontextmanager
async def brokers_of(
    folder: Path, count: int = 3, log: LogConfig | None = None, racks: Sequence[str] = ()
) -> AsyncIterator[Brokers]:
    brokers = Brokers(folder, log or LogConfig(flush="os"))
    try:
        for node_id in range(1, count + 1):
            await brokers.start(node_id, racks[node_id - 1] if racks else None)
        yield brokers
    finally:
        await brokers.stop()


async def until(holds: Callable[[], object]) -> None:
    """Run the brokers until the condition holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - there are no events for it
            await asyncio.sleep(0)


def nobody(state: PartitionState) -> bool:
    return state.leader == NO_NODE
