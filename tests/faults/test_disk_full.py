"""Full disks: a real, small file system, and other limits.

Outcome: what does not fit is refused with a storage error, half-written bytes are taken back, everything that was
acknowledged can be read all the time, and once there is room again appending goes on without a restart.
"""

from __future__ import annotations

import errno
import os
import resource
from typing import TYPE_CHECKING

import pytest
from tests.storage.making import offset_for_timestamp

from ottla.core.clock import ManualClock
from ottla.core.errors import StorageError
from ottla.core.ids import TopicPartition
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import CLEAN_SHUTDOWN, DataDir
from ottla.storage.retention import delete_expired

from .killing import run
from .making import Producer, batch, leave, read_all
from .mounting import CannotMount, tmpfs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

    from .conftest import Told

AT = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=16_000, index_interval_bytes=300)
PAGE = 4096


class Disk:
    """A small disk, and a file that fills it."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self._ballast = folder / "ballast"

    @property
    def free_pages(self) -> int:
        return os.statvfs(self._ballast.parent).f_bavail

    def fill(self, pages_left: int = 0) -> None:
        with self._ballast.open("ab") as ballast:
            for _ in range(self.free_pages - pages_left):
                ballast.write(bytes(PAGE))
                ballast.flush()
        assert self.free_pages <= pages_left

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    try:
        with tmpfs(tmp_path / "small", "400k") as folder:
            yield Disk(folder)
    except CannotMount as missing:
        pytest.skip(f"a small disk is needed: {missing}")


class Client:
    """An idempotent producer that retries refused batches and remembers accepted ones."""

    def __init__(self) -> None:
        self.acknowledged: list[bytes] = []
        self.refused = 0

    def send(self, log: PartitionLog, size: int) -> bool:
        made = batch(b"%d" % len(self.acknowledged) * size, by=Producer(3, 0, len(self.acknowledged)))
        sent = bytes(made)[16:]
        try:
            appended = log.append(made)
        except StorageError:
            self.refused += 1
            return False
        assert not appended.is_duplicate
        self.acknowledged.append(sent)
        return True

    def check(self, log: PartitionLog) -> None:
        assert [read.sent for read in read_all(log)] == self.acknowledged
        # No byte of refused batches is left behind.
        assert [segment.path.stat().st_size for segment in log.segments] == [segment.size for segment in log.segments]


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_on_a_full_disk_appends_fail_reads_work_and_freed_space_is_used(disk: Disk) -> None:
    client = Client()
    data_dir = DataDir(disk.data, ManualClock())
    log = data_dir.open_partition(AT, CONFIG)
    while client.send(log, 5000):
        pass
    assert len(client.acknowledged) > 10
    with pytest.raises(StorageError, match="No space left on device"):
        log.append(batch(b"x" * 9000))
    client.check(log)
    log.raise_start(log.segments[2].base_offset)
    before = open_descriptors()
    for path in delete_expired(log, ManualClock().now_ms()):
        path.unlink()
    del client.acknowledged[: len(client.acknowledged) - len(read_all(log))]
    assert not log.append(batch(b"again" * 1000)).is_duplicate
    log.flush()
    assert open_descriptors() <= before
    leave(data_dir)


@pytest.mark.parametrize("size", [50, 1500])
def test_nothing_is_lost_or_torn_wherever_the_space_ends(disk: Disk, size: int) -> None:
    """From no free page to enough for all: the space ends in batches, indexes, snapshots and between segments."""
    refused = []
    for pages in range(24):
        client = Client()
        data_dir = DataDir(disk.data, ManualClock())
        at = TopicPartition("orders", pages)
        log = data_dir.open_partition(at, CONFIG)
        for number in range(20):
            client.send(log, size + number * 31)
        disk.fill(pages)
        before = open_descriptors()
        for number in range(60):
            # A batch that does not fit may be followed by a smaller one that does.
            client.send(log, size * (number % 5))
        assert open_descriptors() <= before + 1, "descriptors were lost"
        client.check(log)
        refused.append(client.refused)
        leave(data_dir)

        data_dir = DataDir(disk.data, ManualClock())
        log = data_dir.open_partition(at, CONFIG)
        client.check(log)
        disk.free()
        for _ in range(20):
            assert client.send(log, size)
        client.check(log)
        data_dir.delete_partitions([at])
        for folder in data_dir.deleted_folders():
            for path in folder.iterdir():
                path.unlink()
        data_dir.close()
    assert refused[0] > 20
    assert refused[-1] < refused[0]


def test_a_stop_on_a_full_disk_is_not_clean_and_loses_nothing(disk: Disk, told: Told) -> None:
    client = Client()
    data_dir = DataDir(disk.data, ManualClock())
    log = data_dir.open_partition(AT, CONFIG)
    for _ in range(30):
        assert client.send(log, 900)
    disk.fill()
    data_dir.close()
    assert "could not close the log cleanly" in told.text or "the next start will recover the logs" in told.text
    assert not (disk.data / CLEAN_SHUTDOWN).exists()
    disk.free()
    with DataDir(disk.data, ManualClock()) as data_dir:
        client.check(data_dir.open_partition(AT, CONFIG))
    assert (disk.data / CLEAN_SHUTDOWN).exists()


def test_a_checkpoint_without_space_keeps_the_old_one(disk: Disk) -> None:
    data_dir = DataDir(disk.data, ManualClock())
    log = data_dir.open_partition(AT, CONFIG)
    log.append(batch())
    log.flush()
    data_dir.checkpoints.write()
    old = (disk.data / "recovery-point-offset-checkpoint").read_bytes()
    log.append(batch())
    log.flush()
    disk.fill()
    with pytest.raises(StorageError, match="writing checkpoints: No space left"):
        data_dir.checkpoints.write()
    assert (disk.data / "recovery-point-offset-checkpoint").read_bytes() == old
    assert not list(disk.data.glob("*.tmp"))
    disk.free()
    data_dir.checkpoints.write()
    assert (disk.data / "recovery-point-offset-checkpoint").read_bytes() == b"0\n1\norders 0 2\n"
    leave(data_dir)


def lose_indexes(folder: Path) -> None:
    for path in [*folder.glob("*index"), *folder.glob("*.snapshot"), folder / "leader-epoch-checkpoint"]:
        path.unlink()


def tear_the_end(folder: Path) -> None:
    with max(folder.glob("*.log")).open("ab") as segment:
        segment.write(b"torn" * 20)


@pytest.mark.parametrize("damage", [lose_indexes, tear_the_end])
def test_a_start_on_a_full_disk_serves_existing_records(disk: Disk, damage: Callable[[Path], None], told: Told) -> None:
    client = Client()
    data_dir = DataDir(disk.data, ManualClock())
    log = data_dir.open_partition(AT, CONFIG)
    for _ in range(60):
        assert client.send(log, 900)
    leave(data_dir)
    damage(disk.data / str(AT))
    disk.fill()

    data_dir = DataDir(disk.data, ManualClock())
    log = data_dir.open_partition(AT, CONFIG)
    client.check(log)
    assert offset_for_timestamp(log, ManualClock().now_ms()) is not None
    if damage is tear_the_end:
        assert "could not keep the truncated part" in told.text
    while client.send(log, 900):
        pass
    disk.free()
    for _ in range(20):
        assert client.send(log, 900)
    client.check(log)
    leave(data_dir)


def test_a_file_size_limit_refuses_appends_until_lifted(tmp_path: Path) -> None:
    """A real EFBIG: the process may not write files larger than 8 KiB."""

    def work() -> None:
        client = Client()
        log = DataDir(tmp_path / "data", ManualClock()).open_partition(AT, CONFIG)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
        while client.send(log, 900):
            pass
        client.check(log)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        for _ in range(20):
            assert client.send(log, 900)
        client.check(log)
        assert client.refused == 1

    assert run(work) == 0


@pytest.mark.parametrize("code", [errno.EDQUOT, errno.ENOSPC])
def test_a_partial_write_is_rolled_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    client = Client()
    data_dir = DataDir(tmp_path / "data", ManualClock())
    log = data_dir.open_partition(AT, CONFIG)
    assert client.send(log, 900)
    really_write = os.pwrite

    def write_half(fd: int, data: bytes, position: int) -> int:
        if len(data) < 100:
            raise OSError(code, os.strerror(code))
        return really_write(fd, memoryview(data)[: len(data) // 2], position)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", write_half)
        assert not client.send(log, 900)
        client.check(log)
    assert client.send(log, 900)
    client.check(log)
    leave(data_dir)
