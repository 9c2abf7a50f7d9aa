"""Ownership of a data folder, and its partitions."""

from __future__ import annotations

import errno
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from ottla.core.clock import ManualClock
from ottla.core.errors import DataDirError, StorageError
from ottla.core.ids import TopicId, TopicPartition
from ottla.storage.folder.data_dir import CLEAN_SHUTDOWN, DataDir

from .data_dirs import CONFIG, ORDERS, SOME_ID, Dirs, append, contents
from .making import open_descriptors, open_in

if TYPE_CHECKING:
    from pathlib import Path


def fingerprint(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below the folder, with what is in it and when it was changed."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


# Whose folder it is


def test_a_new_folder_is_created_with_its_parents_and_closed_without_a_trace_in_memory(tmp_path: Path) -> None:
    before = open_descriptors()
    with DataDir(tmp_path / "a" / "b", ManualClock()) as folder:
        assert not folder.was_clean
        append(folder, b"1")

    assert open_descriptors() == before
    assert (tmp_path / "a" / "b" / "orders-0" / "00000000000000000000.log").stat().st_size > 0


def test_a_second_opener_is_refused_with_the_pid(dirs: Dirs) -> None:
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
        ("meta.properties", "version=2\ncluster.id=x\nnode.id=1\n", "version 2; this release supports version 1"),
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


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
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
        full_disk.setattr("ottla.storage.folder.checkpoints.write_topic_id", refuse)
        with pytest.raises(StorageError, match="No space left"):
            folder.open_partition(ORDERS, CONFIG, SOME_ID)
    assert folder.logs == {}
    assert open_in(dirs.path) == opened

    folder.open_partition(ORDERS, CONFIG, SOME_ID)
    assert dict(folder.partitions()) == {ORDERS: SOME_ID}
