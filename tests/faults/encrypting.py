"""An encrypted data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from ottla.core.ids import TopicId
from ottla.core.keys import KeyRing
from ottla.core.sealing import Sealer
from ottla.storage.folder.data_dir import DataDir

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.core.clock import Clock
    from ottla.core.ids import TopicPartition
    from ottla.storage.config import LogConfig
    from ottla.storage.partition_log import PartitionLog

TOPIC = TopicId(UUID(int=7))
ONE_KEY = KeyRing({1: b"1" * 32})
TWO_KEYS = KeyRing({1: b"1" * 32, 2: b"2" * 32}, rewrite_below=2)


class EncryptedDataDir(DataDir):
    """Created and used like any other; all topics have the same id."""

    ring = ONE_KEY

    def __init__(self, path: Path, clock: Clock) -> None:
        super().__init__(path, clock, sealer=Sealer(self.ring))

    def open_partition(self, at: TopicPartition, config: LogConfig, topic_id: TopicId | None = TOPIC) -> PartitionLog:
        return super().open_partition(at, config, topic_id)


class RotatedDataDir(EncryptedDataDir):
    """The same folder with an additional key, which replaces the other."""

    ring = TWO_KEYS
