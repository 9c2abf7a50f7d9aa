"""Kafka's checkpoint files: a version, a count, and that many lines."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ottla.core.ids import TopicId, TopicPartition
from ottla.storage.files import replace_file, storage_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ottla.storage.leader_epochs import LeaderEpochs

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
HIGH_WATERMARK_TOPICS: Final = "replication-topic-id-checkpoint"
"""Specific to Ottla; ignored by Kafka."""
COMPACTED: Final = "cleaner-offset-checkpoint"
ABORTED: Final = "aborted-transactions-checkpoint"
"""Specific to Ottla; ignored by Kafka."""
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
MISSING: Final = "missing-records"
LACKING: Final = "lacks-records"
PARTITION_METADATA: Final = "partition.metadata"

_VERSION: Final = "0"


class BadCheckpoint(ValueError):
    """A malformed file. Its contents can be rebuilt from the log, which is slower."""


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """An offset per partition; empty if the file does not exist."""
    offsets = {}
    for line in _read_lines(path):
        try:
            topic, partition, offset = line.split(" ")
            offsets[TopicPartition(topic, _number(partition))] = _number(offset)
        except ValueError:
            raise BadCheckpoint(f"{path.name}: not a topic, a partition and an offset: {line!r}") from None
    return offsets


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    replace_file(path, encode_offsets(offsets))


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return _checkpoint([f"{at.topic} {at.partition} {offset}" for at, offset in sorted(offsets.items())])


def read_topic_ids(path: Path) -> dict[str, TopicId]:
    """The id of each topic of another checkpoint; empty if the file does not exist."""
    ids = {}
    for line in _read_lines(path):
        try:
            topic, topic_id = line.split(" ")
            ids[topic] = TopicId.parse(topic_id)
        except ValueError:
            raise BadCheckpoint(f"{path.name}: not a topic and its id: {line!r}") from None
    return ids


def write_topic_ids(path: Path, ids: Mapping[str, TopicId]) -> None:
    replace_file(path, _checkpoint([f"{topic} {topic_id.text}" for topic, topic_id in sorted(ids.items())]))


def read_aborted(path: Path) -> dict[TopicPartition, dict[int, int]]:
    """The number of aborted transactions in each segment of a partition, by base offset."""
    counts: dict[TopicPartition, dict[int, int]] = {}
    for line in _read_lines(path):
        try:
            topic, partition, base_offset, count = line.split(" ")
            counts.setdefault(TopicPartition(topic, _number(partition)), {})[_number(base_offset)] = _number(count)
        except ValueError:
            raise BadCheckpoint(f"{path.name}: not a segment and a number: {line!r}") from None
    return counts


def write_aborted(path: Path, counts: Mapping[TopicPartition, Mapping[int, int]]) -> None:
    lines = [
        f"{at.topic} {at.partition} {base_offset} {count}"
        for at, segments in sorted(counts.items())
        for base_offset, count in sorted(segments.items())
    ]
    replace_file(path, _checkpoint(lines))


def read_epochs(path: Path) -> list[tuple[int, int]]:
    """The leader epochs of a partition with their start offsets."""
    entries = []
    for line in _read_lines(path):
        try:
            epoch, start_offset = line.split(" ")
            entries.append((_number(epoch), _number(start_offset)))
        except ValueError:
            raise BadCheckpoint(f"{path.name}: not an epoch and an offset: {line!r}") from None
    if any(later[0] <= earlier[0] or later[1] <= earlier[1] for earlier, later in pairwise(entries)):
        raise BadCheckpoint(f"{path.name}: epochs are not in order")
    return entries


def write_epochs(path: Path, entries: Iterable[tuple[int, int]], *, is_durable: bool = False) -> None:
    # A new line need not be synced: every batch has its epoch, so a lost line is rebuilt, and a leader does
    # not wait for the disk. A removed line must be synced.
    lines = [f"{epoch} {start_offset}" for epoch, start_offset in entries]
    replace_file(path, _checkpoint(lines), is_durable=is_durable)


def begin_epoch(folder: Path, epochs: LeaderEpochs, epoch: int, offset: int) -> None:
    """Record a new leader epoch of a partition in memory and on disk, or in neither."""
    with storage_errors(f"{folder.name}: leader epoch {epoch}"):
        known = list(epochs.entries)
        epochs.begin(epoch, offset)
        try:
            write_epochs(folder / LEADER_EPOCHS, epochs.entries)
        except OSError:
            epochs.entries = known
            raise


def read_topic_id(folder: Path) -> TopicId | None:
    """The topic id of a partition's folder; None if it is not stored."""
    try:
        lines = (folder / PARTITION_METADATA).read_text("ascii").splitlines()
        fields = dict(line.split(": ", 1) for line in lines if line)
        return TopicId.parse(fields["topic_id"]) if fields.get("version") == _VERSION else None
    except (FileNotFoundError, IsADirectoryError, ValueError, KeyError):
        return None


def write_topic_id(folder: Path, topic_id: TopicId) -> None:
    replace_file(folder / PARTITION_METADATA, f"version: {_VERSION}\ntopic_id: {topic_id}".encode("ascii"))


def _number(text: str) -> int:
    number = int(text)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"{number} is neither an offset nor an epoch")
    return number


def _read_lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return []
    except (ValueError, IsADirectoryError):
        raise BadCheckpoint(f"{path.name}: not text") from None
    if not text:
        return []
    lines = text.split("\n")
    # The last line ends with a line feed too: without it, a number may be truncated.
    is_whole = lines.pop() == ""
    if not is_whole or len(lines) < 2 or lines[0] != _VERSION or lines[1] != str(len(lines) - 2):
        raise BadCheckpoint(f"{path.name}: not a checkpoint of version {_VERSION}, or truncated")
    return lines[2:]


def _checkpoint(lines: list[str]) -> bytes:
    return "\n".join([_VERSION, str(len(lines)), *lines, ""]).encode()


def write_missing(folder: Path, first: int, end: int) -> None:
    """Record that a truncated log lacks the records from the first offset to below the second."""
    (folder / MISSING).write_text(f"{first} {end}\n")


def read_missing(folder: Path) -> tuple[int, int] | None:
    try:
        first, end = (folder / MISSING).read_text().split()
        return int(first), int(end)
    except (FileNotFoundError, ValueError):
        return None


def note_lacking(folder: Path, *, lacks: bool) -> bool:
    """Record, before a log is truncated, that it lacks records, until no ISR relies on it. Returns `lacks`."""
    if lacks:
        with suppress(OSError):  # a full disk must not keep the log from being opened
            replace_file(folder / LACKING, b"")
    return lacks


def is_lacking(folder: Path) -> bool:
    return (folder / LACKING).exists()


def forget_lacking(folder: Path) -> None:
    (folder / LACKING).unlink(missing_ok=True)
