"""Data folders that are opened, killed and opened again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.clock import ManualClock
from ottla.core.ids import TopicId, TopicPartition
from ottla.records.control import EndMarker
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir

from .making import Producing, batch, read_all, values

if TYPE_CHECKING:
    from pathlib import Path


ORDERS = TopicPartition("orders", 0)
CONFIG = LogConfig(flush="os", segment_bytes=1024)
SOME_ID = TopicId.parse("g44z2k4uQeCBfVXVsQ5aTQ")


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


def append(folder: DataDir, *contents: bytes, at: TopicPartition = ORDERS) -> None:
    log = folder.open_partition(at, CONFIG)
    for value in contents:
        log.append(batch(value))


def contents(folder: DataDir, at: TopicPartition = ORDERS) -> list[bytes | None]:
    return values(read_all(folder.open_partition(at, CONFIG)))


def abort(folder: DataDir, at: TopicPartition = ORDERS) -> None:
    log = folder.open_partition(at, CONFIG)
    log.append(batch(by=Producing(1, 0, 0, is_transactional=True)))
    log.append_end_marker(1, 0, EndMarker(is_commit=False, coordinator_epoch=0))
