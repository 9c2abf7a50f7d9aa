"""A follower reports a log start offset to its leader only once it survives a crash."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.storage.data_dirs import ORDERS, SOME_ID, Dirs, append

from ottla.broker.replication.fetcher import Fetcher
from ottla.broker.upkeep.maintenance import Maintenance
from ottla.cluster.state import PartitionKey
from ottla.core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

_LEADER = 2


class _Partition:
    def __init__(self, log: PartitionLog) -> None:
        self.at = ORDERS
        self.log = log


class _Following:
    """A follower with records 0, 1 and 2 whose leader has deleted those before 2."""

    def __init__(self, path: Path) -> None:
        self.dirs = Dirs(path)
        folder = self.dirs.open()
        append(folder, b"0", b"1", b"2")
        log = folder.logs[ORDERS]
        log.flush()
        self.broker: Any = SimpleNamespace(data_dir=folder)
        self.broker.maintenance = Maintenance(self.broker)
        replication: Any = SimpleNamespace(
            config=SimpleNamespace(
                replica_fetch_wait_max_ms=500, replica_fetch_backoff_ms=1, replica_fetch_max_bytes=1 << 20
            ),
            cluster=SimpleNamespace(view=SimpleNamespace(brokers={})),
            node_id=1,
            security=None,
            tls=None,
            broker=self.broker,
            throttling=SimpleNamespace(wait_to_fetch_s=lambda _: 0.0, follower_rate=lambda _: None),
        )
        self.fetcher = Fetcher(replication, _LEADER)
        self.replica: Any = SimpleNamespace(
            key=PartitionKey(SOME_ID, 0),
            leader_epoch=0,
            offline=None,
            log=log,
            partition=_Partition(log),
        )
        log.raise_start(2)

    @property
    def reported(self) -> int:
        wanted = self.fetcher._wanted(self.replica)
        assert wanted is not None
        return wanted.log_start_offset

    async def write_starts(self) -> None:
        self.fetcher._starts.check([self.replica])
        async with asyncio.timeout(20):
            while self.fetcher._starts.are_being_written:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0)


@asynccontextmanager
async def _following(path: Path) -> AsyncIterator[_Following]:
    following = _Following(path)
    try:
        yield following
    finally:
        await following.fetcher.stop()


def test_a_raised_log_start_is_reported_once_its_checkpoint_is_durable(tmp_path: Path) -> None:
    async def follow() -> None:
        async with _following(tmp_path) as following:
            assert following.reported == 0

            following.fetcher._starts.check([following.replica])
            assert following.fetcher._most_wait_ms() < 500, "the next fetch is soon"
            await following.write_starts()

            assert following.reported == 2
            assert following.fetcher._most_wait_ms() == 500

    asyncio.run(follow())


def test_a_log_start_whose_checkpoint_cannot_be_written_is_not_reported(tmp_path: Path) -> None:
    async def follow() -> None:
        async with _following(tmp_path) as following:
            tries = 0

            async def refuse() -> None:
                nonlocal tries
                tries += 1
                raise StorageError("No space left on device")

            following.broker.maintenance.checkpoint = refuse
            await following.write_starts()
            await asyncio.sleep(0)
            await following.write_starts()

            assert following.reported == 0
            assert tries == 1, "it is retried later, not with every fetch"

    asyncio.run(follow())
