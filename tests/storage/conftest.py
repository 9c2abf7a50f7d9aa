from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ottla.core.clock import ManualClock
from ottla.storage.config import LogConfig
from ottla.storage.segment_files.open_files import OpenFiles

from .data_dirs import Dirs
from .making import NOW, Partition, Producing, batch, open_in
from .recovering import ABORT, COMMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.storage.cipher import BatchCipher

    OpenPartition = Callable[..., Partition]


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip fsync: these tests check calls, not power cuts."""

    def fsync(fd: int) -> None:
        os.fstat(fd)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def files(tmp_path: Path) -> Iterator[OpenFiles]:
    files = OpenFiles(16)
    yield files
    files.close()
    assert open_in(tmp_path) == []


@pytest.fixture
def partition(tmp_path: Path, clock: ManualClock) -> Iterator[OpenPartition]:
    """Opens a log in a separate folder; at the end nothing of it may be open any more."""
    opened: list[Partition] = []

    def open_partition(
        name: str = "orders-0", open_files: int = 16, cipher: BatchCipher | None = None, **settings: object
    ) -> Partition:
        config = LogConfig(**settings)  # type: ignore[arg-type]
        opened.append(Partition(tmp_path / name, config, clock, open_files, cipher))
        return opened[-1]

    yield open_partition
    for one in opened:
        one.close()
    assert open_in(tmp_path) == []


@pytest.fixture
def dirs(tmp_path: Path) -> Iterator[Dirs]:
    dirs = Dirs(tmp_path / "data")
    yield dirs
    if open_in(tmp_path):  # the last one; those before it were closed
        dirs.kill()
    assert open_in(tmp_path) == []


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Partition]:
    """A log of several segments with everything in it: producers, aborted transactions, epochs, old timestamps."""
    config = LogConfig(segment_bytes=1024, index_interval_bytes=200, flush="os")
    opened = Partition(tmp_path / "orders-0", config, open_files=4)
    log = opened.log
    for number in range(12):
        log.append(batch(b"%d" % number, b"x", at=[NOW - 37 * number % 11, NOW], size=120), leader_epoch=number // 5)
        log.append(batch(b"idempotent", by=Producing(1, 0, number)), leader_epoch=number // 5)
        log.append(batch(b"transactional", by=Producing(2, 0, number, is_transactional=True)), leader_epoch=number // 5)
        if number % 3 == 2:
            log.append_end_marker(2, 0, ABORT if number % 2 else COMMIT, leader_epoch=number // 5)
    assert len(log.segments) >= 4
    assert log.aborted_transactions(0, 1000)
    yield opened
    opened.close()
    assert open_in(tmp_path) == []
