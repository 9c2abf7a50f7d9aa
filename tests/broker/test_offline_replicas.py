from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.faults.failing import failing
from tests.storage.making import batch, read_all, values

from ottla.broker.replication.offline import backoff_s
from ottla.cluster.nodes import broker_data, read_broker
from ottla.cluster.state import BrokerInfo, PartitionKey
from ottla.core.errors import StorageError
from ottla.core.ids import Address, TopicId

from .offline_node import OfflineNode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@asynccontextmanager
async def _node(path: Path) -> AsyncIterator[OfflineNode]:
    node = OfflineNode(path)
    async with asyncio.timeout(20):
        try:
            yield node
        finally:
            await node.stop()


def test_opening_a_failed_log_is_retried_with_backoff() -> None:
    waits = [backoff_s(0.2, attempts) for attempts in (1, 2, 3, 100)]

    assert waits == [0.2, 0.4, 0.8, 30.0]


def test_a_nodes_registration_lists_its_offline_replicas() -> None:
    listeners = {"PLAINTEXT": Address("h", 9092)}
    offline = frozenset({PartitionKey(TopicId.random(), 7), PartitionKey(TopicId.random(), 0)})
    broker = BrokerInfo(1, listeners, "a", 5, 100, offline=offline)

    assert read_broker(1, broker_data(broker), 5, is_draining=False) == broker


def test_a_topic_re_created_while_its_folder_fails_is_online_once_the_disk_works(tmp_path: Path) -> None:
    async def run() -> None:
        async with _node(tmp_path) as node:
            node.log.append(batch(b"old"))
            node.fail()
            with failing("rename", "/orders-0", times=2):
                node.delete()
                replica = node.create()
                with pytest.raises(StorageError):
                    replica.partition.open()
            assert replica.offline is not None

            node.open_due()

            assert replica.offline is None
            assert values(read_all(node.log)) == []
            assert node.data_dir.retry_deletions() == node.data_dir.deleted_folders() != []

    asyncio.run(run())
