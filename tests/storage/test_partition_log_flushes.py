"""Flushes: when data is synced, what is known to be durable, and failures."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import StorageError
from ottla.records.control import EndMarker
from ottla.storage.retention import delete_expired
from ottla.storage.truncation import truncate_to

from .making import Partition, Producing, batch, open_in, read_all, values

if TYPE_CHECKING:
    from collections.abc import Callable

    OpenPartition = Callable[..., Partition]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is synced, in order."""
    names: list[str] = []
    fsync = os.fsync

    def note(fd: int) -> None:
        names.append(os.readlink(f"/proc/self/fd/{fd}").rpartition("/")[2])
        fsync(fd)

    monkeypatch.setattr(os, "fsync", note)
    return names


def fail_to_sync(_: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_a_flush_covers_what_was_appended_before_it_began(partition: OpenPartition) -> None:
    log = partition(flush="ack").log
    log.append(batch())
    flush = log.begin_flush()
    log.append(batch())
    assert flush is not None
    assert log.acknowledged_offset == 0

    flush.run()
    log.finish_flush(flush)

    assert log.recovery_point == log.acknowledged_offset == 1
    assert log.is_dirty
    log.flush()
    assert log.acknowledged_offset == 2
    assert not log.is_dirty
    assert log.begin_flush() is None


def test_a_flush_that_never_runs_makes_nothing_durable(partition: OpenPartition) -> None:
    opened = partition(flush="ack")
    opened.log.append(batch())
    flush = opened.log.begin_flush()
    assert flush is not None
    flush.discard()
    opened.log.flush()

    assert opened.log.acknowledged_offset == 0


def test_flushes_may_end_in_another_order_than_they_began(partition: OpenPartition) -> None:
    log = partition(flush="ack", segment_bytes=1024).log
    log.append(batch(size=1000))
    first = log.begin_flush()
    log.append(batch(size=1000))
    second = log.begin_flush()
    assert first is not None
    assert second is not None

    second.run()
    log.finish_flush(second)
    # The second one did not sync the first segment: that is the first one's to do.
    assert log.acknowledged_offset == 0
    first.run()
    log.finish_flush(first)
    assert log.acknowledged_offset == 2


def test_everything_that_was_rolled_away_is_synced_with_its_indexes_and_once(
    partition: OpenPartition, synced: list[str]
) -> None:
    opened = partition(flush="os", segment_bytes=1024)
    log = opened.log
    log.flush()
    synced.clear()
    for size in (1000, 1000, 500):
        log.append(batch(size=size))

    log.flush()

    assert [name for name in synced if name.endswith(".log")] == [f"{base:020d}.log" for base in range(3)]
    for base in range(2):
        assert f"{base:020d}.index" in synced
        assert f"{base:020d}.timeindex" in synced
    assert synced[-1] == "orders-0"
    synced.clear()
    log.append(batch())
    log.flush()
    assert synced == [f"{2:020d}.log"]


def test_the_index_of_aborted_transactions_is_synced_with_its_segment(
    partition: OpenPartition, synced: list[str]
) -> None:
    opened = partition()
    opened.log.append(batch(by=Producing(1, 0, 0, is_transactional=True)))
    opened.log.append_end_marker(1, 0, EndMarker(is_commit=False, coordinator_epoch=0))
    opened.log.roll()
    synced.clear()

    opened.log.flush()

    assert f"{0:020d}.txnindex" in synced


def test_a_closed_log_is_synced_with_its_indexes_and_its_snapshot(partition: OpenPartition, synced: list[str]) -> None:
    opened = partition()
    opened.log.append(batch())
    synced.clear()

    opened.stop()

    assert {f"{0:020d}{kind}" for kind in (".log", ".index", ".timeindex")} <= set(synced)
    assert synced[-2:] == [f"{1:020d}.snapshot", "orders-0"]
    assert len(synced) == len(set(synced))


def test_a_log_that_nothing_was_ever_appended_to_is_closed_without_waiting_for_the_disk(
    partition: OpenPartition, synced: list[str]
) -> None:
    opened = partition()
    synced.clear()

    opened.stop()

    assert synced == []
    assert not opened.log.is_dirty
    for path in opened.folder.iterdir():  # as a power cut may
        path.unlink()
    assert opened.reopen_clean().append(batch()).base_offset == 0


def test_a_log_that_was_only_read_is_closed_as_it_was_found(partition: OpenPartition, synced: list[str]) -> None:
    opened = partition()
    opened.log.append(batch(by=Producing(1, 0, 0)))
    log = opened.reopen_clean()
    assert not log.is_dirty
    assert values(read_all(log)) == [b"v"]
    synced.clear()

    opened.stop()

    assert {name for name in synced if not name.startswith(f"{0:020d}")} == set()
    assert opened.reopen_clean().append(batch(by=Producing(1, 0, 0))).is_duplicate


@pytest.mark.parametrize("suffix", [".log", ".index", ".snapshot"])
def test_files_rebuilt_after_a_clean_stop_are_synced_by_the_next(
    partition: OpenPartition, synced: list[str], suffix: str
) -> None:
    opened = partition()
    for sequence in range(3):
        opened.log.append(batch(by=Producing(1, 0, sequence)))
    opened.log.raise_start(3)
    opened.stop()
    for lost in opened.folder.glob(f"*{suffix}"):
        lost.unlink()
    log = opened.reopen_clean()
    assert log.is_dirty
    synced.clear()

    opened.stop()

    assert opened.names(suffix)
    assert synced[-2:] == [f"{3:020d}.snapshot", "orders-0"]


@pytest.mark.parametrize("change", ["append", "roll", "truncate", "abort"])
def test_a_log_that_was_changed_since_a_clean_stop_gets_a_new_snapshot(
    partition: OpenPartition, synced: list[str], change: str
) -> None:
    opened = partition()
    for sequence in range(2):
        opened.log.append(batch(by=Producing(1, 0, sequence, is_transactional=True)))
    log = opened.reopen_clean()
    match change:
        case "append":
            log.append(batch())
        case "roll":
            log.roll()
        case "truncate":
            truncate_to(log, 1)
            log.append(batch(b"instead"))
        case "abort":
            log.append_end_marker(1, 0, EndMarker(is_commit=False, coordinator_epoch=0))
    synced.clear()

    opened.stop()

    assert synced[-2:] == [f"{log.next_offset:020d}.snapshot", "orders-0"]
    sequences = {"truncate": 0}.get(change, 1)
    repeated = batch(by=Producing(1, 0, sequences, is_transactional=True))
    assert opened.reopen_clean().append(repeated).is_duplicate


@pytest.mark.parametrize("policy", ["os", "interval", "ack"])
def test_without_anything_new_no_flush_is_due(partition: OpenPartition, policy: str) -> None:
    log = partition(flush=policy).log
    log.flush()

    assert not log.is_flush_due(10**6, 0)


def test_a_flush_is_due_by_the_policy(partition: OpenPartition) -> None:
    logs = {
        policy: partition(policy, flush=policy, flush_interval_ms=1500, segment_bytes=1024).log
        for policy in ("os", "interval", "ack")
    }
    for log in logs.values():
        log.flush()
        log.append(batch(size=1000))

    assert logs["ack"].is_flush_due(100.0, 100.0)
    assert not logs["interval"].is_flush_due(101.4, 100.0)
    assert logs["interval"].is_flush_due(101.5, 100.0)
    assert not logs["os"].is_flush_due(10**6, 0)
    logs["os"].append(batch(size=1000))
    # Of what was rolled away, so that a start after a crash need not check every segment there is.
    assert logs["os"].is_flush_due(10**6, 0)
    logs["os"].flush()
    assert not logs["os"].is_flush_due(10**6, 0)


def test_the_acknowledged_offset_depends_on_the_policy(partition: OpenPartition) -> None:
    for policy, expected in (("os", 1), ("interval", 1), ("ack", 0)):
        log = partition(policy, flush=policy).log
        log.append(batch())
        assert log.acknowledged_offset == expected


def test_a_failed_sync_takes_the_partition_offline_permanently(
    partition: OpenPartition, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened = partition(flush="ack")
    log = opened.log
    log.append(batch(by=Producing(1, 0, 0)))
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail_to_sync)
        with pytest.raises(StorageError, match="orders-0 is offline: fsync failed: Input/output error"):
            log.flush()

    assert log.is_offline
    assert "orders-0: the log is offline, on a single broker until a restart" in caplog.text
    assert log.acknowledged_offset == 0
    for attempt in (
        lambda: log.append(batch()),
        lambda: log.append(batch(by=Producing(1, 0, 0))),
        lambda: log.append_end_marker(1, 0, EndMarker(is_commit=True, coordinator_epoch=0)),
        lambda: log.read(0, 1000),
        log.flush,
        lambda: truncate_to(log, 0),
    ):
        with pytest.raises(StorageError, match="is offline"):
            attempt()
    assert not log.is_flush_due(10**6, 0)
    assert delete_expired(log, 1 << 60) == []
    assert values(read_all(opened.reopen_unclean())) == [b"v"]


def test_after_a_failed_sync_a_later_success_is_not_trusted(
    partition: OpenPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = partition(flush="ack").log
    log.append(batch())
    first = log.begin_flush()
    log.append(batch())
    second = log.begin_flush()
    assert first is not None
    assert second is not None
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail_to_sync)
        first.run()
    second.run()
    with pytest.raises(StorageError):
        log.finish_flush(first)

    with pytest.raises(StorageError):
        log.finish_flush(second)
    assert log.acknowledged_offset == 0


def test_a_flush_that_finds_no_descriptor_can_be_tried_again(
    partition: OpenPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = partition(flush="ack", segment_bytes=1024)
    log = opened.log
    for _ in range(4):
        log.append(batch(size=1000))
    before = open_in(opened.folder)
    calls = 0
    os_open = os.open

    def refuse_the_third(*args: object, **kwargs: object) -> int:
        nonlocal calls
        calls += 1
        if calls >= 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return os_open(*args, **kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as exhausted:
        exhausted.setattr(os, "open", refuse_the_third)
        with pytest.raises(StorageError, match="Too many open files"):
            log.begin_flush()

    assert len(open_in(opened.folder)) <= len(before)
    assert not log.is_offline
    log.flush()
    assert log.acknowledged_offset == 4


def test_a_flush_may_finish_after_its_log_is_closed(partition: OpenPartition) -> None:
    opened = partition(segment_bytes=1024)
    for _ in range(3):
        opened.log.append(batch(size=1000))
    flush = opened.log.begin_flush()
    assert flush is not None
    opened.kill()
    for path in opened.folder.iterdir():
        path.unlink()

    flush.run()

    assert flush.error is None
    assert open_in(opened.folder) == []


def test_segments_deleted_by_retention_need_no_sync(partition: OpenPartition) -> None:
    opened = partition(segment_bytes=1024, retention_bytes=1000)
    for _ in range(5):
        opened.log.append(batch(size=1000))
    removed = delete_expired(opened.log, opened.clock.now_ms())
    for path in removed:
        path.unlink()

    opened.log.flush()

    assert opened.log.recovery_point == 5
    assert not opened.log.is_offline


def test_after_a_truncation_what_was_rolled_away_before_is_still_synced(
    partition: OpenPartition, synced: list[str]
) -> None:
    opened = partition(segment_bytes=1024)
    for _ in range(4):
        opened.log.append(batch(size=1000))
    truncate_to(opened.log, 3)
    synced.clear()

    opened.log.flush()

    assert {f"{base:020d}.log" for base in range(3)} <= set(synced)


def test_an_offline_log_closes_its_files(partition: OpenPartition, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = partition()
    opened.log.append(batch())
    monkeypatch.setattr(os, "fsync", fail_to_sync)
    with pytest.raises(StorageError):
        opened.log.flush()
    with pytest.raises(StorageError):
        opened.stop()

    assert open_in(opened.folder) == []


def test_without_room_for_indexes_a_close_fails_and_what_was_appended_is_synced(
    partition: OpenPartition, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = partition()
    opened.log.append(batch())
    synced.clear()

    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr("ottla.storage.segment_files.segment_indexes.SegmentIndexes.write_out", no_room)
        with pytest.raises(StorageError, match="closing: No space left on device"):
            opened.stop()

    assert f"{0:020d}.log" in synced
    assert opened.log.recovery_point == 1
    assert open_in(opened.folder) == []


def test_however_many_segments_are_unsynced_a_closed_log_is_durable(
    partition: OpenPartition, synced: list[str]
) -> None:
    opened = partition(segment_bytes=1024)
    for _ in range(80):
        opened.log.append(batch(size=1000))
    synced.clear()

    opened.stop()

    assert {f"{base:020d}.log" for base in range(80)} | {f"{80:020d}.snapshot"} <= set(synced)
    assert opened.log.recovery_point == 80
    assert not opened.log.is_dirty


def test_a_failed_close_still_closes_the_files(partition: OpenPartition, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = partition()
    opened.log.append(batch())
    monkeypatch.setattr(os, "fsync", fail_to_sync)
    with pytest.raises(StorageError):
        opened.stop()

    assert open_in(opened.folder) == []
    monkeypatch.undo()
    assert values(read_all(opened.reopen_unclean())) == [b"v"]


def test_however_many_segments_a_crash_left_few_files_are_open_to_sync_them(partition: OpenPartition) -> None:
    opened = partition(segment_bytes=1024, flush="ack")
    for _ in range(80):
        opened.log.append(batch(size=1000))
    log = opened.reopen_unclean(recovery_point=0)
    log.append(batch())
    opened.files.close()

    flush = log.begin_flush()
    assert flush is not None
    assert len(open_in(opened.folder)) < 110
    flush.run()
    log.finish_flush(flush)

    assert 0 < log.acknowledged_offset < 80
    assert log.is_flush_due(0, 0)
    log.flush()
    assert log.acknowledged_offset == 81
    assert not log.is_dirty
