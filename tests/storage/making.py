"""Helpers to build and inspect batches and logs."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.core.clock import ManualClock
from ottla.records.batch import place, read_header
from ottla.records.checksum import crc32c
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader
from ottla.storage.files import storage_errors
from ottla.storage.folder.closing import close_log
from ottla.storage.recovery import LastKnown, open_log
from ottla.storage.segment_files.open_files import OpenFiles
from ottla.storage.segment_files.timestamps import Unfinished

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.records.batch import BatchHeader
    from ottla.storage.cipher import BatchCipher
    from ottla.storage.config import LogConfig
    from ottla.storage.partition_log import PartitionLog
    from ottla.storage.segment_files.timestamps import TimestampOffset

NOW = ManualClock().now_ms()
EVERY_BATCH = 0
"""An index interval: each batch but a segment's first gets an entry."""


class Producing(NamedTuple):
    """Who sends a batch."""

    id: int = -1
    epoch: int = -1
    sequence: int = -1
    is_transactional: bool = False


NOBODY = Producing()


def batch(
    *values: bytes, at: int | Iterable[int] = NOW, by: Producing = NOBODY, compression: int = 0, size: int | None = None
) -> bytearray:
    """A batch of these values, by default one; `at` is their timestamp or one for each. `size` pads the last value."""
    values = values or (b"v",)
    times = [at] * len(values) if isinstance(at, int) else list(at)
    if size is not None:
        values = (*values[:-1], values[-1] + bytes(size - len(batch(*values, at=times, by=by))))
        # A longer value may need a longer length before it.
        values = (*values[:-1], values[-1][: len(values[-1]) + size - len(batch(*values, at=times, by=by))])
    builder = BatchBuilder(compression)
    for value, time in zip(values, times, strict=True):
        builder.append(time, b"", value)  # a compacted log takes no record without a key
    return builder.build(
        producer_id=by.id, producer_epoch=by.epoch, base_sequence=by.sequence, is_transactional=by.is_transactional
    )


def placed(made: bytearray, base_offset: int, leader_epoch: int = 0) -> bytearray:
    place(made, 0, base_offset, leader_epoch)
    return made


def values(data: bytes | memoryview) -> list[bytes | None]:
    return [record.value for record in RecordReader(data)]


def offsets(data: bytes | memoryview) -> list[int]:
    return [record.offset for record in RecordReader(data, with_control=True)]


def headers(data: bytes | memoryview) -> list[BatchHeader]:
    found = []
    at = 0
    while at < len(data):
        found.append(read_header(data, at))
        at += found[-1].size
    return found


def read_all(log: PartitionLog) -> bytes:
    """Everything from the log's start to its end, batch by batch."""
    return b"".join(read_steps(log, log.start_offset, 1 << 20))


def read_steps(log: PartitionLog, offset: int, max_bytes: int) -> Iterator[bytes]:
    """What a consumer gets, fetch after fetch."""
    while found := log.read(offset, max_bytes):
        yield bytes(found)
        offset = headers(found)[-1].next_offset


def open_descriptors() -> dict[int, str]:
    """The files that this process has open, by descriptor."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[int(entry.name)] = os.readlink(entry)
        except FileNotFoundError:  # the one that lists them
            continue
    return found


def open_in(folder: Path) -> list[str]:
    """The files below this folder that this process has open."""
    return sorted(name for name in open_descriptors().values() if name.startswith(f"{folder}/"))


class Partition:
    """A folder whose log is opened, left and opened again."""

    def __init__(
        self,
        folder: Path,
        config: LogConfig,
        clock: ManualClock | None = None,
        open_files: int = 16,
        cipher: BatchCipher | None = None,
    ) -> None:
        self.folder = folder
        self.cipher = cipher
        self.config = config
        self.clock = clock or ManualClock()
        self.files = OpenFiles(open_files)
        self.log = self._open(LastKnown())

    def _open(self, known: LastKnown) -> PartitionLog:
        self.log = open_log(self.folder, self.config, self.clock, self.files, known, self.cipher)
        self._is_open = True
        return self.log

    def stop(self) -> None:
        """Close the log, if it is not closed yet."""
        if self._is_open:
            self._is_open = False
            close_log(self.log)

    def kill(self) -> None:
        """Drop the log as a killed process would."""
        self._is_open = False
        self.log.abandon()

    def reopen_clean(self) -> PartitionLog:
        """Open the log as after a clean stop."""
        self.stop()
        log = self.log
        return self._open(LastKnown(is_clean=True, recovery_point=log.recovery_point, start_offset=log.start_offset))

    def reopen_unclean(self, recovery_point: int | None = None) -> PartitionLog:
        """Open the log as after a kill, with what the checkpoints said."""
        self.kill()
        known = self.log.recovery_point if recovery_point is None else recovery_point
        return self._open(LastKnown(is_clean=False, recovery_point=known, start_offset=self.log.start_offset))

    def close(self) -> None:
        self.kill()
        self.files.close()

    def names(self, suffix: str = "") -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if path.name.endswith(suffix))


def changed(made: bytearray, layout: str, at: int, value: int) -> bytearray:
    """The batch with one field of its header changed and a right checksum."""
    struct.pack_into(layout, made, at, value)
    struct.pack_into(">I", made, 17, crc32c(memoryview(made)[21:]))
    return made


def offset_for_timestamp(log: PartitionLog, timestamp: int) -> TimestampOffset | None:
    """The first record at or after this timestamp, regardless of the cost."""
    with storage_errors(log.folder.name):
        found = log.segments.find_timestamp(timestamp, log.start_offset, log.next_offset)
    assert not isinstance(found, Unfinished)
    return found
