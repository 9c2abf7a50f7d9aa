"""Removing damaged batches from a partition's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.clock import ManualClock
from ottla.core.ids import TopicId, TopicPartition
from ottla.storage.config import LogConfig
from ottla.storage.folder.checkpoints import MISSING
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.repair import damage_in, repair

from .making import batch, offsets

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

AT = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=1024)
COUNT = 40
TOPIC_ID = TopicId.random()


def opened(data_dir: DataDir) -> PartitionLog:
    return data_dir.open_partition(AT, CONFIG, TOPIC_ID)


def written(folder: Path) -> list[Path]:
    """Several segments of one record per batch; their files."""
    with DataDir(folder, ManualClock()) as data_dir:
        log = opened(data_dir)
        for number in range(COUNT):
            log.append(batch(b"value %02d" % number))
    return sorted((folder / str(AT)).glob("*.log"))


def offsets_in(folder: Path) -> list[int]:
    with DataDir(folder, ManualClock()) as data_dir:
        log = opened(data_dir)
        found: list[int] = []
        while data := log.read(found[-1] + 1 if found else 0, 1 << 20):
            found += offsets(data)
        return found


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def test_an_intact_log_is_not_changed(tmp_path: Path) -> None:
    written(tmp_path)

    assert damage_in(tmp_path / str(AT), lambda _: None) == []


def test_damaged_batches_are_dropped_reported_and_kept_aside(tmp_path: Path) -> None:
    files = written(tmp_path)
    before = {file: file.read_bytes() for file in files}
    size = before[files[0]].index(b"value 01") - before[files[0]].index(b"value 00")
    flip(files[1], size * 2 + 70)
    flip(files[1], size * 3 + 70)
    damaged = files[1].read_bytes()
    first = int(files[1].stem) + 2

    lost = damage_in(tmp_path / str(AT), lambda _: None)
    [kept] = repair(tmp_path / str(AT), lost)

    assert (lost[0].first, lost[-1].end) == (first, first + 2)
    assert kept.read_bytes() == damaged
    assert files[1].read_bytes() == before[files[1]][: size * 2] + before[files[1]][size * 4 :]
    assert damage_in(tmp_path / str(AT), lambda _: None) == []
    assert offsets_in(tmp_path) == [each for each in range(COUNT) if each not in (first, first + 1)]


def test_a_truncated_log_is_reported_at_every_start_until_repaired(tmp_path: Path) -> None:
    files = written(tmp_path)
    files[-1].write_bytes(b"")
    ends = []
    for _ in range(2):
        with DataDir(tmp_path, ManualClock()) as data_dir:
            ends.append(opened(data_dir).next_offset)

    [lost] = [each for each in damage_in(tmp_path / str(AT), lambda _: None) if each.path.name == MISSING]

    assert (lost.first, lost.end) == (ends[0], COUNT)
    repair(tmp_path / str(AT), [lost])
    assert damage_in(tmp_path / str(AT), lambda _: None) == []
