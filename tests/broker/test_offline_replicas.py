from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.failing import failing
from tests.storage.data_dirs import CONFIG
from tests.storage.making import batch, read_all, values

from ottla.broker.replication.offline import backoff_s
from ottla.cluster.nodes import broker_data, read_broker
from ottla.cluster.state import BrokerInfo, PartitionKey
from ottla.core.errors import StorageError
from ottla.core.ids import Address, TopicId, TopicPartition
from ottla.storage import recovery
from ottla.storage.folder.data_dir import CLEAN_SHUTDOWN

from .offline_node import OfflineNode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog


@asynccontextmanager
async def _node(path: Path) -> AsyncIterator[OfflineNode]:
    node = OfflineNode(path)
    async with asyncio.timeout(20):
        try:
            yield node
        finally:
            await node.stop()


@contextmanager
def _held_recovery() -> Iterator[_Held]:
    held = _Held()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recovery, "open_log", held.open_log)
        try:
            yield held
        finally:
            held.go_on.set()


class _Held:
    """Holds recoveries, as large logs would, until `go_on` is set."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = threading.Event()
        self._open_log = recovery.open_log
        self._loop = asyncio.get_running_loop()

    def open_log(self, *args: Any) -> PartitionLog:
        self._loop.call_soon_threadsafe(self.begun.set)
        assert self.go_on.wait(20)
        return self._open_log(*args)


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
            await node.opened()

            assert replica.offline is None
            assert values(read_all(node.log)) == []
            assert node.data_dir.retry_deletions() == node.data_dir.deleted_folders() != []

    asyncio.run(run())


def test_a_log_is_recovered_while_other_partitions_are_served(tmp_path: Path) -> None:
    async def run() -> None:
        async with _node(tmp_path) as node:
            node.log.append(batch(b"kept"))
            other = node.data_dir.open_partition(TopicPartition("other", 0), CONFIG)
            node.fail()
            with _held_recovery() as held:
                node.open_due()
                await held.begun.wait()

                other.append(batch(b"served"))
                assert values(read_all(other)) == [b"served"]
                with pytest.raises(StorageError, match="orders-0 is offline"):
                    node.replica.partition.open()
                node.open_due()
                assert len(node.offline._openings) == 1, "it is recovered once at a time"
                assert node.resumed == []

                held.go_on.set()
                await node.opened()

            assert node.resumed == [node.replica]
            assert node.replica.offline is None
            node.log.append(batch(b"new"))
            assert values(read_all(node.log)) == [b"kept", b"new"]

    asyncio.run(run())


@pytest.mark.parametrize("is_re_created", [False, True])
def test_a_topic_deleted_while_its_log_is_recovered_stays_deleted(
    tmp_path: Path,
    is_re_created: bool,  # noqa: FBT001
) -> None:
    async def run() -> None:
        async with _node(tmp_path) as node:
            node.log.append(batch(b"old"))
            old = node.replica
            node.fail()
            with _held_recovery() as held:
                node.open_due()
                await held.begun.wait()
                node.delete()
                if is_re_created:
                    node.create()
                    with pytest.raises(StorageError, match="orders-0 is still being recovered"):
                        node.replica.partition.open()
                held.go_on.set()
                await node.opened()
            assert old not in node.resumed
            assert node.data_dir.logs == {}
            assert node.removed == node.data_dir.deleted_folders() != []
            assert list(node.data_dir.partitions()) == []

            if is_re_created:
                node.open_due()
                await node.opened()
                assert node.resumed == [node.replica]
                assert values(read_all(node.log)) == []

    asyncio.run(run())


def test_a_recovery_that_fails_is_retried(tmp_path: Path) -> None:
    async def run() -> None:
        async with _node(tmp_path) as node:
            node.log.append(batch(b"kept"))
            node.fail()
            with failing("open", ".log"):
                node.open_due()
                await node.opened()
            assert node.replica.offline == "opening orders-0: Input/output error"

            node.open_due()
            await node.opened()

            assert node.resumed == [node.replica]
            assert values(read_all(node.log)) == [b"kept"]

    asyncio.run(run())


def test_a_stop_waits_for_a_recovery_and_does_not_use_its_log(tmp_path: Path) -> None:
    async def run() -> None:
        async with _node(tmp_path) as node:
            node.log.append(batch(b"kept"))
            node.fail()
            with _held_recovery() as held:
                node.open_due()
                await held.begun.wait()
                node.replicas.clear()  # as after a stop, no replica is current
                stop = asyncio.create_task(node.offline.stop())
                await asyncio.sleep(0)
                assert not stop.done()
                held.go_on.set()
                await stop
            assert node.resumed == []
            assert node.data_dir.logs == {}
        assert not (tmp_path / CLEAN_SHUTDOWN).exists()

    asyncio.run(run())
