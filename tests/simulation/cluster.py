"""The nodes of one history: real brokers, each in a separate context, with simulated I/O."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.broker.broker import Broker
from ottla.broker.config import BrokerConfig
from ottla.broker.inherited import Inherited
from ottla.broker.settings import Settings
from ottla.cluster.config import ClusterConfig
from ottla.cluster.replication.config import ReplicationConfig
from ottla.dmqp.cluster_server import ClusterDmqpServer
from ottla.dmqp.config import DmqpConfig
from ottla.net.config import NetConfig
from ottla.storage.folder import folder_lock

from .catalog import HOST, SimStore
from .disk import Disk, mount
from .edges import SimClock
from .parties import Party

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from ottla.storage.config import LogConfig

    from .catalog import Keeper
    from .churn import Churn
    from .loop import SimLoop
    from .network import Network
    from .work import Told

_logger: Final = logging.getLogger("simulation")

PORT: Final = 9092


class World:
    """The environment of a history."""

    def __init__(self, loop: SimLoop, network: Network, keeper: Keeper, chance: random.Random, root: Path) -> None:
        self.loop = loop
        self.network = network
        self.keeper = keeper
        self.chance = chance
        self.root = root
        self.nodes: dict[int, SimNode] = {}
        self.single: set[str] = set()
        """Topics that may be on one node alone."""
        self.cut_topic: Told | None = None
        """The topic of which records are deleted."""
        self.churn: Churn | None = None
        """The topic that is deleted and created again."""
        self.has_queues = False
        """Whether nodes serve DMQP."""
        self.settings = Settings()

    def party(self, name: str, host: str) -> Party:
        return Party(name, host)

    @property
    def servers(self) -> str:
        return ",".join(f"{node.host}:{PORT}" for node in self.nodes.values())

    @property
    def running(self) -> list[SimNode]:
        return [node for node in self.nodes.values() if node.is_up]


def quick_settings(log: LogConfig, internal_partitions: int) -> Settings:
    base = Settings()
    return base._replace(
        log=log,
        broker=BrokerConfig(
            offsets_topic_partitions=internal_partitions,
            drain_timeout_ms=300,
            retention_check_interval_ms=3_000,
            checkpoint_interval_ms=2_000,
            compaction_check_interval_ms=2_500,
            auto_create_topics=False,
        ),
        groups=replace(
            base.groups,
            initial_rebalance_delay_ms=0,
            consumer_session_timeout_ms=3000,
            consumer_heartbeat_interval_ms=500,
            consumer_min_heartbeat_interval_ms=100,
            consumer_min_session_timeout_ms=1000,
            min_session_timeout_ms=1000,
        ),
        transactions=replace(base.transactions, state_topic_partitions=internal_partitions),
        share=replace(
            base.share,
            state_topic_partitions=internal_partitions,
            record_lock_duration_ms=1500,
            delivery_count_limit=1000,
            session_timeout_ms=3000,
            heartbeat_interval_ms=500,
        ),
        cluster=ClusterConfig(
            session_timeout_ms=2000, default_replication_factor=3, leader_rebalance_interval_ms=10_000
        ),
        replication=ReplicationConfig(
            replica_lag_time_max_ms=1500,
            replica_fetch_wait_max_ms=700,
            replica_fetch_backoff_ms=60,
            high_watermark_checkpoint_interval_ms=1000,
        ),
    )


class SimNode:
    def __init__(self, world: World, node_id: int) -> None:
        self.id = node_id
        self.host = f"10.0.0.{node_id}"
        self.world = world
        self.folder = world.root / f"node-{node_id}"
        self.folder.mkdir()
        self.broker: Broker | None = None
        self.queues: ClusterDmqpServer | None = None
        self.is_up = False
        """It has joined the cluster, and neither left nor died since."""
        self.is_starting = False
        self.party = world.party(f"node-{node_id}", self.host)
        self.party.is_dead = True
        self.disk = Disk(self.folder, world.chance, world.loop.note)
        self.errors: dict[str, int] = {}
        """Of its disk: by the beginning of a path, what fails there."""
        self.store: SimStore | None = None
        self.problem = ""
        self.drift = 0.0
        """Of its clock, from the next start on."""
        self._generation = 0
        self._boots = 0

    def start(self) -> None:
        """Start a new process on the disk's contents; it is up some time later."""
        self._generation += 1
        self.party = self.world.party(f"node-{self.id}.{self._generation}", self.host)
        self.party.drift, self.party.began_s = self.drift, self.world.loop.now_s
        self.party.boot_id = f"boot-{self.id}-{self._boots}"
        self.disk = self.disk.reopened()
        self.disk.errors = self.errors
        mount(self.disk)
        self.world.network.reset_leftovers(self.host)
        self.is_starting = True
        self._starting = self.world.loop.create_task(self._start(self.party), context=self.party.context)

    async def _start(self, party: Party) -> None:
        world = self.world
        settings = world.settings._replace(
            broker=replace(world.settings.broker, data_dir=self.folder, node_id=self.id),
            net=NetConfig(host=self.host, port=PORT),
        )
        store = self.store = SimStore(world.keeper, world.network, party)
        self.broker = self.queues = None
        try:
            broker = await world.loop.run_in_executor(None, lambda: Broker(settings, SimClock(), Inherited(store, ())))
            self.broker = broker
            await broker.start()
            if world.has_queues:
                self.queues = broker.shard_server = ClusterDmqpServer(broker, DmqpConfig(host=self.host))
                await self.queues.start()
        except Exception as failed:  # noqa: BLE001 - told as what it is
            self.problem = f"{type(failed).__name__}: {failed}"
            _logger.info("did not start: %s", self.problem, exc_info=failed)
            self.is_starting = False
            self.crash()
            return
        self.problem = ""
        self.is_starting, self.is_up = False, True
        world.loop.note("up", self.id)

    async def stop(self) -> None:
        """Stop cleanly, however long it takes."""
        broker, party = self.broker, self.party
        if not self.is_up or broker is None:
            return
        self.is_up = False
        stopping = self.world.loop.create_task(self._stop(broker, self.queues), context=party.context)
        await asyncio.wait([stopping], timeout=60)
        if self.party is party:
            if not stopping.done():
                self.problem = "did not stop within a minute"
            self.crash()

    @staticmethod
    async def _stop(broker: Broker, queues: ClusterDmqpServer | None) -> None:
        if queues is not None:
            await queues.stop()
        await broker.stop()

    def crash(self, *, with_machine: bool = False, loses_unsynced: bool = False) -> int:
        """Kill the process; returns the number of lost writes."""
        if self.party.is_dead:
            return 0
        self.is_up = self.is_starting = False
        self.party.is_dead = True
        self.party.is_silent = with_machine
        self.party.is_paused = False
        self.disk.die()
        self.world.network.forget(self.party, tells_others=not with_machine)
        if self.store is not None and not with_machine:
            self.store.is_connected = False
        if self.folder.exists():
            found = os.stat(self.folder)
            folder_lock._held.discard((os.getpid(), found.st_dev, found.st_ino))
        if not loses_unsynced:
            return 0
        self._boots += 1
        return self.disk.lose_unsynced()

    @property
    def is_alive(self) -> bool:
        return not self.party.is_dead

    def pause(self) -> None:
        self.party.is_paused = True

    def resume(self) -> None:
        party = self.party
        if party.is_paused:
            party.is_paused = False
            held, party.held = party.held, []
            self.world.loop.resume(held)

    def cut(self, other: str, *, both: bool = True) -> None:
        self.world.network.cut(self.host, other)
        if both:
            self.world.network.cut(other, self.host)

    def cut_catalog(self) -> None:
        self.cut(HOST)
