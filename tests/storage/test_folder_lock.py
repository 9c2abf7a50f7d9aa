from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import DataDirError
from ottla.storage.folder.folder_lock import LOCK, FolderLock

from .making import open_in

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import pathlib, sys
from ottla.storage.folder.folder_lock import FolderLock
lock = FolderLock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""

LOCK_AS_KAFKA = """
import fcntl, sys
with open(sys.argv[1], "r+") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("locked", flush=True)
    except OSError:
        print("refused")
    sys.stdin.read()
"""


def kafka_tries(folder: Path) -> str:
    """The result of locking the folder from another process the way Apache Kafka does."""
    command = [sys.executable, "-c", LOCK_AS_KAFKA, str(folder / LOCK)]
    return subprocess.run(command, input="", capture_output=True, text=True, check=True).stdout.strip()


def test_a_second_opener_in_this_process_is_told_the_pid(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)

    with pytest.raises(DataDirError, match=f"in use by process {os.getpid()}"):
        FolderLock(tmp_path)
    lock.release()


def test_another_name_for_the_folder_does_not_get_around_the_lock(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    lock = FolderLock(tmp_path / "data")

    with pytest.raises(DataDirError, match="in use"):
        FolderLock(tmp_path / "link")
    lock.release()


def test_another_process_is_told_the_pid_until_it_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        with pytest.raises(DataDirError, match=f"in use by process {holder.pid}; stop it"):
            FolderLock(tmp_path)
        assert open_in(tmp_path) == []
        holder.kill()

    FolderLock(tmp_path).release()


def test_a_running_kafka_broker_is_kept_out_even_after_a_second_opener_was_refused(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(DataDirError):
        FolderLock(tmp_path)

    assert kafka_tries(tmp_path) == "refused"
    lock.release()
    assert kafka_tries(tmp_path) == "locked"


def test_a_running_kafka_broker_keeps_us_out(tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    with subprocess.Popen(
        [sys.executable, "-c", LOCK_AS_KAFKA, str(tmp_path / LOCK)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as kafka:
        assert kafka.stdout is not None
        assert kafka.stdout.readline() == "locked\n"
        with pytest.raises(DataDirError, match="in use by another process"):
            FolderLock(tmp_path)
        kafka.kill()


def test_a_released_folder_can_be_locked_again(tmp_path: Path) -> None:
    for _ in range(3):
        FolderLock(tmp_path).release()

    assert (tmp_path / LOCK).read_bytes() == b""
    assert open_in(tmp_path) == []


def test_a_lock_file_left_by_a_kill_does_not_block(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("123456789\n")

    lock = FolderLock(tmp_path)

    assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"
    lock.release()


def test_the_lock_outlives_a_copy_of_the_folder_made_in_this_process(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    (tmp_path / LOCK).read_bytes()  # closing what this opened gives up the record lock

    with (tmp_path / LOCK).open("r+") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.release()
