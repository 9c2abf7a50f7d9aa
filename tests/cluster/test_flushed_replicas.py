"""`flush = "ack"` in a cluster: acknowledged records are synced, and truncation ends the wait."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.cluster.state import NO_NODE
from ottla.core.errors import ErrorCode, StorageError
from ottla.storage.config import LogConfig
from ottla.storage.truncation import truncate_to

from .memory import brokers_of, until
from .test_replication import ALL, LEADER, batch, in_loop, produce, values_on

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from ottla.broker.partition import Partition

    from .memory import Brokers

ON_ACK = LogConfig(flush="ack")


class Gate:
    def __init__(self) -> None:
        self.is_reached = False
        self._opened = threading.Event()

    def wait(self) -> None:
        self.is_reached = True
        assert self._opened.wait(20)

    def open(self) -> None:
        self._opened.set()


@contextmanager
def held_fsync(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[Gate]:
    """Hold the next fsync of a file in this folder until the gate is opened."""
    gate = Gate()
    really = os.fsync

    def fsync(fd: int) -> None:
        if not gate.is_reached and os.readlink(f"/proc/self/fd/{fd}").startswith(f"{folder}/"):
            gate.wait()
        really(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    try:
        yield gate
    finally:
        gate.open()


async def stepped_down(brokers: Brokers) -> None:
    """Node 1 loses leadership, and its appends are truncated."""
    brokers.catalog.elect(brokers.key, leader=NO_NODE)
    await until(lambda: brokers[1].topics.partition("t", 0).leader_epoch == 1)
    truncate_to(brokers.log(1), 0)


@in_loop
async def test_an_append_truncated_during_its_fsync_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with brokers_of(tmp_path, count=1, log=ON_ACK) as brokers:
        brokers.place(leader=1)
        await until(lambda: brokers[1].topics.partition("t", 0).is_open)
        with held_fsync(monkeypatch, tmp_path / "1" / "t-0") as gate:
            answer = asyncio.create_task(produce(brokers, 1, b"cut", acks=LEADER))
            await until(lambda: gate.is_reached)
            await stepped_down(brokers)
        async with asyncio.timeout(5):
            assert (await answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@in_loop
async def test_a_truncated_append_is_refused_even_if_another_record_was_synced_at_its_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with brokers_of(tmp_path, count=1, log=ON_ACK) as brokers:
        brokers.place(leader=1)
        await until(lambda: brokers[1].topics.partition("t", 0).is_open)
        with held_fsync(monkeypatch, tmp_path / "1" / "t-0") as gate:
            answer = asyncio.create_task(produce(brokers, 1, b"cut", acks=ALL))
            await until(lambda: gate.is_reached)
            await stepped_down(brokers)
            brokers.log(1).append(bytearray(batch(b"other")), 1)
            brokers.catalog.elect(brokers.key, leader=1)
            await until(lambda: brokers[1].topics.partition("t", 0).leader_epoch == 2)
        async with asyncio.timeout(5):
            assert (await answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        await until(lambda: brokers.log(1).recovery_point == 1)
        assert await values_on(brokers, 1) == [b"other"]


@in_loop
async def test_a_follower_reports_a_record_only_after_its_fsync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A follower's fsync fails a few times, as without free file descriptors."""
    async with brokers_of(tmp_path, count=2, log=ON_ACK) as brokers:
        brokers.place(leader=1)
        await until(lambda: all(brokers[node].topics.partition("t", 0).is_open for node in (1, 2)))
        follower = brokers[2].flusher
        really = follower.flush
        failures = [StorageError("no descriptors")] * 3

        async def flush(partition: Partition) -> None:
            if failures:
                raise failures.pop()
            await really(partition)

        monkeypatch.setattr(follower, "flush", flush)

        assert (await produce(brokers, 1, b"v")).error_code == ErrorCode.NONE

        assert brokers.log(2).recovery_point == 1
        assert failures == []
