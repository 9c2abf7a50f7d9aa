"""The broker: everything it holds, and how it starts and stops. It lives in one event loop, without locks."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.config import BrokerConfig
from ottla.broker.configs.layers import BrokerConfigs
from ottla.broker.configs.static import static_settings
from ottla.broker.dispatch import Dispatcher
from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.flusher import Flusher
from ottla.broker.group_coordinator import GroupCoordinator
from ottla.broker.maintenance import Maintenance
from ottla.broker.producer_ids import ProducerIds
from ottla.broker.topics import CONSUMER_OFFSETS, INTERNAL_TOPIC_CONFIGS, INTERNAL_TOPICS, Topics
from ottla.broker.tracing_config import TracingConfig
from ottla.core.clock import SteadyClock, SystemClock
from ottla.core.errors import InvalidTopic
from ottla.core.ids import Address, problem_with_topic_name
from ottla.groups.config import GroupConfig
from ottla.net.config import NetConfig, parse_address
from ottla.net.listener import Listener
from ottla.storage.catalog.sqlite import SqliteCatalog
from ottla.storage.config import LogConfig
from ottla.storage.data_dir import DataDir

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.configs.topic_config import TopicConfig
    from ottla.broker.context import Client
    from ottla.broker.topics import TopicState
    from ottla.broker.tracing import Tracing
    from ottla.core.clock import Clock
    from ottla.net.connection import Connection
    from ottla.storage.catalog.catalog import Edit
    from ottla.storage.catalog.entries import ConfigResource

_logger: Final = logging.getLogger(__name__)

_CLOSING_THREADS: Final = 16


class Settings(NamedTuple):
    """All that a broker is configured with."""

    broker: BrokerConfig = BrokerConfig()
    net: NetConfig = NetConfig()
    log: LogConfig = LogConfig()
    groups: GroupConfig = GroupConfig()
    tracing: TracingConfig = TracingConfig()


class Broker:
    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.config = settings.broker
        self.settings = settings
        self.tracing = self._open_tracing() if settings.tracing.otlp_endpoint else None
        self.clock = clock or SystemClock()
        self.steady_clock = SteadyClock(self.clock)
        self.data_dir = DataDir(settings.broker.data_dir, self.clock)
        with ExitStack() as undoing:
            undoing.callback(self.data_dir.close)
            is_new_catalog = not (settings.broker.data_dir / "catalog.sqlite").exists()
            self.catalog = SqliteCatalog.open(settings.broker.data_dir)
            undoing.callback(self.catalog.close)
            self.configs = self._load_configs(Address(settings.net.host, settings.net.port))
            self.topics = Topics(self.data_dir, self.catalog, self._config_for)
            self.topics.load(is_new_catalog=is_new_catalog)
            undoing.pop_all()
        self.producer_ids = ProducerIds(self.catalog)
        self.fetch_sessions = FetchSessions(settings.broker.max_fetch_sessions)
        self.flusher = Flusher(self.topics.open_partitions)
        self.groups = GroupCoordinator(self, settings.groups)
        self.maintenance = Maintenance(self)
        self.dispatcher = Dispatcher(self)
        self.listener = Listener(settings.net, self.dispatcher)
        self._advertised = Address(*parse_address(settings.net.advertised)) if settings.net.advertised else None

    @property
    def cluster_id(self) -> str:
        return self.catalog.cluster_id

    @property
    def address(self) -> Address:
        return self.listener.address

    # Starting and stopping

    async def start(self) -> None:
        if not self.data_dir.was_clean:
            await self._recover()
        self.groups.start()
        await self.listener.start()
        self.configs = self._load_configs(self.address)
        self.flusher.start()
        self.maintenance.start()

    async def _recover(self) -> None:
        """After a crash every log is checked before anybody is served, so that nobody waits for it later."""
        loop = asyncio.get_running_loop()
        for partition in self.topics.all_partitions():
            if (self.data_dir.path / str(partition.at)).exists():
                await loop.run_in_executor(None, lambda p=partition: p.log)  # type: ignore[misc]

    async def stop(self) -> None:
        """Answer what is under way, then leave everything so that the next start is quick."""
        self.listener.drain()
        self.groups.stop()
        for partition in self.topics.open_partitions():
            for wait in tuple(partition.waits):
                wait.give_up()
        await self.listener.stop(self.config.drain_timeout_ms / 1000)
        await self.maintenance.stop()
        await self.flusher.stop()
        loop = asyncio.get_running_loop()
        if self.tracing is not None:
            await loop.run_in_executor(None, self.tracing.close)
        await loop.run_in_executor(None, self.close)

    def close(self) -> None:
        with ThreadPoolExecutor(_CLOSING_THREADS) as pool:
            self.data_dir.close(pool.map)
        self.catalog.close()

    # What handlers ask

    def advertised_to(self, connection: Client) -> Address:
        """Where this client should connect to: where it is told to be, else where it is already."""
        return self._advertised or Address(*connection.local)

    def check_topic_name(self, name: str) -> None:
        problem = problem_with_topic_name(name)
        if problem:
            raise InvalidTopic(problem)

    def create_topic(
        self, name: str, partitions: int | None = None, configs: Mapping[str, str] | None = None
    ) -> TopicState:
        """With what is usual for a topic of this name where nothing else is said."""
        if name not in INTERNAL_TOPICS:
            return self.topics.create(name, partitions or self.config.default_partitions, configs)
        if partitions is None and name == CONSUMER_OFFSETS:
            partitions = self.config.offsets_topic_partitions
        configs = INTERNAL_TOPIC_CONFIGS if configs is None else configs
        return self.topics.create(name, partitions or self.config.default_partitions, configs, is_internal=True)

    def delete_topic(self, state: TopicState) -> None:
        """It is gone at once; its files go in the background."""
        self.maintenance.remove(self.topics.delete(state))
        self.groups.topic_deleted(state.name, state.raw_id)
        for partition in state.partitions:
            self.flusher.forget(partition)

    def change_configs(self, resource: ConfigResource, edit: Edit[str]) -> None:
        """Of this broker, or of all brokers."""
        self.catalog.change_configs(resource, edit)
        self.configs = self._load_configs(self.address)
        self.topics.reconfigure()

    def connection_closed(self, connection: Connection) -> None:
        """Somebody has gone; what they wait for is cancelled by the connection itself."""

    def _open_tracing(self) -> Tracing:
        from ottla.broker.tracing import Tracing

        return Tracing(self.settings.tracing, self.config.node_id)

    # Configs

    def _config_for(self, configs: Mapping[str, str]) -> TopicConfig:
        return self.configs.topic_config(configs)

    def _load_configs(self, address: Address) -> BrokerConfigs:
        static = static_settings(self.config, self.settings.net, self.settings.groups, address)
        return BrokerConfigs.of(self.catalog.view, self.config.node_id, self.settings.log, static)
