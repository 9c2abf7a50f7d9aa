"""Disk errors: fsync, write, read, rename or unlink return EIO.

Outcome: a failed fsync or write takes that partition offline, with a line that cannot be overlooked; nothing is
acknowledged that may not be durable, and no later fsync is believed. A failed read fails that read. Other
partitions go on, and so does the process.
"""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING

import pytest
from tests.storage.making import offset_for_timestamp

from ottla.core.clock import ManualClock
from ottla.core.errors import ApiError, StorageError
from ottla.core.ids import TopicPartition
from ottla.records.control import EndMarker
from ottla.storage.config import LogConfig
from ottla.storage.folder.closing import close_log
from ottla.storage.folder.data_dir import CLEAN_SHUTDOWN, DataDir
from ottla.storage.retention import delete_expired
from ottla.storage.truncation import truncate_to

from .failing import failing, failing_device
from .making import NOW, Producer, batch, leave, read_all
from .mounting import CannotMount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

    from .conftest import Told

AT = TopicPartition("orders", 0)
OTHER = TopicPartition("jobs", 0)
CONFIG = LogConfig(segment_bytes=1024, index_interval_bytes=100, flush="ack")
LOG = "orders-0/00000000000000000000.log"


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[DataDir]:
    data_dir = DataDir(tmp_path / "data", ManualClock())
    for at in (AT, OTHER):
        log = data_dir.open_partition(at, CONFIG)
        for number in range(3):
            log.append(batch(b"%d" % number, at=NOW + number))
        log.flush()
    yield data_dir
    leave(data_dir)


def assert_offline(log: PartitionLog, told: Told) -> None:
    uses: list[Callable[[], object]] = [
        lambda: log.append(batch()),
        lambda: log.read(0, 100),
        log.flush,
        lambda: truncate_to(log, 1),
        lambda: close_log(log),
    ]
    for use in uses[:-1]:
        with pytest.raises(StorageError, match="offline"):
            use()
    loud = [record for record in told.records if record.levelno == logging.CRITICAL]
    assert len(loud) == 1
    assert "orders-0: the log is offline, on a single broker until a restart" in loud[0].getMessage()


def assert_goes_on(log: PartitionLog) -> None:
    appended = log.append(batch())
    log.flush()
    assert log.acknowledged_offset == appended.last_offset + 1
    assert read_all(log)[-1].base_offset == appended.base_offset


def open_after(data_dir: DataDir) -> PartitionLog:
    """Close and reopen."""
    data_dir.close()
    assert not (data_dir.path / CLEAN_SHUTDOWN).exists()
    data_dir.__init__(data_dir.path, ManualClock())  # type: ignore[misc]
    data_dir.open_partition(OTHER, CONFIG)
    return data_dir.open_partition(AT, CONFIG)


def test_a_failed_fsync_takes_the_partition_offline_and_acknowledges_nothing(data_dir: DataDir, told: Told) -> None:
    log = data_dir.logs[AT]
    log.append(batch(b"not durable"))
    with failing("fsync", LOG) as refused, pytest.raises(StorageError, match="fsync failed: Input/output error"):
        log.flush()
    assert len(refused) == 1
    assert log.acknowledged_offset == 3
    assert_offline(log, told)
    assert log.acknowledged_offset == 3
    assert not log.is_flush_due(100, 0)
    assert_goes_on(data_dir.logs[OTHER])

    log = open_after(data_dir)
    assert [read.base_offset for read in read_all(log)][:3] == [0, 1, 2]
    assert_goes_on(log)


def test_a_flush_that_succeeds_beside_a_failing_one_is_not_trusted(data_dir: DataDir) -> None:
    """The kernel reports an error only once."""
    log = data_dir.logs[AT]
    log.append(batch(b"first"))
    first = log.begin_flush()
    log.append(batch(b"second"))
    second = log.begin_flush()
    assert first is not None
    assert second is not None
    with failing("fsync", LOG):
        first.run()
    second.run()
    assert second.error is None
    log.finish_flush(second)
    assert log.acknowledged_offset == 3, "the segment of the first flush is not durable yet"
    with pytest.raises(StorageError):
        log.finish_flush(first)
    assert log.acknowledged_offset == 3


def test_a_flush_counts_only_after_earlier_ones(data_dir: DataDir) -> None:
    """The first also covers a segment that the second does not."""
    log = data_dir.logs[AT]
    for _ in range(12):
        log.append(batch(b"x" * 200))
    first = log.begin_flush()
    log.append(batch(b"second"))
    second = log.begin_flush()
    assert first is not None
    assert second is not None
    second.run()
    log.finish_flush(second)
    assert log.acknowledged_offset == 3
    first.run()
    log.finish_flush(first)
    assert log.acknowledged_offset == log.next_offset


def test_a_flush_started_before_a_truncation_does_not_cover_later_records(data_dir: DataDir) -> None:
    log = data_dir.logs[AT]
    log.append(batch(b"old"))
    flush = log.begin_flush()
    assert flush is not None
    flush.run()
    truncate_to(log, 2)
    for _ in range(5):
        log.append(batch(b"new"))
    log.finish_flush(flush)
    assert log.acknowledged_offset == 2


def test_a_truncation_keeps_track_of_unsynced_segments(data_dir: DataDir) -> None:
    log = data_dir.logs[AT]
    while len(log.segments) < 4:
        log.append(batch(b"x" * 200))
    truncate_to(log, log.segments[3].base_offset)
    log.append(batch(b"x"))
    with failing("fsync", log.segments[1].path.name), pytest.raises(StorageError):
        log.flush()


def test_segments_deleted_by_retention_need_no_flush(data_dir: DataDir) -> None:
    log = data_dir.logs[AT]
    while len(log.segments) < 4:
        log.append(batch(b"x" * 200))
    log.raise_start(log.segments[2].base_offset)
    assert delete_expired(log, NOW)
    log.flush()
    assert log.acknowledged_offset == log.next_offset


def test_a_failed_fsync_at_the_end_makes_the_stop_unclean(data_dir: DataDir, told: Told) -> None:
    data_dir.logs[AT].append(batch())
    with failing("fsync", LOG):
        data_dir.close()
    assert not (data_dir.path / CLEAN_SHUTDOWN).exists()
    assert "orders-0: could not close the log cleanly" in told.text
    data_dir.__init__(data_dir.path, ManualClock())  # type: ignore[misc]
    assert_goes_on(data_dir.open_partition(AT, CONFIG))


@pytest.mark.parametrize("name", ["00000000000000000000.index", "00000000000000000004.snapshot"])
def test_a_clean_stop_needs_durable_side_files(data_dir: DataDir, name: str) -> None:
    data_dir.logs[AT].append(batch())
    with failing("fsync", name) as refused, failing("fsync", name + ".tmp") as refused_too:
        data_dir.close()
    assert refused or refused_too
    assert not (data_dir.path / CLEAN_SHUTDOWN).exists()
    data_dir.__init__(data_dir.path, ManualClock())  # type: ignore[misc]


def test_a_failed_write_takes_the_partition_offline(data_dir: DataDir, told: Told) -> None:
    log = data_dir.logs[AT]
    with failing("pwrite", LOG), pytest.raises(StorageError, match="Input/output error"):
        log.append(batch(b"never"))
    assert_offline(log, told)
    assert_goes_on(data_dir.logs[OTHER])

    log = open_after(data_dir)
    assert [read.base_offset for read in read_all(log)] == [0, 1, 2]
    assert_goes_on(log)


@pytest.mark.parametrize("call", ["pread"])
@pytest.mark.parametrize("name", [".log", ".index", ".timeindex"])
def test_a_failed_read_fails_that_read_only(data_dir: DataDir, call: str, name: str) -> None:
    log = data_dir.logs[AT]
    while len(log.segments) < 3:
        log.append(batch(b"x" * 100, at=NOW + log.next_offset))
    expected = read_all(log)
    questions: list[Callable[[], object]] = [
        lambda: read_all(log),
        lambda: log.read(4, 1),
        lambda: offset_for_timestamp(log, NOW + 4),
    ]
    failed = 0
    for ask in questions:
        answer = ask()
        log.segments[0]._read_ends.clear()
        with failing(call, name) as refused:
            try:
                assert ask() == answer
            except StorageError as error:
                assert "Input/output error" in str(error)  # noqa: PT017 - an answer from memory is as good
                failed += 1
        assert not refused or failed
        assert ask() == answer
    assert failed or name == ".timeindex"
    assert read_all(log) == expected
    assert_goes_on(log)


def test_a_partition_that_cannot_be_read_at_the_start_is_refused_alone(data_dir: DataDir) -> None:
    leave(data_dir)
    data_dir.__init__(data_dir.path, ManualClock())  # type: ignore[misc]
    with failing("pread", LOG), pytest.raises(StorageError, match="opening orders-0: Input/output error"):
        data_dir.open_partition(AT, CONFIG)
    assert_goes_on(data_dir.open_partition(OTHER, CONFIG))
    assert_goes_on(data_dir.open_partition(AT, CONFIG))


@pytest.mark.parametrize("call", ["unlink", "truncate", "fsync"])
def test_a_truncation_that_stops_half_way_takes_the_partition_offline(data_dir: DataDir, call: str, told: Told) -> None:
    log = data_dir.logs[AT]
    while len(log.segments) < 3:
        log.append(batch(b"x" * 100))
    log.flush()
    name = {"unlink": log.segments[1].path.name}.get(call, LOG)
    with failing(call, name), pytest.raises(StorageError):
        truncate_to(log, 2)
    assert_offline(log, told)

    log = open_after(data_dir)
    offsets = [read.base_offset for read in read_all(log)]
    assert offsets == list(range(len(offsets)))
    assert len(offsets) >= 2
    assert_goes_on(log)


def test_retention_that_cannot_rename_tries_again(data_dir: DataDir) -> None:
    log = data_dir.logs[AT]
    while len(log.segments) < 3:
        log.append(batch(b"x" * 100))
    log.raise_start(log.segments[1].base_offset)
    with failing("rename", LOG), pytest.raises(StorageError):
        delete_expired(log, NOW)
    assert read_all(log)
    assert delete_expired(log, NOW)
    assert_goes_on(log)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_checkpoint_that_cannot_be_written_is_a_separate_error(data_dir: DataDir, code: int) -> None:
    with failing("fsync", "checkpoint.tmp", code=code), pytest.raises(ApiError, match="writing checkpoints"):
        data_dir.checkpoints.write()
    for log in data_dir.logs.values():
        assert_goes_on(log)
    data_dir.checkpoints.write()


def test_a_failed_fsync_of_a_real_device_takes_the_partition_offline(tmp_path: Path, told: Told) -> None:
    """The kernel accepts the bytes but cannot write them: fsync is the first to fail."""
    try:
        with failing_device(tmp_path) as device:
            data_dir = DataDir(device.folder / "data", ManualClock())
            log = data_dir.open_partition(AT, LogConfig(flush="ack"))
            other = data_dir.open_partition(OTHER, LogConfig(flush="ack"))
            durable = log.append(batch(b"durable" * 1000)).last_offset + 1
            log.flush()
            other.append(batch())
            other.flush()
            device.fail()
            for _ in range(20):
                log.append(batch(b"lost?" * 20_000))
            with pytest.raises(StorageError, match="fsync failed"):
                log.flush()
            assert log.acknowledged_offset == durable
            assert_offline(log, told)
            assert read_all(other)
            leave(data_dir)
            device.heal()

            data_dir = DataDir(device.folder / "data", ManualClock())
            log = data_dir.open_partition(AT, LogConfig(flush="ack"))
            # The kernel still had every batch in its cache; the disk did not.
            assert durable <= log.next_offset < durable + 20
            assert "truncating the log at byte" in told.text
            assert_goes_on(log)
            leave(data_dir)
    except CannotMount as missing:
        pytest.skip(f"a device that fails is needed: {missing}")


@pytest.mark.parametrize("name", ["orders-0/00000000000000000000.txnindex", "/orders-0"])
def test_a_flush_includes_a_new_transaction_index(data_dir: DataDir, name: str) -> None:
    """Without it, or its name in the folder, aborted records would be read as committed."""
    log = data_dir.logs[AT]
    log.append(batch(by=Producer(1, 0, 0, is_transactional=True)))
    log.flush()
    log.append_end_marker(1, 0, EndMarker(is_commit=False, coordinator_epoch=0))
    with failing("fsync", name), pytest.raises(StorageError, match="fsync failed"):
        log.flush()
