"""`replication-offset-checkpoint`: high watermarks, so that a restarted replica knows which records are committed.

Kafka's file uses topic names, Ottla's also topic ids: a re-created topic must not get the high watermarks of a deleted
one.
"""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.storage.folder.checkpoints import HIGH_WATERMARKS, BadCheckpoint, read_offsets, write_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ottla.core.ids import TopicPartition

_logger: Final = logging.getLogger(__name__)


class HighWatermarks:
    def __init__(self, folder: Path) -> None:
        """Must be called after the folders of deleted topics have been renamed."""
        self._path = folder / HIGH_WATERMARKS
        self._in_file = self._read()
        self._noted = {at: offset for at, offset in self._in_file.items() if (folder / str(at)).exists()}
        self.lost = frozenset(at for at, offset in self._in_file.items() if offset > 0 and at not in self._noted)
        """Partitions that had records, but have no folder now."""
        self._writing = threading.Lock()
        self._number = 0
        self._last_written = 0

    def of(self, at: TopicPartition) -> int:
        """The high watermark of the current topic with this name."""
        if at in self._in_file and at not in self._noted:
            # A crash after its folder is created would leave the value of a deleted topic.
            self.note({})()
        return self._noted.get(at, 0)

    def forget(self, at: TopicPartition) -> None:
        self._noted.pop(at, None)

    def note(self, offsets: Mapping[TopicPartition, int]) -> Callable[[], None]:
        """Writes the checkpoint; may run in any thread."""
        self._noted |= offsets
        self._in_file = dict(self._noted)
        self._number += 1
        return partial(self._write, self._number, self._in_file)

    def _write(self, number: int, offsets: Mapping[TopicPartition, int]) -> None:
        with self._writing:
            if number < self._last_written:
                return  # a newer one was written
            self._last_written = number
            try:
                write_offsets(self._path, offsets)
            except OSError as failed:
                _logger.error("could not checkpoint high watermarks: %s", failed)

    def _read(self) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._path)
        except BadCheckpoint as bad:
            # Leaders recompute the high watermark, and followers learn it from them.
            _logger.warning("%s", bad)
            return {}
