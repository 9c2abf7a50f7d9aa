from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from ottla.storage.flushing import Flush, all_or_none, sync_all

from .making import open_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def opening(folder: Path, count: int, *, is_failing: bool = False) -> Iterator[int]:
    for number in range(count):
        yield os.open(folder / str(number), os.O_RDWR | os.O_CREAT)
    if is_failing:
        raise OSError(errno.EMFILE, "Too many open files")


def fail_to_sync(_: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_a_flush_syncs_every_file_once_and_closes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")[-1]))
    flush = Flush(7, list(opening(tmp_path, 3)))

    flush.run()
    flush.run()

    assert sorted(synced) == ["0", "1", "2"]
    assert flush.error is None
    assert open_in(tmp_path) == []


def test_a_flush_that_fails_says_so_and_closes_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", fail_to_sync)
    flush = Flush(7, list(opening(tmp_path, 3)))

    flush.run()

    assert flush.error is not None
    assert flush.error.errno == errno.EIO
    assert open_in(tmp_path) == []


def test_either_all_are_opened_or_none_stays_open(tmp_path: Path) -> None:
    fds = all_or_none(opening(tmp_path, 3))
    assert len(open_in(tmp_path)) == 3
    Flush(0, fds).discard()

    with pytest.raises(OSError, match="Too many"):
        all_or_none(opening(tmp_path, 3, is_failing=True))
    assert open_in(tmp_path) == []


def test_syncing_at_once_raises_what_went_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync_all(opening(tmp_path, 2))
    monkeypatch.setattr(os, "fsync", fail_to_sync)

    with pytest.raises(OSError, match="Input/output"):
        sync_all(opening(tmp_path, 2))
    assert open_in(tmp_path) == []
