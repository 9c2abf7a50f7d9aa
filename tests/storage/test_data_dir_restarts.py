"""State of a data folder after it is reopened."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import StorageError
from ottla.core.ids import TopicPartition
from ottla.storage import flushing
from ottla.storage.folder.data_dir import CLEAN_SHUTDOWN
from ottla.storage.truncation import truncate_to

from .data_dirs import CONFIG, ORDERS, Dirs, abort, append, contents
from .making import batch, open_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ottla.storage.flushing import Flush

# Leaving and coming back


def test_the_clean_marker_is_there_only_between_a_clean_stop_and_the_next_start(dirs: Dirs) -> None:
    with dirs.open() as folder:
        append(folder, b"1")
        assert not (dirs.path / CLEAN_SHUTDOWN).exists()
    assert json.loads((dirs.path / CLEAN_SHUTDOWN).read_bytes()) == {"version": 0, "brokerEpoch": -1}

    assert dirs.open().was_clean
    assert not (dirs.path / CLEAN_SHUTDOWN).exists()
    dirs.kill()
    assert not dirs.open().was_clean


def test_checkpoints_are_kafkas(dirs: Dirs) -> None:
    with dirs.open() as folder:
        append(folder, b"1", b"2", b"3")
        append(folder, b"1", at=TopicPartition("other-topic", 4))
        folder.logs[ORDERS].raise_start(2)

    assert (dirs.path / "recovery-point-offset-checkpoint").read_text() == "0\n2\norders 0 3\nother-topic 4 1\n"
    assert (dirs.path / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"


def test_the_log_start_survives_a_crash_once_it_is_checkpointed(dirs: Dirs) -> None:
    folder = dirs.open()
    append(folder, b"1", b"2", b"3")
    folder.logs[ORDERS].flush()
    folder.logs[ORDERS].raise_start(2)
    folder.checkpoints.write()
    dirs.kill()

    assert contents(dirs.open()) == [b"3"]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_new_partition_does_not_inherit_the_compacted_offset_of_a_deleted_one(dirs: Dirs, *, is_killed: bool) -> None:
    """A tombstone in the compacted part is removed without a search for the records that it deletes."""
    folder = dirs.open()
    append(folder, b"1", b"2")
    folder.checkpoints.note_compacted(ORDERS, 2)
    folder.set_stray_aside(ORDERS)
    folder.checkpoints.write()
    if is_killed:
        dirs.kill()
        folder = dirs.open()
    append(folder, b"1", b"2")
    folder.logs[ORDERS].flush()
    dirs.kill()

    assert dirs.open().checkpoints.compacted_until(ORDERS) == 0


def cut_unsynced(dirs: Dirs, size: int) -> None:
    """Simulate a power cut: keep only synced bytes."""
    dirs.kill()
    os.truncate(dirs.path / "orders-0" / f"{0:020}.log", size)


def test_a_log_start_is_checkpointed_only_after_its_record_is_synced(dirs: Dirs) -> None:
    """Otherwise a power cut would lose the kept records and hide the deleted ones."""
    folder = dirs.open()
    append(folder, b"1", b"2", b"3")
    folder.logs[ORDERS].flush()
    synced = folder.logs[ORDERS].size
    append(folder, b"all of them in one")
    folder.logs[ORDERS].raise_start(3)
    folder.checkpoints.write()
    cut_unsynced(dirs, synced)

    folder = dirs.open()
    assert contents(folder) == [b"1", b"2", b"3"]
    append(folder, b"all of them in one")
    folder.logs[ORDERS].flush()
    folder.logs[ORDERS].raise_start(3)
    folder.checkpoints.write()
    dirs.kill()
    assert contents(dirs.open()) == [b"all of them in one"]


def test_a_checkpointed_start_beyond_the_end_does_not_hide_later_records(dirs: Dirs) -> None:
    """As in a folder of Kafka, or of a release that checkpointed starts before they were synced."""
    folder = dirs.open()
    append(folder, b"1", b"2")
    folder.logs[ORDERS].flush()
    dirs.kill()
    (dirs.path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 4\n")

    folder = dirs.open()
    append(folder, b"3", b"4")
    folder.logs[ORDERS].flush()
    dirs.kill()
    assert contents(dirs.open()) == [b"3", b"4"]


def test_a_checkpoint_is_taken_in_steps(dirs: Dirs) -> None:
    folder = dirs.open()
    append(folder, b"1", b"2", b"3")
    folder.logs[ORDERS].flush()
    folder.logs[ORDERS].raise_start(2)
    written = folder.checkpoints.begin()
    written.run()
    folder.checkpoints.place(written).run()
    dirs.kill()

    assert contents(dirs.open()) == [b"3"]
    assert not list(dirs.path.glob("*.tmp"))


def test_a_log_start_is_durable_once_the_flush_of_its_checkpoint_is_confirmed(dirs: Dirs) -> None:
    folder = dirs.open()
    append(folder, b"1", b"2", b"3")
    folder.logs[ORDERS].flush()
    folder.logs[ORDERS].raise_start(2)
    checkpoints = folder.checkpoints
    written = checkpoints.begin()
    written.run()
    placed = checkpoints.place(written)
    assert checkpoints.durable_start(ORDERS) == 0

    placed.run()
    checkpoints.confirm(placed)

    assert checkpoints.durable_start(ORDERS) == 2
    dirs.kill()
    assert dirs.open().checkpoints.durable_start(ORDERS) == 2


def test_a_log_start_that_a_truncation_lowers_during_a_flush_is_not_confirmed(dirs: Dirs) -> None:
    folder = dirs.open()
    append(folder, b"1", b"2", b"3")
    log = folder.logs[ORDERS]
    log.flush()
    log.raise_start(2)
    written = folder.checkpoints.begin()
    written.run()
    placed = folder.checkpoints.place(written)
    placed.run()
    truncate_to(log, 1)
    folder.checkpoints.confirm(placed)

    assert folder.checkpoints.durable_start(ORDERS) == log.start_offset <= 1


@pytest.mark.parametrize("is_created_again_first", [False, True])
def test_a_checkpoint_overtaken_by_a_deletion_omits_the_partition(
    dirs: Dirs,
    is_created_again_first: bool,  # noqa: FBT001
) -> None:
    folder = dirs.open()
    append(folder, *[b"old"] * 50)
    folder.logs[ORDERS].raise_start(40)
    written = folder.checkpoints.begin()
    written.run()
    folder.delete_partitions([ORDERS])
    if is_created_again_first:
        append(folder, b"new")
    folder.checkpoints.place(written).run()
    if not is_created_again_first:
        append(folder, b"new")
    dirs.kill()

    folder = dirs.open()
    assert contents(folder) == [b"new"]
    assert folder.logs[ORDERS].start_offset == 0


def test_a_checkpoint_overtaken_by_a_truncation_does_not_cover_truncated_records(dirs: Dirs) -> None:
    folder = dirs.open()
    append(folder, *[b"old"] * 9)
    log = folder.logs[ORDERS]
    log.flush()
    folder.checkpoints.write()
    written = folder.checkpoints.begin()
    written.run()
    truncate_to(log, 4)
    folder.checkpoints.place(written).run()

    assert (dirs.path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 4\n"


def test_one_log_that_cannot_be_closed_makes_the_stop_unclean_and_the_others_are_closed(
    dirs: Dirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = dirs.open()
    for topic in ("a", "b", "c"):
        append(folder, b"1", at=TopicPartition(topic, 0))
    folder.logs[TopicPartition("a", 0)].flush()
    folder.logs[TopicPartition("c", 0)].flush()
    inode = (dirs.path / "b-0" / "00000000000000000000.log").stat().st_ino
    fsync = os.fsync

    def fail_for_b(fd: int) -> None:
        if os.fstat(fd).st_ino == inode:
            raise OSError(errno.EIO, "Input/output error")
        fsync(fd)

    monkeypatch.setattr(flushing.os, "fsync", fail_for_b)  # type: ignore[attr-defined]
    folder.close()

    assert open_in(dirs.path) == []
    assert not (dirs.path / CLEAN_SHUTDOWN).exists()
    monkeypatch.undo()
    folder = dirs.open()
    assert [contents(folder, TopicPartition(topic, 0)) for topic in ("a", "b", "c")] == [[b"1"]] * 3


def test_logs_are_closed_together_and_few_descriptors_are_needed_for_it(dirs: Dirs) -> None:
    folder = dirs.open(open_files=64)
    for number in range(10):
        append(folder, b"1", at=TopicPartition("orders", number))
    together: list[int] = []

    def run_all(run: Callable[[Flush], None], flushes: Iterable[Flush]) -> Iterator[None]:
        flushes = list(flushes)
        together.append(len(flushes))
        return map(run, reversed(flushes))

    folder.close(run_all)

    assert together == [4, 4, 2]
    assert dirs.open().was_clean


def test_an_offline_log_makes_the_stop_unclean(dirs: Dirs, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = dirs.open()
    append(folder, b"1")
    log = folder.logs[ORDERS]
    log.flush()

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", fail)
        with pytest.raises(StorageError):
            log.append(batch())
    assert log.is_offline
    folder.close()

    assert not (dirs.path / CLEAN_SHUTDOWN).exists()


def test_a_partition_not_opened_since_a_crash_is_still_recovered_after_the_next_clean_stop(dirs: Dirs) -> None:
    append(dirs.open(), b"1")
    dirs.opened[-1].checkpoints.write()
    append(dirs.opened[-1], b"2")
    dirs.kill()
    with (dirs.path / "orders-0" / "00000000000000000000.log").open("ab") as log:
        log.write(b"torn")
    with dirs.open() as folder:
        append(folder, b"1", at=TopicPartition("other", 0))

    folder = dirs.open()

    assert contents(folder) == [b"1", b"2"]
    assert list((dirs.path / "orders-0").glob("*.corrupt"))


def test_a_partition_added_while_stopped_is_recovered(dirs: Dirs) -> None:
    with dirs.open() as folder:
        append(folder, b"1", at=TopicPartition("other", 0))
    (dirs.path / "orders-0").mkdir()
    torn = batch(b"1") + b"torn"
    (dirs.path / "orders-0" / "00000000000000000000.log").write_bytes(torn)

    folder = dirs.open()

    assert folder.was_clean
    assert contents(folder) == [b"1"]
    assert folder.logs[ORDERS].size == len(torn) - 4


def test_a_missing_transaction_index_is_detected_even_after_unused_restarts(dirs: Dirs) -> None:
    with dirs.open() as folder:
        abort(folder)
    with dirs.open() as folder:
        append(folder, b"1", at=TopicPartition("other", 0))
    (dirs.path / "orders-0" / "00000000000000000000.txnindex").unlink()

    log = dirs.open().open_partition(ORDERS, CONFIG)

    assert [aborted.producer_id for aborted in log.aborted_transactions(0, 10)] == [1]


def test_without_aborted_transactions_none_are_noted(dirs: Dirs) -> None:
    with dirs.open() as folder:
        append(folder, b"1")
    assert not (dirs.path / "aborted-transactions-checkpoint").exists()
    with dirs.open() as folder:
        abort(folder)
    assert (dirs.path / "aborted-transactions-checkpoint").read_text() == "0\n1\norders 0 0 1\n"
    with dirs.open() as folder:
        folder.delete_partitions([ORDERS])
    assert (dirs.path / "aborted-transactions-checkpoint").read_text() == "0\n0\n"


def test_a_re_created_partition_does_not_expect_old_aborted_transactions(
    dirs: Dirs, caplog: pytest.LogCaptureFixture
) -> None:
    with dirs.open() as folder:
        abort(folder)
    dirs.open().delete_partitions([ORDERS])
    dirs.kill()
    with dirs.open() as folder:
        append(folder, b"new")
    log = dirs.open().open_partition(ORDERS, CONFIG)

    assert log.aborted_transactions(0, 10) == []
    assert "transaction index" not in caplog.text


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"])
@pytest.mark.parametrize("damage", [b"garbage", b"", None])
def test_a_lost_checkpoint_only_costs_time(dirs: Dirs, name: str, damage: bytes | None) -> None:
    with dirs.open() as folder:
        append(folder, b"1", b"2", b"3")
    if damage is None:
        (dirs.path / name).unlink()
    else:
        (dirs.path / name).write_bytes(damage)

    folder = dirs.open()

    assert contents(folder) == [b"1", b"2", b"3"]
    append(folder, b"4")
    assert contents(folder)[-1] == b"4"


def test_no_more_files_are_open_than_allowed_however_many_segments_are_read(dirs: Dirs) -> None:
    folder = dirs.open(open_files=4)
    for number in range(5):
        at = TopicPartition("t", number)
        log = folder.open_partition(at, CONFIG)
        for _ in range(20):
            log.append(batch(b"x", size=500))
        assert len(contents(folder, at)) == 20
        assert len(log.segments) == 10

    active = 5
    assert len(open_in(dirs.path)) <= 1 + active + 4


def test_truncation_is_noted_before_other_records_take_the_offsets(dirs: Dirs) -> None:
    folder = dirs.open()
    append(folder, *[b"old"] * 10)
    log = folder.logs[ORDERS]
    log.flush()
    folder.checkpoints.write()

    truncate_to(log, 5)
    append(folder, *[b"new"] * 5)
    dirs.kill()
    with (dirs.path / "orders-0" / "00000000000000000000.log").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")  # a torn batch, at an offset that was synced once

    folder = dirs.open()
    assert contents(folder) == [b"old"] * 5 + [b"new"] * 4
