"""Torn last writes: the file ends inside a batch, or in bytes that were never written.

Outcome: the log ends with the last whole batch. The rest is kept aside and reported, appending goes on, and a
producer may send the batch again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.clock import ManualClock
from ottla.storage.config import LogConfig
from ottla.storage.folder.closing import close_log
from ottla.storage.recovery import open_log
from ottla.storage.segment_files.open_files import OpenFiles

from .making import Kept, Producer, batch, read_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

    from .conftest import Told

CONFIG = LogConfig(segment_bytes=1024, index_interval_bytes=100)
LAST = Producer(9, 0, 3)


def open_again(folder: Path, files: OpenFiles) -> PartitionLog:
    return open_log(folder, CONFIG, ManualClock(), files)


@pytest.fixture(params=["in a segment", "alone in a segment"])
def kept(in_memory: Path, request: pytest.FixtureRequest) -> Kept:
    """A log of four batches, all by one producer; the last is in a new segment or not."""
    files = OpenFiles()
    log = open_again(in_memory / "orders-0", files)
    for sequence in range(4):
        if sequence == 3 and request.param == "alone in a segment":
            log.roll()
        log.append(batch(b"%d" % sequence * 30, by=LAST._replace(sequence=sequence)))
    log.abandon()
    files.close()
    return Kept(in_memory / "orders-0")


def cut(data: bytes, at: int) -> bytes:
    return data[:at]


def zeros(data: bytes, at: int) -> bytes:
    return data[:at] + bytes(len(data) - at)


def ones(data: bytes, at: int) -> bytes:
    return data[:at] + b"\xff" * (len(data) - at)


def other_bytes(data: bytes, at: int) -> bytes:
    return data[:at] + bytes(byte ^ 0x5A for byte in data[at:])


@pytest.mark.parametrize("tear", [cut, zeros, ones, other_bytes])
def test_the_log_ends_with_the_last_whole_batch(kept: Kept, tear: Callable[[bytes, int], bytes], told: Told) -> None:
    name = max(name for name in kept.files if name.endswith(".log"))
    whole = kept.files[name]
    files = OpenFiles()
    torn_at = whole.rindex(b"\x00" * 7 + b"\x03")  # the base offset of the last batch
    for at in range(torn_at, len(whole)):
        torn = tear(whole, at)
        if torn == whole:
            continue  # it happens to end in the bytes that were not written
        kept.put_back(**{name: torn})
        told.clear()
        log = open_again(kept.folder, files)

        assert [read.base_offset for read in read_all(log)] == [0, 1, 2]
        assert log.next_offset == 3
        if at > torn_at or tear is not cut:
            assert (kept.folder / f"{name}.{torn_at}.corrupt").read_bytes() == torn[torn_at:]
            assert f"truncating the log at byte {torn_at} of {name}" in told.text
        assert (kept.folder / name).stat().st_size == torn_at
        assert not log.append(batch(b"3" * 30, by=LAST)).is_duplicate
        assert log.append(batch(b"3" * 30, by=LAST)).is_duplicate
        assert [read.base_offset for read in read_all(log)] == [0, 1, 2, 3]
        log.abandon()
    files.close()


def test_producer_snapshots_after_the_truncation_are_deleted(in_memory: Path) -> None:
    """Their offsets are reused, and they would be mistaken for snapshots of the new records."""
    folder, files = in_memory / "orders-0", OpenFiles()
    log = open_again(folder, files)
    for sequence in range(4):
        log.append(batch(b"%d" % sequence * 30, by=LAST._replace(sequence=sequence)))
    close_log(log)
    [snapshot] = folder.glob("*.snapshot")
    assert snapshot.name == "00000000000000000004.snapshot"
    [segment] = folder.glob("*.log")
    segment.write_bytes(segment.read_bytes()[:-1])

    log = open_again(folder, files)
    assert log.next_offset == 3
    assert not snapshot.exists()
    log.append(batch(b"somebody else", by=Producer(10, 0, 0)))
    log.abandon()

    log = open_again(folder, files)
    assert log.next_offset == 4
    assert log.append(batch(b"somebody else", by=Producer(10, 0, 0))).is_duplicate
    assert not log.append(batch(b"3" * 30, by=LAST)).is_duplicate
    log.abandon()
    files.close()
