"""A replica that cannot be opened, on brokers in one event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.broker.partition_facts import Bounds, bounds, sizes
from ottla.core.errors import ErrorCode, StorageError
from ottla.http import metrics

from .memory import brokers_of, until
from .test_replication import fetch, in_loop, produce

if TYPE_CHECKING:
    from pathlib import Path


@in_loop
async def test_the_last_in_sync_replica_is_reported_until_it_can_be_opened(tmp_path: Path) -> None:
    broken = tmp_path / "1" / "t-0" / f"{0:020}.log"
    async with brokers_of(tmp_path, count=1) as brokers:
        broken.mkdir(parents=True)
        brokers.place(leader=1)
        partition = brokers[1].topics.partition("t", 0)
        await until(lambda: brokers.catalog.view.brokers[1].offline == {brokers.key})

        assert partition.is_offline
        assert (await fetch(brokers, 1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await produce(brokers, 1, b"v")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert await bounds(brokers[1], [partition], is_lenient=True) == {partition.at: Bounds(0, 0)}
        assert await sizes(brokers[1], [partition]) == {partition.at: 0}
        assert b'ottla_log_offline{topic="t",partition="0"} 1' in b"".join(
            [each.text() for each in await metrics._logs(brokers[1])]
        )
        with pytest.raises(StorageError, match="t-0 is offline"):
            await bounds(brokers[1], [partition])

        broken.rmdir()
        await until(lambda: not partition.is_offline)
        assert (await produce(brokers, 1, b"v")).error_code == ErrorCode.NONE
        await until(lambda: not brokers.catalog.view.brokers[1].offline)


@in_loop
async def test_a_follower_whose_append_fails_leaves_the_isr_at_once(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1, min_insync=2)
        await until(lambda: brokers[3].topics.partition("t", 0).is_open)
        brokers.log(3)._go_offline("a write failed")
        await until(lambda: brokers.state().isr == (1, 2))

        assert (await produce(brokers, 1, b"v")).error_code == ErrorCode.NONE
        assert brokers.log(3).next_offset == 0
        assert brokers.state().leader == 1
