"""Replicas whose log cannot be opened or failed, on brokers in one event loop."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from ottla.broker.interfaces.partition_facts import Bounds, bounds, sizes
from ottla.cluster.state import NO_NODE
from ottla.core.errors import ErrorCode, StorageError
from ottla.http.monitoring import metrics
from ottla.storage.config import LogConfig

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

        assert (brokers.state().leader, brokers.state().isr) == (NO_NODE, (1,))

        broken.rmdir()
        await until(lambda: not brokers.catalog.view.brokers[1].offline)
        assert not partition.is_offline
        brokers.settle()
        assert brokers.state().leader_epoch == 2
        await until(lambda: partition.leads)
        assert (await produce(brokers, 1, b"v")).error_code == ErrorCode.NONE


@in_loop
async def test_a_follower_whose_append_fails_leaves_the_isr_at_once(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1, min_insync=2)
        await until(lambda: brokers[3].topics.partition("t", 0).is_open)
        brokers.log(3).go_offline("a write failed")
        await until(lambda: brokers.state().isr == (1, 2))

        assert (await produce(brokers, 1, b"v")).error_code == ErrorCode.NONE
        assert brokers.state().leader == 1


@in_loop
async def test_a_replica_with_a_failed_log_recovers_and_rejoins_without_a_restart(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1, min_insync=2)
        assert (await produce(brokers, 1, b"a")).error_code == ErrorCode.NONE
        await until(lambda: brokers.log(3).next_offset == 1)
        failed = brokers.log(3)
        failed.go_offline("fsync failed")
        await until(lambda: brokers.state().isr == (1, 2))
        assert (await produce(brokers, 1, b"b")).error_code == ErrorCode.NONE

        await until(lambda: brokers.state().isr == (1, 2, 3))
        assert brokers.log(3) is not failed
        assert brokers.log(3).next_offset == 2
        assert not brokers.catalog.view.brokers[3].offline


@in_loop
async def test_the_last_in_sync_replica_leads_again_with_the_records_on_disk_after_a_failed_fsync(
    tmp_path: Path,
) -> None:
    async with brokers_of(tmp_path, count=1, log=LogConfig(flush="ack")) as brokers:
        brokers.place(leader=1)
        assert (await produce(brokers, 1, b"a")).error_code == ErrorCode.NONE
        partition, epoch = brokers[1].topics.partition("t", 0), brokers.state().leader_epoch
        brokers[1].flusher.disk_error = lambda _: OSError(errno.EIO, "I/O error")
        assert (await produce(brokers, 1, b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await until(lambda: brokers.state().leader == NO_NODE)
        assert brokers.catalog.view.brokers[1].offline == {brokers.key}
        assert brokers.state().isr == (1,)

        brokers[1].flusher.disk_error = lambda _: None
        await until(lambda: not brokers.catalog.view.brokers[1].offline)
        brokers.settle()
        await until(lambda: partition.leads)
        assert brokers.state().leader_epoch == epoch + 2
        assert (await produce(brokers, 1, b"c")).error_code == ErrorCode.NONE
        assert brokers.log(1).epochs.latest == epoch + 2


@in_loop
async def test_a_failed_log_is_not_reopened_in_the_epoch_in_which_it_led(tmp_path: Path) -> None:
    async with brokers_of(tmp_path, count=1) as brokers:
        brokers.place(leader=1)
        partition = brokers[1].topics.partition("t", 0)
        await until(lambda: partition.leads)
        brokers.catalog.nodes[1].is_cut_off = True
        brokers.log(1).go_offline("a write failed")
        assert brokers[1].replication is not None
        brokers[1].replication.offline.open_due(1e12)
        assert partition.is_offline

        brokers.catalog.nodes[1].is_cut_off = False
        await until(lambda: not partition.is_offline)
        assert brokers.state().leader == NO_NODE


@in_loop
async def test_a_replica_that_may_lack_records_leaves_the_isr_to_absent_members(tmp_path: Path) -> None:
    async with brokers_of(tmp_path, count=2) as brokers:
        brokers.place(leader=1)
        await until(lambda: brokers[1].topics.partition("t", 0).is_open)
        await brokers.kill(2)
        brokers.log(1).go_offline("fsync failed")
        await until(lambda: brokers.state().isr == (2,))
        assert brokers.state().leader == NO_NODE


@in_loop
async def test_a_damaged_log_is_not_reopened(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        await until(lambda: brokers[3].topics.partition("t", 0).is_open)
        brokers.log(3).take_offline("damaged")
        await until(lambda: brokers.state().isr == (1, 2))
        replication = brokers[3].replication
        assert replication is not None
        replication.offline.open_due(1e12)
        assert brokers.log(3).is_offline
