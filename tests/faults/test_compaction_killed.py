"""Kill the process at every system call of a compaction.

Expected: the last record of each key keeps its offset and value, and compaction can run again.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from tests.storage.making import Producing, read_all
from tests.storage.test_compaction import committed, compact, keyed, last_of_each

from ottla.core.clock import ManualClock
from ottla.storage.config import LogConfig
from ottla.storage.folder.closing import close_log
from ottla.storage.recovery import LastKnown, open_log
from ottla.storage.segment_files.open_files import OpenFiles

from .killing import KILLED, fork, kill_at, wait

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

    from .killing import Moment

CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=4096)


def opened(folder: Path, *, is_clean: bool) -> PartitionLog:
    known = LastKnown(is_clean=True, recovery_point=40) if is_clean else LastKnown()
    return open_log(folder, CONFIG, ManualClock(), OpenFiles(16), known)


def fill(folder: Path) -> None:
    log = opened(folder, is_clean=False)
    for number in range(40):
        log.append(keyed((b"%d" % (number % 7), b"%d" % number * 90), by=Producing(7, 0, number)))
    assert len(log.segments) > 2
    log.roll()
    close_log(log)


def compact_in(folder: Path) -> None:
    compact(opened(folder, is_clean=True))


@pytest.mark.parametrize("moment", ["before", "torn"])
def test_a_compaction_killed_at_every_system_call_loses_nothing(
    in_memory: Path, moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", os.fstat)
    source = in_memory / "source-0"
    fill(source)
    log = opened(source, is_clean=True)
    expected = last_of_each(committed(log))
    log.abandon()
    kills = 0
    while True:
        kills += 1
        folder = in_memory / f"{kills}-0"
        shutil.copytree(source, folder)

        def work(folder: Path = folder, number: int = kills) -> None:
            kill_at(number, moment)
            compact_in(folder)

        status = wait(fork(work))
        log = opened(folder, is_clean=False)
        assert last_of_each(committed(log)) == expected
        assert log.next_offset == 40
        assert log.append(keyed((b"4", b"39" * 90), by=Producing(7, 0, 39))).is_duplicate
        compact(log)
        assert len(read_all(log)) < 40 * 100
        assert last_of_each(committed(log)) == expected
        assert [path.name for path in folder.iterdir() if path.suffix in (".cleaned", ".swap", ".tmp")] == []
        log.abandon()
        shutil.rmtree(folder)
        if status != KILLED:
            break
    assert status == 0
    assert kills > 15, "the compaction does too little"
