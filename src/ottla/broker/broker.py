"""The broker: its state, start and stop. It lives in one event loop, without locks."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ottla.broker.administration import NewTopic
from ottla.broker.configs.layers import BrokerConfigs
from ottla.broker.configs.static import all_static_settings
from ottla.broker.coordinators.producer_ids import ProducerIds
from ottla.broker.opening import open_alone, open_member
from ottla.broker.requests.dispatch import Dispatcher
from ottla.broker.requests.fetch_sessions import FetchSessions
from ottla.broker.security.security import Security
from ottla.broker.topic_defaults import topic_defaults
from ottla.broker.topic_limits import TopicLimits
from ottla.broker.topics import CONSUMER_OFFSETS, INTERNAL_TOPICS, SHARE_GROUP_STATE, TRANSACTION_STATE, Topics
from ottla.broker.upkeep.disk_space import DiskSpace
from ottla.broker.upkeep.flusher import Flusher
from ottla.broker.upkeep.maintenance import Maintenance
from ottla.core.clock import SteadyClock, SystemClock
from ottla.core.errors import InvalidTopic, LeaderNotAvailable, StorageError
from ottla.core.ids import Address, problem_with_topic_name
from ottla.net.listener import Listener

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ottla.broker.batches.inflating import Inflating
    from ottla.broker.configs.topic_config import TopicConfig
    from ottla.broker.coordinators.groups import GroupCoordinator
    from ottla.broker.coordinators.transactions import TransactionCoordinator
    from ottla.broker.faults.faults import Faults
    from ottla.broker.inherited import Inherited
    from ottla.broker.interfaces.protocol_servers import ShardServer, TableWriter
    from ottla.broker.membership import ReservedProducerIds
    from ottla.broker.opening import Opened
    from ottla.broker.replication.replication import Replication
    from ottla.broker.requests.context import Client
    from ottla.broker.schemas.store import Store
    from ottla.broker.settings import Settings
    from ottla.broker.share.service import ShareService
    from ottla.broker.topics import TopicState
    from ottla.broker.tracing import Tracing
    from ottla.broker.upkeep.compactor import Compactor
    from ottla.broker.upkeep.key_rotation import KeyRotation
    from ottla.cluster.state import Cluster
    from ottla.core.clock import Clock
    from ottla.core.keys import KeyRing
    from ottla.core.sealing import Sealer
    from ottla.net.connection import Connection
    from ottla.storage.catalog.catalog import Edit
    from ottla.storage.catalog.entries import ConfigResource

_logger: Final = logging.getLogger(__name__)

_CLOSING_THREADS: Final = 16


class Broker:
    def __init__(self, settings: Settings, clock: Clock | None = None, inherited: Inherited | None = None) -> None:
        is_member = bool(settings.cluster.zookeeper) or inherited is not None
        settings = settings.completed(is_member=is_member)
        self.config = settings.broker
        self.settings = settings
        self.inherited = inherited
        """Set for a worker, which shares the machine with other workers."""
        self.tracing = self._open_tracing() if settings.tracing.otlp_endpoint else None
        self.clock = clock or SystemClock()
        self.steady_clock = SteadyClock(self.clock)
        self.replication: Replication | None = None
        self._sealer = self._open_sealer() if settings.encryption.is_on else None
        with ExitStack() as undoing:
            opened = (open_member if is_member else open_alone)(self, self._sealer, undoing)
            self._use(opened)
            self.configs = self._load_configs(Address(settings.net.host, settings.net.port))
            self.disk_space = DiskSpace(self.data_dir.path)
            self.data_dir.on_refused_write(self.disk_space.refused)
            self._load_topics(is_new_catalog=opened.is_new_catalog)
            self.security = Security(self)
            undoing.callback(self.security.close)
            self.dispatcher = Dispatcher(self)
            bound = () if inherited is None else inherited.bound
            self.listener = Listener(settings.net, self.dispatcher, settings.security, self.security.gate, bound)
            undoing.pop_all()
        # Started first, so that no later change of the key file is missed.
        self.key_rotation = None if self._sealer is None else self._rotate_keys()
        self.producer_ids = self._producer_ids()
        self.fetch_sessions = FetchSessions(settings.broker.max_fetch_sessions)
        self.rewriting = asyncio.Lock()
        """Held while segments are rewritten: one log at a time."""
        self.maintenance = Maintenance(self)
        self.faults: Faults | None = None
        """Fault injection hooks; None in production."""
        self.shard_server: ShardServer | None = None
        self.http_address: Address | None = None
        """Set by the HTTP and DMQP servers, if they run."""
        self.table_writer: TableWriter | None = None
        """Set by `ottla serve` once a topic has ottla.table.enable."""
        self.security.start()
        if self.cluster is not None:
            self.replicate(self.cluster)

    def _use(self, opened: Opened) -> None:
        self.catalog = opened.catalog
        self.data_dir = opened.data_dir
        self.topology = opened.topology
        self.administration = opened.administration
        self.cluster = opened.cluster
        self.startup_wait = opened.startup_wait
        """Set for a cluster node: delays requests about the cluster until the cluster is known."""
        self._soon = opened.soon
        self._following = opened.following

    def _load_topics(self, *, is_new_catalog: bool) -> None:
        self.flusher = Flusher(lambda: self.topics.open_partitions())  # noqa: PLW0108 - topics follow
        self.topics = Topics(self.data_dir, self.catalog, self._config_for, self.flusher.durable)
        self.topics.load(is_new_catalog=is_new_catalog, is_shared=self.cluster is not None)
        self.topic_limits = TopicLimits(self.config, self.topics)
        if is_new_catalog and self.topics.by_name:
            from ottla.broker.upkeep.adopting import skip_used_producer_ids

            skip_used_producer_ids(self.topics, self.catalog)

    def replicate(self, cluster: Cluster) -> None:
        """Start leading and following partitions according to this cluster view."""
        from ottla.broker.replication.replication import Replication

        self.replication = Replication(self, cluster, self.settings.replication)

    def _producer_ids(self) -> ProducerIds | ReservedProducerIds:
        if self.cluster is None:
            return ProducerIds(self.catalog)
        from ottla.broker.membership import ReservedProducerIds

        return ReservedProducerIds(self.cluster, self.catalog)

    def _open_sealer(self) -> Sealer | None:
        from ottla.broker.upkeep.key_rotation import open_sealer

        return open_sealer(self.settings.encryption, self.config.data_dir)

    def _rotate_keys(self) -> KeyRotation:
        from ottla.broker.upkeep.key_rotation import KeyRotation

        return KeyRotation(self)

    # Imported on first use, to keep the start fast; `Dispatcher.load_all` imports them when the broker is ready.

    @cached_property
    def groups(self) -> GroupCoordinator:
        from ottla.broker.coordinators.groups import GroupCoordinator

        return GroupCoordinator(self, self.settings.groups)

    @property
    def has_had_groups(self) -> bool:
        """Whether there may be any groups."""
        return "groups" in self.__dict__

    @cached_property
    def inflating(self) -> Inflating:
        from ottla.broker.batches.inflating import Inflating

        return Inflating(self.config)

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        from ottla.broker.coordinators.transactions import TransactionCoordinator

        return TransactionCoordinator(self, self.settings.transactions)

    @property
    def has_had_transactions(self) -> bool:
        """Whether there are transactions, or were since the start."""
        return "transactions" in self.__dict__

    @cached_property
    def compactor(self) -> Compactor:
        from ottla.broker.upkeep.compactor import Compactor

        return Compactor(self)

    @cached_property
    def schemas(self) -> Store:
        from ottla.broker.schemas.store import Store  # rarely needed

        return Store(self)

    @cached_property
    def share(self) -> ShareService:
        from ottla.broker.share.service import ShareService  # rarely needed

        return ShareService(self, self.settings.share)

    @property
    def has_shared(self) -> bool:
        """Whether share groups were used so far."""
        return "share" in self.__dict__

    def is_share_group(self, group_id: str) -> bool:
        return self.has_shared and self.share.groups.get(group_id) is not None

    @property
    def cluster_id(self) -> str:
        return self.catalog.cluster_id

    @property
    def address(self) -> Address:
        return self.listener.address

    @property
    def lake_folder(self) -> Path:
        """Where topics' tables are by default; workers share one."""
        folder = self.config.data_dir
        return (folder if self.inherited is None else folder.parent) / "lake"

    @property
    def keys(self) -> KeyRing | None:
        """The encryption of data on the disk, if enabled."""
        return None if self.data_dir.sealer is None else self.data_dir.sealer.ring

    # Starting and stopping

    async def start(self) -> None:
        if not self.data_dir.was_clean:
            await self._recover()
        if self._following is not None:
            self._following.start()
        if self.replication is not None:
            await self.replication.start()
        if self.cluster is not None or CONSUMER_OFFSETS in self.topics.by_name:
            self.groups.start()
        if SHARE_GROUP_STATE in self.topics.by_name:
            self.share.start()
        if self.cluster is not None or TRANSACTION_STATE in self.topics.by_name:
            await self.transactions.start()
        await self.listener.start()
        self.configs = self._load_configs(self.address)
        self.flusher.start()
        self.maintenance.start()
        if self.cluster is not None:
            from ottla.broker.membership import join

            try:
                await join(self, self.cluster)
            except BaseException:
                await self._halt()
                raise
            if self.startup_wait is not None:
                self.startup_wait.joined()

    async def _recover(self) -> None:
        """After a crash, recover every log before requests are served, so that no request waits for it later."""
        loop = asyncio.get_running_loop()
        for partition in self.topics.partitions_here():
            if (self.data_dir.path / str(partition.at)).exists():
                try:
                    await loop.run_in_executor(None, lambda p=partition: p.log)  # type: ignore[misc]
                except StorageError as failed:
                    if self.replication is None:
                        raise
                    # Other nodes have replicas. This one is offline, and reopened later.
                    _logger.error("%s: could not open the log: %s", partition.at, failed)

    async def stop(self) -> None:
        """Complete pending requests, then shut down cleanly so that the next start is fast."""
        await self._halt()
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    async def _halt(self) -> None:
        """Stop everything, without closing the logs."""
        if self.cluster is not None:
            await self.cluster.stop()
        if self.replication is not None:
            await self.replication.stop()
        self.listener.drain()
        if self.has_had_groups:
            self.groups.stop()
        if self.has_shared:
            await self.share.stop()
        for partition in self.topics.open_partitions():
            partition.waits.give_up()
        await self.listener.stop(self.config.drain_timeout_ms / 1000)
        await self.security.stop()
        if self.has_had_transactions:
            await self.transactions.stop()
        self.disk_space.stop()
        await self.maintenance.stop()
        await self.flusher.stop()
        if self.tracing is not None:
            await asyncio.get_running_loop().run_in_executor(None, self.tracing.close)

    def close(self) -> None:
        with ThreadPoolExecutor(_CLOSING_THREADS) as pool:
            self.data_dir.close(pool.map)
        self.catalog.close()
        if self.cluster is not None:
            self.cluster.close()
        self.security.close()

    # For handlers

    def advertised_to(self, connection: Client) -> Address:
        """The address for this client: the advertised one of its listener, or the one it is connected to."""
        return connection.advertised or Address(*connection.local)

    @property
    def advertised(self) -> Address | None:
        """The advertised address of the first listener."""
        return self.listener.ports[0].advertised

    def check_topic_name(self, name: str) -> None:
        problem = problem_with_topic_name(name)
        if problem:
            raise InvalidTopic(problem)

    def create_topic(
        self, name: str, partitions: int | None = None, configs: Mapping[str, str] | None = None
    ) -> TopicState:
        """Create a topic with default settings.

        In a cluster the topic is created asynchronously: raises LeaderNotAvailable, and the client retries.
        """
        if self.cluster is not None:
            self.create_topic_soon(name)
            raise LeaderNotAvailable(f"topic {name} is being created")
        partitions, configs = topic_defaults(self.settings, name, partitions, configs)
        return self.topics.create(name, partitions, configs, is_internal=name in INTERNAL_TOPICS)

    def create_topic_soon(self, name: str) -> None:
        if self._soon is not None:
            self._soon.create(NewTopic(name))

    @property
    def default_replication_factor(self) -> int:
        return 1 if self.cluster is None else self.settings.cluster.default_replication_factor

    def delete_topic(self, state: TopicState) -> None:
        """Delete a topic. It takes effect at once; the files are removed in the background."""
        self._forget(state, self.topics.delete(state))

    def forget_topic(self, state: TopicState) -> None:
        """Like `delete_topic`, for a topic that is no longer in the catalog."""
        self._forget(state, self.topics.forget(state))

    def _forget(self, state: TopicState, folders: list[Path]) -> None:
        self.maintenance.remove(folders)
        if self.replication is not None:
            self.replication.forget(state)
        if self.has_had_groups:
            self.groups.topic_deleted(state.name, state.raw_id)
        if self.has_had_transactions:
            self.transactions.topic_deleted(state.name)
        if self.has_shared:
            self.share.topic_deleted(state.name, state.raw_id)
        for partition in state.partitions:
            self.flusher.forget(partition)
        if self.shard_server is not None:
            self.shard_server.topic_deleted(state.name)

    def change_configs(self, resource: ConfigResource, edit: Edit[str]) -> None:
        """Change the configs of this broker, or of all brokers."""
        self.catalog.change_configs(resource, edit)
        self.reload_configs()

    def reload_configs(self) -> None:
        self.configs = self._load_configs(self.address)
        self.topics.reconfigure()

    def connection_closed(self, connection: Connection) -> None:
        """Handle a client's disconnect; the connection cancels its pending requests."""
        if self.has_shared:
            self.share.connection_closed(connection)

    def _open_tracing(self) -> Tracing:
        from ottla.broker.tracing import Tracing

        return Tracing(self.settings.tracing, self.config.node_id)

    # Configs

    def _config_for(self, configs: Mapping[str, str]) -> TopicConfig:
        return self.configs.topic_config(configs)

    def _load_configs(self, address: Address) -> BrokerConfigs:
        static = all_static_settings(self.settings, address, is_member=self.cluster is not None)
        is_encrypted = self.settings.encryption.is_on
        node_id = self.config.node_id
        return BrokerConfigs.of(self.catalog.view, node_id, self.settings.log, static, is_encrypted=is_encrypted)
