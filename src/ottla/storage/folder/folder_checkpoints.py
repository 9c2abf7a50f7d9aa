"""The shared checkpoints of a data folder: offsets of all its partitions, in Kafka's files."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.storage.files import (
    CORRUPT,
    beside,
    discard_beside,
    open_folder,
    replace_file,
    storage_errors,
    write_beside,
)
from ottla.storage.flushing import Flush, all_or_none
from ottla.storage.folder import checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from ottla.core.ids import TopicPartition
    from ottla.storage.partition_log import PartitionLog
    from ottla.storage.segment_files.open_files import OpenFiles

Noted = TypeVar("Noted")

_logger: Final = logging.getLogger(__name__)

_WRITING: Final = "writing checkpoints"


class FolderCheckpoints:
    """Recovery points, log start offsets, compacted offsets, and numbers of aborted transactions."""

    def __init__(self, path: Path, logs: Mapping[TopicPartition, PartitionLog], files: OpenFiles) -> None:
        self._path = path
        self._logs = logs
        """The open logs, whose offsets a new checkpoint has."""
        self._files = files
        self.is_intact = True
        """Whether all checkpoints could be read."""
        self.recovery_points = self._read(checkpoints.RECOVERY_POINTS, checkpoints.read_offsets)
        self.log_starts = self._read(checkpoints.LOG_STARTS, checkpoints.read_offsets)
        self.aborted = self._read(checkpoints.ABORTED, checkpoints.read_aborted)
        self._compacted = self._read(checkpoints.COMPACTED, checkpoints.read_offsets)
        self._compacted_and_dropped: set[TopicPartition] = set()
        """Deleted partitions that the file of compacted offsets may still contain."""
        self._outdated: set[TopicPartition] = set()
        self._newest: Flush | None = None
        self._placed_starts = dict(self.log_starts)
        """The log start offsets of the installed checkpoint, which may not be durable yet."""
        self._durable_starts = self._placed_starts

    def log_start(self, at: TopicPartition) -> int:
        """The log start offset to open the log with; it may be in a checkpoint that is not durable yet."""
        return self.log_starts.get(at, 0)

    def durable_start(self, at: TopicPartition) -> int:
        """The log start offset in the newest durable checkpoint: no crash brings back records below it."""
        return self._durable_starts.get(at, 0)

    def compacted_until(self, at: TopicPartition) -> int:
        """The offset below which records have been compacted."""
        return self._compacted.get(at, 0)

    def note_compacted(self, at: TopicPartition, offset: int) -> None:
        """Record the compacted offset. Not durable: an earlier offset only costs another pass."""
        self._compacted[at] = offset
        with storage_errors(_WRITING):
            self._write_compacted(is_durable=False)

    def _write_compacted(self, *, is_durable: bool = True) -> None:
        # Only in the owner's thread: a late write must not bring back the offset of a deleted partition.
        content = checkpoints.encode_offsets(self._compacted)
        replace_file(self._path / checkpoints.COMPACTED, content, is_durable=is_durable)

    # Checkpoints of all open logs

    def write(self) -> None:
        """Checkpoint recovery points and log start offsets, so that a start after a crash is fast."""
        written = self.begin()
        written.run()
        placed = self.place(written)
        placed.run()
        with storage_errors(_WRITING):
            self.confirm(placed)

    def begin(self) -> Flush:
        """Begin a checkpoint in steps: run the result in any thread, then pass it to `place`."""
        for at, log in self._logs.items():
            self.recovery_points[at] = log.recovery_point
            if log.is_start_synced:
                self.log_starts[at] = log.start_offset
        starts = {at: start for at, start in self.log_starts.items() if start > 0}
        contents = [checkpoints.encode_offsets(offsets) for offsets in (self.recovery_points, starts)]
        with self._placing() as paths:
            fds = self._files.with_room(lambda: all_or_none(map(write_beside, paths, contents)))
        self._newest = Flush(0, fds)
        return self._newest

    def place(self, written: Flush) -> Flush:
        """Install a finished checkpoint; it is durable once the returned flush was run. Then call `confirm`."""
        if written is not self._newest:
            # The checkpoint was superseded by a change that could not wait.
            written = self.begin()
            written.run()
        with self._placing() as paths:
            written.must_have_succeeded()
            for path in paths:
                beside(path).replace(path)
            self._outdated.clear()
            self._placed_starts = dict(self.log_starts)
            return Flush(0, [self._files.with_room(lambda: open_folder(self._path))])

    def confirm(self, placed: Flush) -> None:
        """Note that the installed checkpoint is durable; raises OSError if its flush failed."""
        placed.must_have_succeeded()
        self._durable_starts = self._placed_starts

    @contextmanager
    def _placing(self) -> Iterator[list[Path]]:
        paths = [self._path / checkpoints.RECOVERY_POINTS, self._path / checkpoints.LOG_STARTS]
        with storage_errors(_WRITING):
            try:
                yield paths
            except OSError:
                for path in paths:
                    discard_beside(path)
                raise

    # Changes of single partitions

    def drop(self, at: TopicPartition) -> None:
        """Drop the entries of a deleted partition; they are in the files until the next checkpoint."""
        self._newest = None
        self.recovery_points.pop(at, None)
        self._forget_start(at)
        self.aborted.pop(at, None)
        if self._compacted.pop(at, None) is not None:
            self._compacted_and_dropped.add(at)
        self._outdated.add(at)

    def begin_partition(self, at: TopicPartition) -> None:
        """Ensure that a new partition has no old checkpoint entries."""
        self.aborted.pop(at, None)
        if self._compacted.pop(at, None) is not None or at in self._compacted_and_dropped:
            # A new log with an old entry would lose tombstones and keep the records that they delete.
            with storage_errors(_WRITING):
                self._write_compacted()
            self._compacted_and_dropped.clear()
        if at in self.recovery_points or at in self.log_starts or at in self._outdated:
            self.recovery_points.pop(at, None)
            self._forget_start(at)
            self.write()

    def _forget_start(self, at: TopicPartition) -> None:
        for starts in (self.log_starts, self._placed_starts, self._durable_starts):
            starts.pop(at, None)

    def lower(self, at: TopicPartition, offset: int) -> None:
        """Lower checkpoints to this offset: records from it on will be replaced, so they are neither synced nor
        deleted.
        """
        for starts in (self._placed_starts, self._durable_starts):
            if starts.get(at, 0) > offset:
                starts[at] = offset
        for noted, write in (
            (self.recovery_points, partial(self._write_offsets, checkpoints.RECOVERY_POINTS, self.recovery_points)),
            (self.log_starts, partial(self._write_offsets, checkpoints.LOG_STARTS, self.log_starts)),
            (self._compacted, self._write_compacted),
        ):
            if noted.get(at, 0) > offset:
                noted[at] = offset
                self._newest = None
                with storage_errors(_WRITING):
                    self._files.with_room(write)

    def _write_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        checkpoints.write_offsets(self._path / name, offsets)

    def note_aborted(self) -> None:
        """Record the number of aborted transactions, to detect a lost transaction index: it has no checksum, and most
        segments have none.
        """
        for at, log in self._logs.items():
            counts = {segment.base_offset: len(segment.txn_index) for segment in log.segments}
            self.aborted[at] = {base_offset: count for base_offset, count in counts.items() if count}
        path = self._path / checkpoints.ABORTED
        if any(self.aborted.values()) or path.exists():
            checkpoints.write_aborted(path, self.aborted)

    def _read(self, name: str, read: Callable[[Path], dict[TopicPartition, Noted]]) -> dict[TopicPartition, Noted]:
        path = self._path / name
        try:
            return read(path)
        except checkpoints.BadCheckpoint as bad:
            _logger.warning("%s; recovering from the logs", bad)
            self.is_intact = False
            if path.is_dir():
                path.rename(path.with_name(name + CORRUPT))
            return {}
