"""Reads a broker's data folder without the broker: partitions, segments, end offsets.

The files are Kafka's: `topic-partition/00000000000000000000.log`, with an `.index` whose entries are a relative offset
and the position of the batch that ends with it. A batch that a running broker is writing is ignored: the log ends
before the first incomplete or corrupt batch.
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError, CorruptMessage
from ottla.core.ids import TopicPartition
from ottla.records.batch import HEADER_BYTES, count_intact, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.records.batch import BatchHeader
    from ottla.spark.reader.offsets import Offsets

_PARTITION_FOLDER: Final = re.compile(r"(.+)-(\d+)")
_SEGMENT: Final = re.compile(r"(\d{20})\.(e?log)")
_INDEX_ENTRY: Final = struct.Struct(">ii")
_BLOCK_BYTES: Final = 4 << 20
_LOG_STARTS: Final = "log-start-offset-checkpoint"
_HIGH_WATERMARKS: Final = "replication-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class SegmentFile:
    path: str
    base_offset: int

    def index(self) -> list[tuple[int, int]]:
        """Offsets and the positions of the batches that end with them, as far as the index is valid."""
        try:
            content = Path(self.path).with_suffix(".index").read_bytes()
        except FileNotFoundError:
            return []
        whole = len(content) // _INDEX_ENTRY.size * _INDEX_ENTRY.size
        entries: list[tuple[int, int]] = []
        for relative, position in _INDEX_ENTRY.iter_unpack(content[:whole]):
            if entries and position <= entries[-1][1]:
                break  # Kafka preallocates the index, filled with zeros
            entries.append((self.base_offset + relative, position))
        return entries


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    at: TopicPartition
    segments: tuple[SegmentFile, ...]
    start: int
    end: int


def partitions_in(folder: str) -> list[PartitionFiles]:
    """Every partition of a data folder, with the offsets that can be read."""
    root = Path(folder)
    if not root.is_dir():
        raise ConfigError(f"path {folder!r} is not a folder; it must be the data folder of a broker")
    starts, watermarks = read_checkpoint(root / _LOG_STARTS), read_checkpoint(root / _HIGH_WATERMARKS)
    found = []
    for each in sorted(root.iterdir()):
        match = _PARTITION_FOLDER.fullmatch(each.name)
        if match is None or not (segments := _segments(each)):
            continue
        at = TopicPartition(match[1], int(match[2]))
        end = log_end(segments[-1])
        # Records from the checkpointed high watermark on are not committed.
        end = min(end, watermarks.get(at, end))
        start = min(max(segments[0].base_offset, starts.get(at, 0)), end)
        found.append(PartitionFiles(at, segments, start, end))
    return found


def read_checkpoint(path: Path) -> Offsets:
    """Kafka's checkpoint format: a version, a count, and lines of topic, partition and offset."""
    try:
        lines = path.read_text("utf-8").splitlines()[2:]
        split = [line.rsplit(" ", 2) for line in lines]
        return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in split}
    except FileNotFoundError:
        return {}
    except ValueError:
        raise ConfigError(f"{path} is not an offset checkpoint; start the broker once to re-create it") from None


def _segments(folder: Path) -> tuple[SegmentFile, ...]:
    if not folder.is_dir():
        return ()
    found = []
    for each in folder.iterdir():
        match = _SEGMENT.fullmatch(each.name)
        if match is not None and match[2] == "elog":
            raise ConfigError(f"{each} is encrypted; read it through its broker, with kafka.bootstrap.servers")
        if match is not None:
            found.append(SegmentFile(str(each), int(match[1])))
    return tuple(sorted(found, key=lambda segment: segment.base_offset))


def log_end(last: SegmentFile) -> int:
    """The offset after the last complete, valid batch."""
    with Path(last.path).open("rb") as file:
        fd = file.fileno()
        position, next_offset = _last_known(fd, last)
        while True:
            block = read_block(fd, position)
            intact, after = count_intact(block, next_offset)
            if not intact:
                _refuse_damage(block, last, position)
                return next_offset
            position, next_offset = position + intact, after


def _refuse_damage(block: bytes, segment: SegmentFile, position: int) -> None:
    """Whether a later batch is valid: then the invalid one is damaged, and not just being written."""
    try:
        size = read_header(block).size
    except CorruptMessage:
        return
    if count_intact(block[size:], 0)[0]:
        raise CorruptMessage(f"{segment.path}: the batch at position {position} is damaged, and later ones are intact")


def _last_known(fd: int, segment: SegmentFile) -> tuple[int, int]:
    """The position of a batch near the end, and the lowest offset that it can have."""
    for offset, position in reversed(segment.index()):
        try:
            header = read_header(os.pread(fd, HEADER_BYTES, position))
        except CorruptMessage:
            continue
        if header.last_offset == offset:
            return position, header.base_offset
    return 0, segment.base_offset


def read_block(fd: int, position: int, least: int = _BLOCK_BYTES) -> bytes:
    """The bytes from this position on, with at least one complete batch if there is one."""
    block = os.pread(fd, least, position)
    if len(block) >= HEADER_BYTES:
        try:
            size = read_header(block).size
        except CorruptMessage:
            return block
        if size > len(block):
            return os.pread(fd, size, position)
    return block


def headers(segment: SegmentFile) -> Iterator[tuple[BatchHeader, int]]:
    """The header of each batch and its position, without the records."""
    position = 0
    with Path(segment.path).open("rb") as file:
        while len(head := os.pread(file.fileno(), HEADER_BYTES, position)) == HEADER_BYTES:
            try:
                header = read_header(head)
            except CorruptMessage:
                return
            yield header, position
            position += header.size
