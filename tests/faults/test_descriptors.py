"""Exhausted file descriptors.

Outcome: what needs a new one is refused with a storage error that says so; what has one goes on. Nothing is lost, no
descriptor leaks, and once there are some again everything works, without a restart.
"""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.storage.making import offset_for_timestamp

from ottla.core.clock import ManualClock
from ottla.core.errors import StorageError
from ottla.core.ids import TopicPartition
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.retention import delete_expired

from .killing import run
from .making import NOW, Producer, batch, read_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=200)


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Limit this process to this many more open files."""
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        for _ in range(count):
            os.close(taken.pop())
    try:
        yield
    finally:
        for fd in taken:
            os.close(fd)


def close_all_files() -> None:
    """Close the files that other tests left open, in a forked process."""
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def attempt(action: Callable[[], object], refused: list[str]) -> bool:
    try:
        action()
    except StorageError as error:
        assert "Too many open files" in str(error)  # noqa: PT017 - both outcomes are right
        refused.append(str(error))
        return False
    return True


def send(log: PartitionLog, sent: list[bytes], refused: list[str]) -> None:
    made = batch(b"%d" % len(sent) * 100, at=NOW + len(sent), by=Producer(2, 0, len(sent)))
    data = bytes(made)[16:]
    if attempt(lambda: log.append(made), refused):
        sent.append(data)


def use(data_dir: DataDir, sent: list[bytes], refused: list[str], number: int) -> None:
    log = data_dir.logs[TopicPartition("orders", 0)]
    for _ in range(30):
        send(log, sent, refused)
        attempt(lambda: log.read(len(sent) // 2, 100), refused)
    attempt(log.flush, refused)
    attempt(data_dir.checkpoints.write, refused)
    attempt(lambda: offset_for_timestamp(log, NOW + 3), refused)
    attempt(lambda: delete_expired(log, NOW), refused)
    attempt(lambda: data_dir.open_partition(TopicPartition("new", number), CONFIG), refused)


def test_without_descriptors_open_logs_are_served_and_everything_recovers_later(tmp_path: Path) -> None:
    def work() -> None:
        close_all_files()
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        data_dir = DataDir(tmp_path / "data", ManualClock(), open_files=16)
        log = data_dir.open_partition(TopicPartition("orders", 0), CONFIG)
        sent: list[bytes] = []
        refusals = []
        for count in (*range(8), *range(7, -1, -1)):
            refused: list[str] = []
            with descriptors_left(count):
                use(data_dir, sent, refused, len(refusals))
            refusals.append(len(refused))
            assert [read.sent for read in read_all(log)] == sent
            before = len(os.listdir("/proc/self/fd"))
            use(data_dir, sent, [], len(refusals) - 1)  # also opens a partition that was refused
            assert len(os.listdir("/proc/self/fd")) <= before + 16 + 1
            log.flush()
            assert log.recovery_point == log.next_offset
        assert refusals[0] > 0, "nothing was refused: there were descriptors left"
        data_dir.close()
        data_dir = DataDir(tmp_path / "data", ManualClock())
        assert data_dir.was_clean
        reopened = data_dir.open_partition(TopicPartition("orders", 0), CONFIG)
        assert [read.sent for read in read_all(reopened)] == sent

    assert run(work) == 0


def test_more_partitions_than_descriptors_are_appended_to_and_survive_a_crash(tmp_path: Path) -> None:
    places = [TopicPartition("orders", number) for number in range(200)]

    def work() -> None:
        close_all_files()
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
        data_dir = DataDir(tmp_path / "data", ManualClock(), open_files=16)
        for at in places * 2:
            data_dir.open_partition(at, CONFIG).append(batch())
            assert len(os.listdir("/proc/self/fd")) < 100
        for at in places:
            assert len(read_all(data_dir.logs[at])) == 2
            data_dir.logs[at].flush()
            assert data_dir.logs[at].recovery_point == 2
        data_dir.delete_partitions(places[:20])
        for log in data_dir.logs.values():
            log.abandon()
        data_dir._lock.release()
        data_dir = DataDir(tmp_path / "data", ManualClock(), open_files=16)
        assert not data_dir.was_clean
        for at in places[20:]:
            data_dir.open_partition(at, CONFIG).append(batch())
            assert len(read_all(data_dir.logs[at])) == 3
        data_dir.close()
        assert DataDir(tmp_path / "data", ManualClock()).was_clean

    assert run(work) == 0


def test_a_file_that_was_closed_for_others_takes_no_remains_of_a_failed_append(tmp_path: Path) -> None:
    def work() -> None:
        close_all_files()
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
        data_dir = DataDir(tmp_path / "data", ManualClock(), open_files=16)
        log = data_dir.open_partition(TopicPartition("orders", 0), CONFIG)
        log.append(batch())
        segment = log.segments.active
        segment.close_for_now()
        with segment.path.open("ab") as file:
            file.write(b"torn")
        segment.forget_torn_tail()
        assert segment.path.stat().st_size == segment.size
        with segment.path.open("ab") as file:
            file.write(b"torn")
        data_dir.close()
        reopened = DataDir(tmp_path / "data", ManualClock()).open_partition(TopicPartition("orders", 0), CONFIG)
        assert len(read_all(reopened)) == 1
        assert reopened.size == segment.size

    assert run(work) == 0
