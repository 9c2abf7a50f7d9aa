from __future__ import annotations

import errno
import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.faults.failing import failing

from ottla.core.clock import ManualClock
from ottla.core.errors import DataDirError, StorageError, UnknownTopicOrPartition
from ottla.core.ids import TopicId, TopicPartition
from ottla.records.control import EndMarker
from ottla.storage import flushing
from ottla.storage.config import LogConfig
from ottla.storage.data_dir import CLEAN_SHUTDOWN, DataDir, remove_deleted

from .making import Producing, batch, open_descriptors, open_in, read_all, values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from ottla.storage.flushing import Flush

ORDERS = TopicPartition("orders", 0)
CONFIG = LogConfig(flush="os", segment_bytes=1024)
SOME_ID = TopicId.parse("g44z2k4uQeCBfVXVsQ5aTQ")


def fingerprint(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below the folder, with what is in it and when it was changed."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


class Dirs:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock()
        self.opened: list[DataDir] = []

    def open(self, open_files: int = 16) -> DataDir:
        self.opened.append(DataDir(self.path, self.clock, open_files=open_files))
        return self.opened[-1]

    def kill(self) -> None:
        """Leave everything as a killed process would."""
        killed = self.opened.pop()
        for log in killed.logs.values():
            log.abandon()
        killed._files.close()
        killed._lock.release()


@pytest.fixture
def dirs(tmp_path: Path) -> Iterator[Dirs]:
    dirs = Dirs(tmp_path / "data")
    yield dirs
    if open_in(tmp_path):  # the last one; those before it were closed
        dirs.kill()
    assert open_in(tmp_path) == []


def append(folder: DataDir, *contents: bytes, at: TopicPartition = ORDERS) -> None:
    log = folder.open_partition(at, CONFIG)
    for value in contents:
        log.append(batch(value))


def contents(folder: DataDir, at: TopicPartition = ORDERS) -> list[bytes | None]:
    return values(read_all(folder.open_partition(at, CONFIG)))


# Whose folder it is


def test_a_new_folder_is_created_with_its_parents_and_closed_without_a_trace_in_memory(tmp_path: Path) -> None:
    before = open_descriptors()
    with DataDir(tmp_path / "a" / "b", ManualClock()) as folder:
        assert not folder.was_clean
        append(folder, b"1")

    assert open_descriptors() == before
    assert (tmp_path / "a" / "b" / "orders-0" / "00000000000000000000.log").stat().st_size > 0


def test_the_second_to_open_it_is_told_who_has_it(dirs: Dirs) -> None:
    dirs.open()
    before = fingerprint(dirs.path)

    with pytest.raises(DataDirError, match=f"in use by process {os.getpid()}"):
        DataDir(dirs.path, dirs.clock)
    assert fingerprint(dirs.path) == before


def test_it_can_be_opened_again_after_it_was_closed(dirs: Dirs) -> None:
    for _ in range(3):
        with dirs.open() as folder:
            append(folder, b"1")
    with dirs.open() as folder:
        assert contents(folder) == [b"1", b"1", b"1"]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("thesis.tex", "42", "not a data folder"),
        ("meta.properties", "version=2\ncluster.id=x\nnode.id=1\n", "version 2; this release reads version 1"),
        ("meta.properties", "version=0\nbroker.id=1\n", "version 0"),
        ("meta.properties", "gibberish", "cannot be read"),
    ],
)
def test_a_folder_that_is_not_ours_is_refused_and_nothing_in_it_is_changed(
    dirs: Dirs, name: str, text: str, complaint: str
) -> None:
    dirs.path.mkdir()
    (dirs.path / name).write_text(text)
    (dirs.path / CLEAN_SHUTDOWN).touch()
    before = fingerprint(dirs.path)

    with pytest.raises(DataDirError, match=complaint):
        dirs.open()

    assert fingerprint(dirs.path) == before
    assert open_in(dirs.path) == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("text")

    with pytest.raises(DataDirError, match="File exists"):
        DataDir(tmp_path / "data", ManualClock())
    with pytest.raises(DataDirError, match="Not a directory"):
        DataDir(tmp_path / "data" / "below", ManualClock())


def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    DataDir(folder, ManualClock()).close()
    (folder / ".lock").unlink()
    if os.geteuid() == 0:  # whom permissions do not stop
        mount = ["mount", "--bind", "-o", "ro", str(folder), str(folder)]
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            pytest.skip("as root, a read-only folder takes a mount, which is not allowed here")
    else:
        folder.chmod(0o555)
    try:
        before = fingerprint(folder)
        with pytest.raises(DataDirError, match=r"cannot be written to: (Read-only file system|Permission denied)"):
            DataDir(folder, ManualClock())
        assert fingerprint(folder) == before
        assert open_in(folder) == []
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", str(folder)], check=True)
        folder.chmod(0o755)


# Which partitions there are


def test_partitions_are_found_by_the_names_of_their_folders(dirs: Dirs) -> None:
    folder = dirs.open()
    expected = [
        TopicPartition("orders", 0),
        TopicPartition("orders", 10),
        TopicPartition("orders-1", 2),
        TopicPartition("a.b_c-d", 0),
        TopicPartition("7", 7),
        TopicPartition("-", 0),
        TopicPartition("orders-", 1),
        TopicPartition("x" * 249, 0),
        TopicPartition("orders.0123456789abcdef0123456789abcdef-delete", 1),
    ]
    for at in expected:
        append(folder, b"1", at=at)
    for name in (
        "orders",
        "orders-",
        "orders-01",
        "-0",
        "bad name-0",
        "__cluster_metadata-0",
        "orders-3.0123456789abcdef0123456789abcdef-delete",
        "orders-3.0123456789abcdef0123456789abcdef-future",
        "orders-3.0123456789abcdef0123456789abcdef-stray",
    ):
        (dirs.path / name).mkdir()
    (dirs.path / "file-0").touch()

    assert sorted(at for at, _ in folder.partitions()) == sorted(expected)


def test_partitions_say_which_topic_they_belong_to(dirs: Dirs) -> None:
    folder = dirs.open()
    folder.open_partition(ORDERS, CONFIG, SOME_ID)
    folder.open_partition(TopicPartition("other", 0), CONFIG)

    assert dict(folder.partitions()) == {ORDERS: SOME_ID, TopicPartition("other", 0): None}


def test_a_partition_of_another_topic_id_is_refused_and_left_alone(dirs: Dirs) -> None:
    with dirs.open() as folder:
        folder.open_partition(ORDERS, CONFIG, SOME_ID)
        append(folder, b"1")
    folder = dirs.open()
    before = fingerprint(dirs.path / "orders-0")

    with pytest.raises(DataDirError, match=f"belongs to a topic with id {SOME_ID}"):
        folder.open_partition(ORDERS, CONFIG, TopicId.random())

    assert fingerprint(dirs.path / "orders-0") == before
    folder.open_partition(ORDERS, CONFIG, SOME_ID)


def test_an_id_is_noted_where_there_was_none(dirs: Dirs) -> None:
    with dirs.open() as folder:
        folder.open_partition(ORDERS, CONFIG)
    with dirs.open() as folder:
        folder.open_partition(ORDERS, CONFIG, SOME_ID)
        assert dict(folder.partitions()) == {ORDERS: SOME_ID}


def test_a_partition_is_opened_once(dirs: Dirs) -> None:
    folder = dirs.open()

    assert folder.open_partition(ORDERS, CONFIG) is folder.open_partition(ORDERS, CONFIG)


def test_a_file_in_the_place_of_a_partition_is_an_error_of_storage(dirs: Dirs) -> None:
    folder = dirs.open()
    (dirs.path / "orders-0").touch()

    with pytest.raises(StorageError):
        folder.open_partition(ORDERS, CONFIG)
    assert folder.logs == {}


def test_a_partition_that_cannot_be_opened_leaves_nothing_open(dirs: Dirs, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = dirs.open()
    opened = open_in(dirs.path)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr("ottla.storage.checkpoints.write_topic_id", refuse)
        with pytest.raises(StorageError, match="No space left"):
            folder.open_partition(ORDERS, CONFIG, SOME_ID)
    assert folder.logs == {}
    assert open_in(dirs.path) == opened

    folder.open_partition(ORDERS, CONFIG, SOME_ID)
    assert dict(folder.partitions()) == {ORDERS: SOME_ID}


# Deleting


def test_a_deleted_partition_is_gone_at_once_and_its_files_at_leisure(dirs: Dirs) -> None:
    folder = dirs.open()
    append(folder, b"1")

    [doomed] = folder.delete_partitions([ORDERS])

    assert list(folder.partitions()) == []
    assert folder.deleted_folders() == [doomed]
    assert open_in(dirs.path) == [str(dirs.path / ".lock")]
    append(folder, b"2")
    assert contents(folder) == [b"2"]
    remove_deleted(doomed)
    assert not doomed.exists()
    assert folder.deleted_folders() == []
    remove_deleted(doomed)


def test_what_a_crash_left_of_a_deletion_is_found_and_nothing_else(dirs: Dirs) -> None:
    append(dirs.open(), b"1")
    doomed = dirs.opened[-1].delete_partitions([ORDERS])
    dirs.kill()
    (dirs.path / "please-dont-delete").mkdir()
    (dirs.path / "orders-3.0123456789abcdef0123456789abcdef-stray").mkdir()

    assert dirs.open().deleted_folders() == doomed


def test_a_partition_that_is_not_open_can_be_deleted(dirs: Dirs) -> None:
    with dirs.open() as folder:
        append(folder, b"1")
    folder = dirs.open()

    assert len(folder.delete_partitions([ORDERS, TopicPartition("other", 0)])) == 1
    assert folder.delete_partitions([ORDERS]) == []
    with pytest.raises(UnknownTopicOrPartition):
        folder.set_stray_aside(ORDERS)


def test_however_many_partitions_are_deleted_together_the_disk_is_waited_for_once(
    dirs: Dirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = dirs.open()
    doomed = [TopicPartition("orders", number) for number in range(20)]
    for at in doomed:
        append(folder, b"1", at=at)
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))

    assert len(folder.delete_partitions(doomed)) == 20

    assert synced == [str(dirs.path)]


def test_a_folder_that_cannot_be_renamed_does_not_keep_its_partition_nor_the_others(
    dirs: Dirs, caplog: pytest.LogCaptureFixture
) -> None:
    folder = dirs.open()
    other = TopicPartition("orders", 1)
    append(folder, b"1")
    append(folder, b"1", at=other)
    with failing("rename", "/orders-0"):
        deleted = folder.delete_partitions([ORDERS, other])

    assert [path.name.partition(".")[0] for path in deleted] == ["orders-1"]
    assert folder.logs == {}
    assert "the folder of the deleted partition orders-0 stays" in caplog.text


def test_a_name_too_long_to_be_made_longer_is_cut(dirs: Dirs) -> None:
    at = TopicPartition("x" * 249, 12345)
    folder = dirs.open()
    append(folder, b"1", at=at)

    [doomed] = folder.delete_partitions([at])

    assert len(doomed.name) == 255
    assert folder.deleted_folders() == [doomed]


@pytest.mark.parametrize("is_deleted_in_a_crash", [False, True])
def test_a_partition_that_is_created_again_has_no_past(dirs: Dirs, is_deleted_in_a_crash: bool) -> None:  # noqa: FBT001
    folder = dirs.open()
    append(folder, *[b"old"] * 50)
    folder.logs[ORDERS].flush()
    folder.logs[ORDERS].raise_start(40)
    folder.checkpoint()
    folder.delete_partitions([ORDERS])
    if is_deleted_in_a_crash:
        dirs.kill()
        folder = dirs.open()
    append(folder, b"new")
    dirs.kill()

    folder = dirs.open()

    assert contents(folder) == [b"new"]
    assert folder.logs[ORDERS].start_offset == 0


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


def test_the_start_survives_a_crash_once_it_was_noted(dirs: Dirs) -> None:
    folder = dirs.open()
    append(folder, b"1", b"2", b"3")
    folder.logs[ORDERS].raise_start(2)
    folder.checkpoint()
    dirs.kill()

    assert contents(dirs.open()) == [b"3"]


def test_a_checkpoint_is_taken_in_steps(dirs: Dirs) -> None:
    folder = dirs.open()
    append(folder, b"1", b"2", b"3")
    folder.logs[ORDERS].raise_start(2)
    written = folder.begin_checkpoint()
    written.run()
    folder.place_checkpoint(written).run()
    dirs.kill()

    assert contents(dirs.open()) == [b"3"]
    assert not list(dirs.path.glob("*.tmp"))


@pytest.mark.parametrize("is_created_again_first", [False, True])
def test_a_checkpoint_that_was_overtaken_by_a_deletion_says_nothing_of_it(
    dirs: Dirs,
    is_created_again_first: bool,  # noqa: FBT001
) -> None:
    folder = dirs.open()
    append(folder, *[b"old"] * 50)
    folder.logs[ORDERS].raise_start(40)
    written = folder.begin_checkpoint()
    written.run()
    folder.delete_partitions([ORDERS])
    if is_created_again_first:
        append(folder, b"new")
    folder.place_checkpoint(written).run()
    if not is_created_again_first:
        append(folder, b"new")
    dirs.kill()

    folder = dirs.open()
    assert contents(folder) == [b"new"]
    assert folder.logs[ORDERS].start_offset == 0


def test_a_checkpoint_that_was_overtaken_by_a_truncation_does_not_vouch_for_what_was_cut_off(dirs: Dirs) -> None:
    folder = dirs.open()
    append(folder, *[b"old"] * 9)
    log = folder.logs[ORDERS]
    log.flush()
    folder.checkpoint()
    written = folder.begin_checkpoint()
    written.run()
    log.truncate_to(4)
    folder.place_checkpoint(written).run()

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

    monkeypatch.setattr(flushing.os, "fsync", fail_for_b)
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


def test_a_partition_that_was_not_opened_since_a_crash_is_still_checked_after_the_next_clean_stop(dirs: Dirs) -> None:
    append(dirs.open(), b"1")
    dirs.opened[-1].checkpoint()
    append(dirs.opened[-1], b"2")
    dirs.kill()
    with (dirs.path / "orders-0" / "00000000000000000000.log").open("ab") as log:
        log.write(b"torn")
    with dirs.open() as folder:
        append(folder, b"1", at=TopicPartition("other", 0))

    folder = dirs.open()

    assert contents(folder) == [b"1", b"2"]
    assert list((dirs.path / "orders-0").glob("*.corrupt"))


def test_a_partition_that_was_put_here_while_stopped_is_checked(dirs: Dirs) -> None:
    with dirs.open() as folder:
        append(folder, b"1", at=TopicPartition("other", 0))
    (dirs.path / "orders-0").mkdir()
    torn = batch(b"1") + b"torn"
    (dirs.path / "orders-0" / "00000000000000000000.log").write_bytes(torn)

    folder = dirs.open()

    assert folder.was_clean
    assert contents(folder) == [b"1"]
    assert folder.logs[ORDERS].size == len(torn) - 4


def abort(folder: DataDir, at: TopicPartition = ORDERS) -> None:
    log = folder.open_partition(at, CONFIG)
    log.append(batch(by=Producing(1, 0, 0, is_transactional=True)))
    log.append_end_marker(1, 0, EndMarker(is_commit=False, coordinator_epoch=0))


def test_a_transaction_index_that_is_gone_is_missed_even_after_stops_in_which_nobody_asked_for_it(dirs: Dirs) -> None:
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


def test_a_partition_that_is_created_again_misses_no_aborted_transactions(
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
def test_a_lost_checkpoint_costs_nothing_but_time(dirs: Dirs, name: str, damage: bytes | None) -> None:
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
    folder.checkpoint()

    log.truncate_to(5)
    append(folder, *[b"new"] * 5)
    dirs.kill()
    with (dirs.path / "orders-0" / "00000000000000000000.log").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")  # a torn batch, at an offset that was synced once

    folder = dirs.open()
    assert contents(folder) == [b"old"] * 5 + [b"new"] * 4
