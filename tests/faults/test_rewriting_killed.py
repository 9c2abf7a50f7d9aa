"""Kill the re-encryption of a log at every modifying system call, and restart the broker.

Outcome: the same records, whatever key each segment has by then; what is left to do is done in the end, and then
nothing is left of the old key, nor of what was not encrypted.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from ottla.core.clock import ManualClock
from ottla.core.ids import TopicPartition
from ottla.core.keys import KeyRing
from ottla.records.control import EndMarker
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.rewrites.rewriting import put_in_place, rewrites_due

from .encrypting import TOPIC, TWO_KEYS, EncryptedDataDir, RotatedDataDir
from .killing import KILLED, kill_at, run
from .making import NOW, Producer, batch, leave, read_all

if TYPE_CHECKING:
    from pathlib import Path

AT = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=1024, index_interval_bytes=200)
MARKER = b"the-marker-that-nobody-may-find"


class NewKeyAlone(EncryptedDataDir):
    ring = KeyRing({2: TWO_KEYS.keys[2]})


def write(folder: Path, kind: type[DataDir]) -> object:
    data_dir = kind(folder, ManualClock())
    log = data_dir.open_partition(AT, CONFIG, TOPIC)
    for number in range(2):
        log.append(batch(MARKER * 10, at=NOW + number, by=Producer(5, 0, number)))
    log.append(batch(b"t", by=Producer(6, 0, 0, is_transactional=True)))
    log.append_end_marker(6, 0, EndMarker(is_commit=False, coordinator_epoch=1))
    log.append(batch(MARKER * 20))
    assert len(log.segments) > 1
    before = read_all(log), log.aborted_transactions(0, 100)
    leave(data_dir)
    return before


def rewrite(folder: Path) -> object:
    data_dir = RotatedDataDir(folder, ManualClock())
    log = data_dir.open_partition(AT, CONFIG)
    found = read_all(log), log.aborted_transactions(0, 100)
    for one in rewrites_due(log, 2):
        one.run()
        assert put_in_place(log, one)
    data_dir.settle_keys(2)
    leave(data_dir)
    return found


@pytest.mark.parametrize("kind", [DataDir, EncryptedDataDir])
def test_a_killed_re_encryption_loses_nothing_and_is_completed(
    in_memory: Path, monkeypatch: pytest.MonkeyPatch, kind: type[DataDir]
) -> None:
    monkeypatch.setattr(os, "fsync", os.fstat)
    written = in_memory / "written"
    before = write(written, kind)
    number, status = 0, KILLED
    while status == KILLED:
        number += 1
        folder = in_memory / str(number)
        shutil.copytree(written, folder)

        def work(number: int = number, folder: Path = folder) -> None:
            kill_at(number, "torn")
            rewrite(folder)

        status = run(work)
        assert rewrite(folder) == before
        # The old key is no longer needed, and plaintext is refused.
        data_dir = NewKeyAlone(folder, ManualClock())
        assert (read_all(log := data_dir.open_partition(AT, CONFIG)), log.aborted_transactions(0, 100)) == before
        leave(data_dir)
        assert not [path for path in folder.rglob("*") if path.is_file() and MARKER in path.read_bytes()]
        shutil.rmtree(folder)
    assert status == 0
    assert number > 60, "it changed too little to be interrupted"
