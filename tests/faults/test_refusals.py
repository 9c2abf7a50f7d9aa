"""Unusable data folders are refused with a one-line error, and nothing is changed."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from ottla.core.clock import ManualClock
from ottla.core.errors import DataDirError
from ottla.core.ids import TopicId, TopicPartition
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir

from .killing import fork, run, wait
from .making import batch, fingerprint, leave, read_all
from .mounting import CannotMount, remount, tmpfs

if TYPE_CHECKING:
    from pathlib import Path

AT = TopicPartition("orders", 0)
NOBODY = 65534


def written(folder: Path) -> Path:
    """A data folder as a clean stop leaves it."""
    with DataDir(folder, ManualClock()) as data_dir:
        data_dir.open_partition(AT, LogConfig(), TopicId.random()).append(batch())
    return folder


def assert_refused(folder: Path, *words: str) -> None:
    before = fingerprint(folder) if folder.is_dir() else None
    with pytest.raises(DataDirError) as refused:
        DataDir(folder, ManualClock())
    sentence = str(refused.value)
    assert "\n" not in sentence
    for word in (str(folder), *words):
        assert word in sentence
    assert before == (fingerprint(folder) if folder.is_dir() else None)


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("Chapter 1")
    (tmp_path / "pictures").mkdir()
    assert_refused(tmp_path, "not a data folder", "pictures")


@pytest.mark.parametrize("version", ["2", "0", "99"])
def test_a_folder_of_another_format_is_refused(tmp_path: Path, version: str) -> None:
    meta = written(tmp_path / "data") / "meta.properties"
    meta.write_text(meta.read_text().replace("version=1", f"version={version}"))
    assert_refused(tmp_path / "data", f"version {version}", "supports version 1")


@pytest.mark.parametrize("contents", [b"", b"\xff\xfe\x00", b"version=1\n", b"no equals sign", bytes(100)])
def test_a_folder_without_an_identity_is_refused(tmp_path: Path, contents: bytes) -> None:
    (written(tmp_path / "data") / "meta.properties").write_bytes(contents)
    assert_refused(tmp_path / "data", "meta.properties")


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    assert_refused(tmp_path / "data")
    assert (tmp_path / "data").read_text() == "not a folder"


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    """As a user with read access only; root may write anywhere."""
    folder = written(tmp_path / "data")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)

    def work() -> None:
        for above in (tmp_path, *list(tmp_path.parents)[:3]):
            above.chmod(0o755)
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        assert_refused(folder, "cannot be written to", "Permission denied")

    assert run(work) == 0


def test_a_read_only_file_system_is_refused(tmp_path: Path) -> None:
    try:
        with tmpfs(tmp_path / "disk", "1m") as disk:
            folder = written(disk / "data")
            remount(disk, "ro")
            assert_refused(folder, "cannot be written to", "Read-only file system")
            assert_cannot_be_made(disk / "new")
    except CannotMount as missing:
        pytest.skip(f"a read-only file system is needed: {missing}")


def assert_cannot_be_made(folder: Path) -> None:
    with pytest.raises(DataDirError, match="Read-only file system"):
        DataDir(folder, ManualClock())


def test_a_folder_in_use_is_refused_with_the_pid_until_that_process_is_killed(tmp_path: Path) -> None:
    folder = written(tmp_path / "data")
    reading, writing = os.pipe()

    def work() -> None:
        data_dir = DataDir(folder, ManualClock())
        data_dir.open_partition(AT, LogConfig()).append(batch())
        os.write(writing, b"ready")
        signal.pause()

    pid = fork(work)
    try:
        assert os.read(reading, 5) == b"ready"
        assert_refused(folder, f"in use by process {pid}")
    finally:
        os.kill(pid, signal.SIGKILL)
        wait(pid)
        os.close(reading)
        os.close(writing)
    with DataDir(folder, ManualClock()) as data_dir:
        assert not data_dir.was_clean
        assert len(read_all(data_dir.open_partition(AT, LogConfig()))) == 2


def test_a_folder_in_use_by_this_very_process_is_refused(tmp_path: Path) -> None:
    with DataDir(written(tmp_path / "data"), ManualClock()):
        assert_refused(tmp_path / "data", f"in use by process {os.getpid()}")
        assert_refused(tmp_path / "data", f"in use by process {os.getpid()}")


def test_a_partition_of_another_topic_is_refused(tmp_path: Path) -> None:
    data_dir = DataDir(written(tmp_path / "data"), ManualClock())
    before = fingerprint(tmp_path / "data")
    with pytest.raises(DataDirError, match="belongs to a topic with id"):
        data_dir.open_partition(AT, LogConfig(), TopicId.random())
    assert fingerprint(tmp_path / "data") == before
    leave(data_dir)
