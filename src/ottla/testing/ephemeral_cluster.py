"""A cluster for one test: several brokers in this process, without ZooKeeper, removed afterwards."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.cluster.replication.config import ReplicationConfig
from ottla.testing.catalog_keeper import CatalogKeeper
from ottla.testing.clock import MovableClock, catch_up
from ottla.testing.cluster_node import ClusterNode
from ottla.testing.content import append, create, read_partition
from ottla.testing.defaults import for_tests
from ottla.testing.folder import ephemeral_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from ottla.broker.broker import Broker
    from ottla.broker.settings import Settings
    from ottla.records.encode import Headers
    from ottla.records.reader import Record

_NODES: Final = 3
_LOOK_EVERY_S: Final = 0.002
_PATIENCE_S: Final = 20.0
_REPLICATION: Final = ReplicationConfig(
    replica_lag_time_max_ms=1000, replica_fetch_wait_max_ms=200, replica_fetch_backoff_ms=20
)


class EphemeralCluster:
    """`with ottla.testing.cluster() as cluster:`; in pytest the fixture `ottla_cluster` is one."""

    def __init__(self, nodes: int = _NODES, settings: Settings | None = None) -> None:
        self._count = nodes
        self._settings = for_tests(settings)
        self.nodes: list[ClusterNode] = []
        """All nodes, including killed ones."""
        self.clock = MovableClock(self._clock_moved)
        """The clock of all nodes."""
        self._closing = ExitStack()

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap addresses of all nodes, including stopped ones."""
        return ",".join(node.bootstrap_servers for node in self.nodes)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        with ExitStack() as undoing:
            folder = undoing.enter_context(ephemeral_folder())
            keeper = undoing.enter_context(CatalogKeeper(folder / "catalog"))
            undoing.callback(self.nodes.clear)
            for number in range(self._count):
                node = ClusterNode(folder / str(number), self._settings_of(number), self.clock, keeper)
                node.start()
                self.nodes.append(node)
                undoing.callback(_kill_if_running, node)
            self._closing = undoing.pop_all()
        self._wait(self._not_all_known, _PATIENCE_S)

    def stop(self) -> None:
        """Stop all nodes, and delete all data. Idempotent."""
        self._closing.close()

    def _settings_of(self, number: int) -> Settings:
        base = self._settings
        cluster = replace(base.cluster, default_replication_factor=self._count, internal_replication_factor=self._count)
        broker = replace(base.broker, node_id=number, offsets_topic_partitions=self._count)
        transactions = replace(base.transactions, state_topic_partitions=self._count)
        share = replace(base.share, state_topic_partitions=self._count)
        return base._replace(
            broker=broker, cluster=cluster, transactions=transactions, share=share, replication=_REPLICATION
        )

    # Nodes

    def kill(self, node: ClusterNode | int) -> None:
        """Stop a node abruptly, as in a power failure. Other nodes become leaders of its partitions."""
        self._node(node).kill()

    def restart(self, node: ClusterNode | int) -> None:
        """Restart a node at the same address with its data. A running one is stopped first."""
        found = self._node(node)
        if found.is_running:
            found.stop()
        found.start()
        self._wait(self._not_all_known, _PATIENCE_S)

    def leader_of(self, topic: str, partition: int = 0, *, timeout_s: float = _PATIENCE_S) -> ClusterNode:
        """The leader of the partition; waits until there is one."""
        found: list[ClusterNode] = []

        def not_led() -> str | None:
            found[:] = [node for node in self._running if _leads(node, topic, partition)]
            if found:
                return None
            known = self._running[0].broker.topics.by_name
            return f"{topic}-{partition} has no leader" if topic in known else f"no topic {topic!r}"

        self._wait(not_led, timeout_s)
        return found[0]

    def wait_until_in_sync(self, topic: str, *, timeout_s: float = _PATIENCE_S) -> None:
        """Return once all running replicas of the topic are in the ISR."""
        self._wait(lambda: self._behind(topic), timeout_s)

    # Topics and records

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, on all nodes by default; returns once each partition has a leader."""
        node = self._running[0]
        copies = self._count if replication_factor is None else replication_factor
        node.call(create(node.client(), name, partitions, configs, copies))
        for partition in range(partitions):
            self.leader_of(name, partition)

    def produce(
        self,
        topic: str,
        *values: bytes | str | None,
        key: bytes | str | None = None,
        partition: int = 0,
        headers: Headers = (),
    ) -> int:
        """Append a record per value to an existing topic, and return the offset of the first."""
        node = self.leader_of(topic, partition)
        return node.call(append(node.broker, node.client(), topic, partition, values, key=key, headers=headers))

    def records(self, topic: str) -> list[Record]:
        """All records of the topic, by partition and offset, without aborted ones."""
        count = len(self._running[0].broker.topics.by_name[topic].partitions)
        found: list[Record] = []
        for partition in range(count):
            leader = self.leader_of(topic, partition)
            found += leader.call(read_partition(leader.client(), leader.broker.topics.partition(topic, partition)))
        return found

    # Implementation

    @property
    def _running(self) -> list[ClusterNode]:
        running = [node for node in self.nodes if node.is_running]
        if not running:
            raise RuntimeError("no node of the cluster is running")
        return running

    def _node(self, node: ClusterNode | int) -> ClusterNode:
        if isinstance(node, ClusterNode):
            return node
        found = [one for one in self.nodes if one.id == node]
        if not found:
            raise LookupError(f"no node {node}; existing: {', '.join(str(one.id) for one in self.nodes)}")
        return found[0]

    def _not_all_known(self) -> str | None:
        wanted = {node.id for node in self._running}
        for node in self._running:
            cluster = node.broker.cluster
            known = set() if cluster is None else set(cluster.view.brokers)
            if not wanted <= known:
                return f"node {node.id} only knows nodes {sorted(known)}"
        return None

    def _behind(self, topic: str) -> str | None:
        wanted = {node.id for node in self._running}
        for state in self._running[0].broker.topics.by_name[topic].partitions:
            leader = self.leader_of(topic, state.at.partition)
            replication = leader.broker.replication
            partition = leader.broker.topics.partition(topic, state.at.partition)
            replica = None if replication is None else replication.replica_of(partition)
            placed = None if replica is None else replica.state
            missing = set() if placed is None else (wanted & set(placed.replicas)) - set(placed.isr)
            if missing:
                return f"{state.at}: nodes {sorted(missing)} are not in the ISR"
        return None

    def _clock_moved(self) -> None:
        for node in self.nodes:
            if node.is_running:
                node.call(_caught_up(node.broker))

    def _wait(self, problem: Callable[[], str | None], timeout_s: float) -> None:
        give_up_at_s = time.monotonic() + timeout_s
        while (found := problem()) is not None:
            if time.monotonic() >= give_up_at_s:
                raise TimeoutError(f"after {timeout_s:g} s {found}")
            time.sleep(_LOOK_EVERY_S)


async def _caught_up(broker: Broker) -> None:
    catch_up(broker)


def _leads(node: ClusterNode, topic: str, partition: int) -> bool:
    state = node.broker.topics.by_name.get(topic)
    if state is None or partition >= len(state.partitions):
        return False
    leader, _ = state.partitions[partition].leader
    return leader == node.id and state.partitions[partition].leads


def _kill_if_running(node: ClusterNode) -> None:
    if node.is_running:
        node.kill()
