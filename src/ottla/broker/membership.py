"""This broker's membership in a cluster. Imported only by brokers of a cluster."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.broker.topic_defaults import topic_defaults
from ottla.broker.topics import INTERNAL_TOPICS, SHARE_GROUP_STATE, TRANSACTION_STATE
from ottla.broker.topology import ANY_ADDRESS
from ottla.cluster.catalog_nodes import Layout
from ottla.cluster.connecting import connect
from ottla.cluster.node import JoinedCluster
from ottla.cluster.state import Losses, PartitionKey
from ottla.core.errors import (
    ApiError,
    ConfigError,
    CoordinatorLoadInProgress,
    DataDirError,
    InvalidReplicaAssignment,
    TopicAlreadyExists,
)
from ottla.core.ids import Address
from ottla.storage.catalog.entries import ResourceConfigs, Topic
from ottla.storage.folder.folder_identity import FolderIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ottla.broker.administration import NewTopic
    from ottla.broker.broker import Broker
    from ottla.broker.settings import Settings
    from ottla.broker.topics import TopicState
    from ottla.cluster.catalog import SharedCatalog
    from ottla.cluster.store import Store
    from ottla.net.port import Port
    from ottla.storage.catalog.catalog import Catalog, Edit
    from ottla.storage.catalog.entries import ConfigResource
    from ottla.storage.catalog.view import Change
    from ottla.storage.folder.data_dir import DataDir

T = TypeVar("T")

_logger: Final = logging.getLogger(__name__)

_CREATE_MS: Final = 30_000
_RESERVE: Final = 100
_SAFE_FACTOR: Final = 3
"""With this many replicas one may be offline without reducing safety to a single copy."""


class Membership:
    """The connection to the cluster's catalog, opened first: it contains the cluster id."""

    def __init__(self, settings: Settings, catalog: Store | None = None) -> None:
        """`catalog` defaults to ZooKeeper."""
        self._settings = settings
        self._connected = connect(settings.cluster, catalog)

    @property
    def catalog(self) -> SharedCatalog:
        return self._connected.catalog

    def close(self) -> None:
        self._connected.close()

    def cluster(self, data_dir: DataDir) -> JoinedCluster:
        """The cluster, joined with this data folder; raises DataDirError if it belongs to another cluster or node."""
        meta, node_id = data_dir.meta, self._settings.broker.node_id
        if meta.cluster_id != self.catalog.cluster_id:
            raise DataDirError(
                f"{data_dir.path} belongs to cluster {meta.cluster_id}, not to {self.catalog.cluster_id}; "
                "choose an empty folder"
            )
        if meta.node_id != node_id:
            raise DataDirError(f"{data_dir.path} belongs to node {meta.node_id}, not to node {node_id}")
        folder = FolderIdentity(data_dir.path, meta)
        return JoinedCluster(self._connected, self._settings.cluster, node_id, folder)


async def join(broker: Broker, cluster: JoinedCluster) -> None:
    """Register for clients and other nodes, once the listeners are up."""
    free_bytes = shutil.disk_usage(broker.data_dir.path).free
    address_of = _address_for_this_machine if broker.inherited is not None else _address_for_all
    listeners = {port.name: address_of(port) for port in _in_order(broker)}
    await cluster.start(listeners, free_bytes, _losses(broker, cluster))
    if broker.replication is not None:
        broker.replication.registered()
    if isinstance(broker.producer_ids, ReservedProducerIds):
        broker.producer_ids.fetch_soon()


def _losses(broker: Broker, cluster: JoinedCluster) -> Losses:
    replication, has_crashed = broker.replication, not broker.data_dir.was_clean
    if replication is None:
        return Losses(has_crashed)
    lacking: Iterable[PartitionKey] = ()
    damaged = frozenset(replication.damaged())
    if has_crashed and cluster.has_copied_folder:
        lacking = (state.key for state in cluster.view.held_by(cluster.node_id))
    elif has_crashed and cluster.may_have_lost_power:
        lacking = replication.unsynced()
    # After a power failure, damage does not prove that acknowledged records are gone: a later unsynced write may
    # survive while an earlier one is lost.
    gone = frozenset() if cluster.may_have_lost_power else damaged
    return Losses(has_crashed, gone.union(replication.lost()), damaged.union(lacking))


def _in_order(broker: Broker) -> list[Port]:
    """The listener used between nodes comes last."""
    ports = broker.listener.ports
    wanted = broker.settings.cluster.node_listener or ports[0].name
    chosen = next((port for port in ports if port.name == wanted), None)
    if chosen is None:
        raise ConfigError(f"cluster.node_listener is {wanted}, but there is no such listener")
    return [*(port for port in reversed(ports) if port.name != wanted), chosen]


def _address_for_all(port: Port) -> Address:
    if port.advertised is not None:
        return port.advertised
    host, number = port.address
    return Address(socket.gethostname() if host in ANY_ADDRESS else host, number)


def _address_for_this_machine(port: Port) -> Address:
    """The address for clients on this machine: any of its addresses works."""
    return port.advertised or port.address


class CatalogFollower:
    """Applies catalog changes of other nodes."""

    def __init__(self, broker: Broker, catalog: SharedCatalog) -> None:
        self._broker = broker
        self._catalog = catalog

    def start(self) -> None:
        loop = asyncio.get_running_loop()

        def post(change: Change) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._changed, change)

        self._catalog.listen(post)
        # Applies changes made after the topics were loaded and before the listener was registered.
        view = self._catalog.view
        for state in list(self._broker.topics.by_name.values()):
            if state.entry.id not in view.topics_by_id:
                self._broker.forget_topic(state)
        for topic in view.topics.values():
            self._broker.topics.put(topic)

    def _changed(self, change: Change) -> None:
        before, after = change.before, change.after
        if isinstance(before, Topic) and not (isinstance(after, Topic) and after.id == before.id):
            state = self._broker.topics.by_id.get(before.id.raw)
            if state is not None:
                self._broker.forget_topic(state)
        if isinstance(after, Topic):
            self._broker.topics.put(after)
        if isinstance(before or after, ResourceConfigs):
            self._broker.reload_configs()
        self._broker.security.changed(change)


class PendingTopicCreations:
    """Topics that are being created on request; the next request finds them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def create(self, wanted: NewTopic) -> None:
        if wanted.name not in self._tasks:
            task = asyncio.get_running_loop().create_task(self._create(wanted))
            self._tasks[wanted.name] = task
            task.add_done_callback(lambda _: self._tasks.pop(wanted.name))

    async def _create(self, wanted: NewTopic) -> None:
        try:
            await self._broker.administration.create_topic(wanted, _CREATE_MS)
        except TopicAlreadyExists:
            return
        except ApiError as refused:
            _logger.warning("could not create topic %s: %s", wanted.name, refused)


class ReservedProducerIds:
    """Producer ids, fetched in advance, so that no request waits for ZooKeeper."""

    def __init__(self, cluster: JoinedCluster, catalog: Catalog) -> None:
        self._cluster = cluster
        self._catalog = catalog
        self._left: deque[int] = deque()
        self._fetching: asyncio.Task[None] | None = None

    def next(self) -> int:
        """Raises CoordinatorLoadInProgress if none is available yet."""
        if len(self._left) <= _RESERVE:
            self.fetch_soon()
        if not self._left:
            raise CoordinatorLoadInProgress("producer ids are being fetched")
        return self._left.popleft()

    def fetch_soon(self) -> None:
        if self._fetching is None:
            self._fetching = asyncio.get_running_loop().create_task(self._fetch())

    async def _fetch(self) -> None:
        try:
            block = await self._cluster.work(self._catalog.next_producer_ids)
            self._left.extend(block.ids)
        except ApiError as refused:
            _logger.warning("could not allocate producer ids: %s", refused)
        finally:
            self._fetching = None


class ClusterAdministration:
    """Writes to the catalog; the controller reacts, and the result comes back through the view."""

    def __init__(self, broker: Broker, cluster: JoinedCluster, catalog: SharedCatalog) -> None:
        self._broker = broker
        self._cluster = cluster
        self._catalog = catalog

    async def create_topic(self, wanted: NewTopic, timeout_ms: int) -> TopicState:
        is_internal = wanted.name in INTERNAL_TOPICS
        partitions, configs = topic_defaults(self._broker.settings, wanted.name, wanted.partitions, wanted.configs)
        usual = self._cluster.config.default_replication_factor
        if is_internal:
            usual = self._cluster.config.internal_replication_factor
        layout = Layout(wanted.factor or usual, wanted.assignments)
        is_state = wanted.name in (TRANSACTION_STATE, SHARE_GROUP_STATE)
        if is_state and wanted.configs is None and layout.factor >= _SAFE_FACTOR:
            configs = {**configs, "min.insync.replicas": str(_SAFE_FACTOR - 1)}
        topic = await self._cluster.work(
            lambda: self._catalog.create_topic(wanted.name, partitions, configs, is_internal=is_internal, layout=layout)
        )
        await self._cluster.until_led(topic.id, partitions, timeout_ms)
        return self._broker.topics.by_id[topic.id.raw]

    async def grow(self, state: TopicState, count: int, assignments: Sequence[Sequence[int]], timeout_ms: int) -> None:
        topic_id = state.entry.id
        await self._cluster.work(lambda: self._catalog.grow_topic(topic_id, count, assignments))
        await self._cluster.until_led(topic_id, count, timeout_ms)

    async def configure(self, state: TopicState, edit: Edit[str]) -> None:
        await self._cluster.work(lambda: self._catalog.change_topic_configs(state.entry.id, edit))

    async def delete_topic(self, state: TopicState) -> None:
        await self._cluster.work(lambda: self._catalog.delete_topic(state.entry.id))

    async def catch_up(self, topic: str) -> None:
        await self._cluster.work(lambda: self._catalog.refresh_topic(topic))

    async def change_configs(self, resource: ConfigResource, edit: Edit[str]) -> None:
        await self._cluster.work(lambda: self._catalog.change_configs(resource, edit))

    async def change_catalog(self, change: Callable[[], T]) -> T:
        return await self._cluster.work(change)

    async def move(
        self, state: TopicState, partition: int, replicas: Sequence[int] | None, *, keeps_factor: bool
    ) -> None:
        key = PartitionKey(state.entry.id, partition)
        known = self._cluster.view.partitions.get(key)
        if keeps_factor and replicas is not None and known is not None and len(replicas) != len(known.target):
            raise InvalidReplicaAssignment(f"{state.name}-{partition} must keep {len(known.target)} replicas")
        await self._cluster.alter_reassignments({key: replicas})

    async def elect_leader(self, state: TopicState, partition: int, *, is_unclean: bool) -> None:
        await self._cluster.elect_leader(PartitionKey(state.entry.id, partition), unclean=is_unclean)
