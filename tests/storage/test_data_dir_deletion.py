"""Deletion of partitions: visible at once, files removed later."""

from __future__ import annotations

import os

import pytest
from tests.faults.failing import failing

from ottla.core.errors import DataDirError, StorageError, UnknownTopicOrPartition
from ottla.core.ids import TopicId, TopicPartition
from ottla.storage.files import remove_deleted

from .data_dirs import CONFIG, ORDERS, SOME_ID, Dirs, append, contents
from .making import batch, open_in, read_all, values

OTHER_ID = TopicId.random()

# Deleting


def test_a_deleted_partition_is_gone_at_once_and_its_files_later(dirs: Dirs) -> None:
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


def test_only_leftovers_of_interrupted_deletions_are_found(dirs: Dirs) -> None:
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
    assert "orders-0: could not remove the folder of the deleted partition" in caplog.text


def test_a_name_too_long_for_the_suffix_is_truncated(dirs: Dirs) -> None:
    at = TopicPartition("x" * 249, 12345)
    folder = dirs.open()
    append(folder, b"1", at=at)

    [doomed] = folder.delete_partitions([at])

    assert len(doomed.name) == 255
    assert folder.deleted_folders() == [doomed]


@pytest.mark.parametrize("is_deleted_in_a_crash", [False, True])
def test_a_re_created_partition_has_no_old_state(dirs: Dirs, is_deleted_in_a_crash: bool) -> None:  # noqa: FBT001
    folder = dirs.open()
    append(folder, *[b"old"] * 50)
    folder.logs[ORDERS].flush()
    folder.logs[ORDERS].raise_start(40)
    folder.checkpoints.write()
    folder.delete_partitions([ORDERS])
    if is_deleted_in_a_crash:
        dirs.kill()
        folder = dirs.open()
    append(folder, b"new")
    dirs.kill()

    folder = dirs.open()

    assert contents(folder) == [b"new"]
    assert folder.logs[ORDERS].start_offset == 0


def test_a_partition_is_re_created_once_the_folder_of_the_deleted_one_can_be_renamed(dirs: Dirs) -> None:
    folder = dirs.open()
    folder.open_partition(ORDERS, CONFIG, SOME_ID).append(batch(b"old"))
    with failing("rename", "/orders-0", times=2):
        assert folder.delete_partitions([ORDERS]) == []
        with pytest.raises(StorageError, match="moving orders-0 away"):
            folder.open_partition(ORDERS, CONFIG, OTHER_ID)

    log = folder.open_partition(ORDERS, CONFIG, OTHER_ID)

    assert values(read_all(log)) == []
    assert folder.retry_deletions() == folder.deleted_folders() != []
    assert folder.logs == {ORDERS: log}


def test_a_deletion_that_failed_is_retried(dirs: Dirs) -> None:
    folder = dirs.open()
    append(folder, b"1")
    with failing("rename", "/orders-0"):
        assert folder.delete_partitions([ORDERS]) == []

    assert folder.retry_deletions() == folder.deleted_folders() != []
    assert folder.retry_deletions() == []
    assert list(folder.partitions()) == []


@pytest.mark.parametrize("is_shared", [False, True])
def test_the_folder_of_another_topic_is_set_aside_only_if_the_catalog_is_shared(
    dirs: Dirs,
    is_shared: bool,  # noqa: FBT001
) -> None:
    with dirs.open() as folder:
        folder.open_partition(ORDERS, CONFIG, SOME_ID).append(batch(b"old"))
    folder = dirs.open()
    folder.sets_strays_aside = is_shared

    if is_shared:
        assert values(read_all(folder.open_partition(ORDERS, CONFIG, OTHER_ID))) == []
        assert [path.name.partition(".")[0] for path in dirs.path.glob("*-stray")] == ["orders-0"]
    else:
        with pytest.raises(DataDirError, match="belongs to a topic with id"):
            folder.open_partition(ORDERS, CONFIG, OTHER_ID)
