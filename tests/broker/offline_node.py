"""A broker's replicas of one topic, with real logs, without a cluster around it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.storage.data_dirs import CONFIG, Dirs

from ottla.broker.configs.layers import BrokerConfigs
from ottla.broker.replication.offline import OfflineReplicas
from ottla.broker.replication.replica import Replica
from ottla.broker.topics import Topics
from ottla.cluster.state import PartitionKey, PartitionState
from ottla.core.ids import TopicId
from ottla.storage.catalog.entries import Topic

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

NODE, LEADER = 1, 2
_DAY_S = 86_400.0


class OfflineNode:
    """It follows another broker, which has all records: its replica is neither in the ISR nor eligible."""

    def __init__(self, path: Path) -> None:
        self.dirs = Dirs(path)
        self.data_dir = self.dirs.open()
        self.data_dir.sets_strays_aside = True
        self.configs = BrokerConfigs(log=CONFIG, static={}, dynamic_default={}, dynamic={})
        self.topics = Topics(self.data_dir, Any, self.configs.topic_config, _never)  # type: ignore[arg-type]
        self.removed: list[Path] = []
        self.resumed: list[Replica] = []
        self.replicas: dict[PartitionKey, Replica] = {}
        self.view = SimpleNamespace(brokers={}, partitions={})
        self.replication: Any = SimpleNamespace(
            node_id=NODE,
            config=SimpleNamespace(replica_fetch_backoff_ms=200),
            cluster=SimpleNamespace(view=self.view, report_offline=_report),
            broker=SimpleNamespace(
                data_dir=self.data_dir,
                topics=self.topics,
                flusher=SimpleNamespace(forget=lambda _: None),
                maintenance=SimpleNamespace(remove=self.removed.extend),
            ),
            is_current=lambda replica: self.replicas.get(replica.key) is replica,
            unfollow=lambda _: None,
            resume=self.resumed.append,
        )
        self.offline = OfflineReplicas(self.replication)
        self.replication.offline = self.offline
        self.replica = self.create()

    def create(self) -> Replica:
        """Create the topic, or another one with its name; returns this broker's replica."""
        topic = self.topics.put(Topic("orders", TopicId.random(), partitions=1))
        key = PartitionKey(topic.entry.id, 0)
        replica = self.replicas[key] = Replica(topic.partitions[0], key, self.replication, 0)
        state = PartitionState(key.topic_id, "orders", 0, (LEADER, NODE), leader=LEADER, isr=(LEADER,))
        self.view.partitions[key] = replica.state = state
        self.replica = replica
        return replica

    def delete(self) -> None:
        key = self.replica.key
        self.removed += self.topics.forget(self.topics.by_name["orders"])
        self.offline.forget(self.replicas.pop(key))
        del self.view.partitions[key]

    def fail(self, why: str = "Input/output error") -> None:
        """The disk fails while the log is open."""
        self.offline.log_failed(self.replica, why, may_lack_records=True, is_final=False)

    def open_due(self) -> None:
        self.offline.open_due(asyncio.get_running_loop().time() + _DAY_S)

    async def opened(self) -> None:
        """Wait for the replicas that are being reopened."""
        await asyncio.gather(*self.offline._openings)

    @property
    def log(self) -> PartitionLog:
        return self.replica.partition.log

    async def stop(self) -> None:
        await self.offline.stop()
        self.data_dir.close()


async def _never(*_: object) -> None:
    raise AssertionError


async def _report(_: object) -> None:
    pass
