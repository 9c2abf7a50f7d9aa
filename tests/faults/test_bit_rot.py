"""Flip every bit of a log in turn, in old segments and in the active one.

Expected outcome by position of the bit:

- checksum, what it covers, magic, length or base offset: that batch is never served. After a clean stop, or below the
  recovery point, every other batch still is, the log keeps its end, and a read of the damaged one is an error. Above
  the recovery point after a crash, where a write may have been torn, the log ends there and the rest is kept aside.
- leader epoch: nothing covers it and nothing else confirms it; the batch is served with the wrong epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.storage.making import offset_for_timestamp

from ottla.core.clock import ManualClock
from ottla.core.errors import CorruptMessage
from ottla.storage.config import LogConfig
from ottla.storage.folder.closing import close_log
from ottla.storage.recovery import LastKnown, open_log
from ottla.storage.segment_files.open_files import OpenFiles

from .making import NOW, ROUNDS, Kept, Producer, Read, batch, read_all, split

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

    from .conftest import Told

BATCHES = 5
ACTIVE = 3
"""Two batches in the first segment, one in the second; from this index on they are in the active segment."""
EPOCH = range(12, 16)
NEW_BATCH = b"new"


class Rot(NamedTuple):
    """A flipped bit: its batch and byte."""

    number: int
    byte: int


class Specimen:
    """A log of three segments in a separate folder, damaged and reopened repeatedly."""

    def __init__(self, folder: Path, interval: int) -> None:
        self.config = LogConfig(segment_bytes=1024, index_interval_bytes=interval)
        self.files = OpenFiles()
        log = open_log(folder, self.config, ManualClock(), self.files)
        for number in range(BATCHES):
            if number in (2, ACTIVE):
                log.roll()
            by = Producer(4, 0, number) if number % 2 else Producer()
            log.append(batch(b"%d" % number, count=1 + number % 2, at=NOW + 10 * number, by=by))
        self.batches = read_all(log)
        self.next_offset = log.next_offset
        self.base_of_active = log.segments[-1].base_offset
        close_log(log)
        self.kept = Kept(folder)

    def open(self, known: LastKnown, name: str, damaged: bytes) -> PartitionLog:
        self.kept.put_back(**{name: damaged})
        return open_log(self.kept.folder, self.config, ManualClock(), self.files, known)

    def each_bit(self) -> list[tuple[str, int, Rot]]:
        """Every bit: file, position, and the batch and field that it belongs to."""
        bits = []
        number = 0
        for name, data in sorted(self.kept.files.items()):
            if name.endswith(".log"):
                position = 0
                for found in split(data):
                    for byte in range(len(found.data)):
                        bits += [(name, 8 * (position + byte) + bit, Rot(number, byte)) for bit in range(8)]
                    position += len(found.data)
                    number += 1
        assert number == len(self.batches)
        return bits


def flip(data: bytes, bit: int) -> bytes:
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)


def read_one(log: PartitionLog, offset: int, max_bytes: int) -> list[Read] | None:
    """The batch read at this offset; None for the corruption error."""
    try:
        return list(split(log.read(offset, max_bytes)))
    except CorruptMessage:
        return None


def assert_only_this_is_lost(specimen: Specimen, log: PartitionLog, rot: Rot, *, is_backwards: bool) -> None:
    assert log.next_offset == specimen.next_offset
    batches = specimen.batches
    for max_bytes in (1, 1 << 20):
        for number in reversed(range(len(batches))) if is_backwards else range(len(batches)):
            for offset in range(batches[number].base_offset, batches[number].last_offset + 1):
                found = read_one(log, offset, max_bytes)
                if number == rot.number:
                    assert found is None
                else:
                    assert found is not None
                    assert found == batches[number : number + len(found)]
    for number, expected in enumerate(batches):
        if number != rot.number:
            found_time = offset_for_timestamp(log, NOW + 10 * number)
            assert found_time is not None
            assert found_time[:2] == (NOW + 10 * number, expected.base_offset)


def assert_ends_before(specimen: Specimen, log: PartitionLog, rot: Rot) -> None:
    assert read_all(log) == specimen.batches[: rot.number]
    assert log.next_offset == specimen.batches[rot.number].base_offset
    assert [path for path in log.folder.iterdir() if path.suffix == ".corrupt"]


def assert_all_served_but_for_the_epoch(specimen: Specimen, log: PartitionLog, rot: Rot) -> None:
    found = read_all(log)
    changed = found.pop(rot.number)
    expected = list(specimen.batches)
    intact = expected.pop(rot.number)
    assert found == expected
    assert changed._replace(data=intact.data) == intact
    assert changed.data[:12] + changed.data[16:] == intact.data[:12] + intact.data[16:]


def assert_goes_on(log: PartitionLog) -> None:
    appended = log.append(batch(NEW_BATCH))
    (found,) = split(log.read(appended.base_offset, 1))
    assert found.base_offset == appended.base_offset
    assert found.sent == bytes(batch(NEW_BATCH))[16:]


@pytest.mark.parametrize(
    ("recovery_point", "index_interval", "every"),
    [
        pytest.param("clean", 0, 1, id="after a clean stop, every batch indexed"),
        pytest.param("clean", 4096, 5, id="after a clean stop, none indexed"),
        pytest.param("start", 0, 1, id="after a crash, nothing known to be synced"),
        pytest.param("active segment", 0, 5, id="after a crash, old segments known to be synced"),
    ],
)
def test_a_flipped_bit_is_never_served_as_good(
    in_memory: Path, recovery_point: str, index_interval: int, every: int, told: Told
) -> None:
    specimen = Specimen(in_memory / "orders-0", index_interval)
    known, first_doubtful = {
        "clean": (LastKnown(is_clean=True, recovery_point=specimen.next_offset), BATCHES),
        "start": (LastKnown(), 0),
        "active segment": (LastKnown(recovery_point=specimen.base_of_active), ACTIVE),
    }[recovery_point]
    for name, bit, rot in specimen.each_bit()[:: 1 if ROUNDS > 1 else every]:
        told.clear()
        log = specimen.open(known, name, flip(specimen.kept.files[name], bit))
        if rot.byte in EPOCH:
            assert_all_served_but_for_the_epoch(specimen, log, rot)
        else:
            if rot.number >= first_doubtful:
                assert_ends_before(specimen, log, rot)
            else:
                assert_only_this_is_lost(specimen, log, rot, is_backwards=bit % 2 == 0)
            assert told.records, "nobody was told"
        assert_goes_on(log)
        log.abandon()
