"""What a writer reported before it was killed, and what recovery must find.

A writer reports each action before and after it; it may be killed in between. Completed actions must be found
afterwards. A started action may have happened or not, but not partially.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.core.ids import TopicPartition
from ottla.records.batch import read_header
from ottla.records.control import read_end_marker

from .making import PLACED_BYTES, read_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.storage.folder.data_dir import DataDir
    from ottla.storage.partition_log import PartitionLog

    from .making import Read


class Batch(NamedTuple):
    """A batch as it was sent; None is an end marker, which the log creates."""

    data: bytes | None
    base_offset: int
    last_offset: int

    def is_at(self, found: Read) -> bool:
        if (found.base_offset, found.last_offset) != (self.base_offset, self.last_offset):
            return False
        if self.data is None:
            return read_header(found.data).is_control
        return found.sent == self.data[PLACED_BYTES:]


class Partition:
    """The expected state of one partition: its batches, its start, and the action in progress."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.start_offset = 0
        self.pending: dict[str, Any] | None = None

    @property
    def next_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.start_offset

    def about_to(self, event: dict[str, Any]) -> None:
        assert self.pending is None
        self.pending = event

    def did(self, event: dict[str, Any]) -> None:
        about, self.pending = self.pending, None
        match event["did"]:
            case "append":
                assert about is not None
                assert event["base"] == self.next_offset, "an offset was assigned twice, or skipped"
                self.batches.append(Batch(sent_data(about), event["base"], event["last"]))
            case "truncate":
                self.batches = [batch for batch in self.batches if batch.base_offset < event["next"]]
                self.start_offset = min(self.start_offset, event["next"])
            case "start":
                self.starts_at(event["offset"])
            case "delete":
                self.batches, self.start_offset = [], 0

    def starts_at(self, offset: int) -> None:
        self.start_offset = offset
        self.batches = [batch for batch in self.batches if batch.last_offset >= offset]

    def must_be(self, log: PartitionLog) -> None:
        """Compare a recovered log with this state, and continue from what was found."""
        found = read_all(log)
        about, self.pending = self.pending or {}, None
        if about.get("about") == "delete" and not found:
            self.batches, self.start_offset = [], 0
            return
        assert log.start_offset >= self.start_offset, f"the start went back from {self.start_offset} in {log!r}"
        if about.get("about") != "start" and self.batches:
            assert log.start_offset == self.start_offset
        expected = [batch for batch in self.batches if batch.last_offset >= log.start_offset]
        if about.get("about") == "truncate":
            kept = [batch for batch in expected if batch.last_offset < about["offset"]]
            assert len(kept) <= len(found) <= len(expected)
            expected = expected[: len(found)]
        assert_same(found[: len(expected)], expected)
        extra = found[len(expected) :]
        if extra:
            assert about.get("about") == "append", f"{log!r} has {len(extra)} batches that were never sent"
            assert len(extra) == 1
            unsure = Batch(sent_data(about), expected[-1].last_offset + 1 if expected else log.start_offset, -1)
            unsure = unsure._replace(last_offset=extra[0].last_offset)
            assert unsure.is_at(extra[0])
            expected.append(unsure)
        self.batches, self.start_offset = expected, log.start_offset
        assert log.next_offset == self.next_offset or not self.batches
        assert_transactions(found, log)


def sent_data(about: dict[str, Any]) -> bytes | None:
    return base64.b64decode(about["data"]) if about.get("data") else None


def assert_same(found: list[Read], expected: list[Batch]) -> None:
    assert [read[:2] for read in found] == [batch[1:] for batch in expected]
    for read, batch in zip(found, expected, strict=True):
        assert batch.is_at(read), f"the batch at offset {read.base_offset} is not the one that was sent"


def assert_transactions(found: list[Read], log: PartitionLog) -> None:
    """The transaction index must match the markers in the log."""
    begun: dict[int, int] = {}
    aborted = []
    unsure_until = log.start_offset
    for read in found:
        header = read_header(read.data)
        if header.is_control:
            marker = read_end_marker(read.data)
            first = begun.pop(header.producer_id, None)
            if unsure_until == log.start_offset > 0:
                # It may have started before the log start, so that its first offset is unknown.
                unsure_until = read.base_offset
            elif marker and not marker.is_commit and first is not None:
                aborted.append((header.producer_id, first, read.base_offset))
        elif header.is_transactional:
            begun.setdefault(header.producer_id, read.base_offset)
    indexed = [
        (entry.producer_id, entry.first_offset, entry.last_offset)
        for entry in log.aborted_transactions(log.start_offset, log.next_offset)
        if entry.last_offset > unsure_until
    ]
    assert indexed == aborted
    if begun:
        assert log.last_stable_offset <= max(min(begun.values()), log.start_offset)


class History:
    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, Partition] = {}
        self.acknowledged = 0

    def partition(self, name: str) -> Partition:
        topic, _, number = name.rpartition("-")
        return self.partitions.setdefault(TopicPartition(topic, int(number)), Partition())

    def learn(self, lines: Iterable[bytes]) -> None:
        """Apply a writer's report."""
        for line in lines:
            event = json.loads(line)
            partition = self.partition(event["at"])
            if "about" in event:
                partition.about_to(event)
            else:
                partition.did(event)
                self.acknowledged += event["did"] == "append"

    def must_be(self, data_dir: DataDir) -> None:
        for at, partition in self.partitions.items():
            if at in data_dir.logs:
                partition.must_be(data_dir.logs[at])
            else:
                assert not partition.batches
