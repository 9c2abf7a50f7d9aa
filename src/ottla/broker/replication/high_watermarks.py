"""`replication-offset-checkpoint`: high watermarks, so that a restarted replica knows which records are committed.

Kafka's file uses topic names. The ids of these topics are in another file: a re-created topic must not get the high
watermarks of a deleted one, nor count as lost if it has no folder yet.
"""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.storage.folder.checkpoints import (
    HIGH_WATERMARK_TOPICS,
    HIGH_WATERMARKS,
    BadCheckpoint,
    read_offsets,
    read_topic_ids,
    write_offsets,
    write_topic_ids,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ottla.core.ids import TopicId, TopicPartition

_logger: Final = logging.getLogger(__name__)


class HighWatermarks:
    def __init__(self, folder: Path, current_id: Callable[[str], TopicId | None]) -> None:
        """Must be called after the folders of deleted topics have been renamed, with the ids of the current topics."""
        self._path, self._ids_path = folder / HIGH_WATERMARKS, folder / HIGH_WATERMARK_TOPICS
        self._current_id = current_id
        self._in_file = self._read()
        self._ids_in_file = self._read_ids()
        current = {at: offset for at, offset in self._in_file.items() if self._is_current(at)}
        self._noted = {at: offset for at, offset in current.items() if (folder / str(at)).exists()}
        self.lost = frozenset(at for at, offset in current.items() if offset > 0 and at not in self._noted)
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
        found = ((topic, self._current_id(topic)) for topic in {at.topic for at in self._in_file})
        ids = {topic: topic_id for topic, topic_id in found if topic_id is not None}
        return partial(self._write, self._number, self._in_file, ids)

    def _write(self, number: int, offsets: Mapping[TopicPartition, int], ids: Mapping[str, TopicId]) -> None:
        with self._writing:
            if number < self._last_written:
                return  # a newer one was written
            self._last_written = number
            try:
                if ids != self._ids_in_file:
                    # First: offsets with the id of an earlier topic would not count as lost with their folder.
                    write_topic_ids(self._ids_path, ids)
                    self._ids_in_file = ids
                write_offsets(self._path, offsets)
            except OSError as failed:
                _logger.error("could not checkpoint high watermarks: %s", failed)

    def _is_current(self, at: TopicPartition) -> bool:
        """Whether the offset is one of the current topic, as far as known: earlier releases did not store ids."""
        current = self._current_id(at.topic)
        return current is None or self._ids_in_file.get(at.topic, current) == current

    def _read_ids(self) -> Mapping[str, TopicId]:
        try:
            return read_topic_ids(self._ids_path)
        except BadCheckpoint as bad:
            _logger.warning("%s", bad)
            return {}

    def _read(self) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._path)
        except BadCheckpoint as bad:
            # Leaders recompute the high watermark, and followers learn it from them.
            _logger.warning("%s", bad)
            return {}
