"""Reads from any offset."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.errors import CorruptMessage, OffsetOutOfRange, StorageError
from ottla.records.batch import check_batch
from ottla.records.reader import RecordReader
from ottla.storage.config import LogConfig
from ottla.storage.truncation import truncate_to

from .making import (
    EVERY_BATCH,
    NOW,
    Partition,
    batch,
    headers,
    offset_for_timestamp,
    offsets,
    open_in,
    placed,
    read_all,
    read_steps,
    values,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

    OpenPartition = Callable[..., Partition]

INTERVALS = [EVERY_BATCH, 150, 4096]


def filled(opened: Partition, counts: tuple[int, ...] = (1, 3, 2, 1, 4)) -> list[bytes]:
    """Batches of this many records each; the bytes of each batch as they are in the log."""
    stored = []
    for count in counts:
        made = batch(*[b"value %d" % number for number in range(count)])
        opened.log.append(made)
        stored.append(bytes(made))
    return stored


def of(stored: list[bytes], offset: int) -> int:
    """The number of the batch with this offset."""
    return next(number for number, data in enumerate(stored) if check_batch(data).last_offset >= offset)


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("is_reopened", [False, True])
def test_a_read_returns_the_batch_of_its_offset_and_all_later_ones(
    partition: OpenPartition,
    interval: int,
    is_reopened: bool,  # noqa: FBT001
) -> None:
    opened = partition(index_interval_bytes=interval)
    stored = filled(opened)
    if is_reopened:
        opened.reopen_clean()

    for offset in range(opened.log.next_offset):
        assert bytes(opened.log.read(offset, 1 << 20)) == b"".join(stored[of(stored, offset) :])
    assert bytes(opened.log.read(opened.log.next_offset, 1 << 20)) == b""


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("max_bytes", [-1, 0, 1, 16, 60, 61, 62, 80])
def test_the_first_batch_is_returned_whole_whatever_the_limit(
    partition: OpenPartition, interval: int, max_bytes: int
) -> None:
    opened = partition(index_interval_bytes=interval)
    stored = filled(opened)

    for offset in range(opened.log.next_offset):
        assert bytes(opened.log.read(offset, max_bytes)) == stored[of(stored, offset)]
    assert list(read_steps(opened.log, 0, max_bytes)) == stored
    assert list(read_steps(opened.log, 0, max_bytes)) == stored  # from remembered positions


def test_no_batch_is_returned_in_part(partition: OpenPartition) -> None:
    opened = partition()
    stored = filled(opened)
    sizes = [len(data) for data in stored]

    for max_bytes in range(sum(sizes) + 2):
        fitting = max(n for n in range(len(sizes) + 1) if sum(sizes[:n]) <= max(max_bytes, sizes[0]))
        assert bytes(opened.log.read(0, max_bytes)) == b"".join(stored[:fitting])


def test_nothing_is_returned_from_the_limit_on(partition: OpenPartition) -> None:
    opened = partition()
    stored = filled(opened)  # at 0, 1, 4, 6, 7 to 10

    assert bytes(opened.log.read(0, 1000, 0)) == b""
    assert bytes(opened.log.read(0, 1000, 1)) == stored[0]
    assert bytes(opened.log.read(0, 1000, 6)) == b"".join(stored[:3])
    assert bytes(opened.log.read(4, 1000, 4)) == b""
    assert bytes(opened.log.read(5, 1000, 4)) == b""
    assert bytes(opened.log.read(7, 1000, 999)) == stored[4]
    # A limit within a batch, which the broker never sets, does not tear it.
    assert bytes(opened.log.read(0, 1000, 2)) == b"".join(stored[:2])


def test_a_limit_does_not_spoil_what_is_remembered(partition: OpenPartition) -> None:
    opened = partition()
    stored = filled(opened)
    assert bytes(opened.log.read(0, 1000, 1)) == stored[0]
    assert bytes(opened.log.read(1, 1000, 1)) == b""
    assert bytes(opened.log.read(1, 1, 1)) == b""
    assert bytes(opened.log.read(1, 1000, 4)) == stored[1]
    assert bytes(opened.log.read(4, 1000)) == b"".join(stored[2:])


def test_unknown_offsets_are_out_of_range(partition: OpenPartition) -> None:
    opened = partition()
    filled(opened)
    opened.log.raise_start(4)

    for offset in (-1, 0, 3, 12):
        with pytest.raises(OffsetOutOfRange, match=r"out of range 4\.\.11"):
            opened.log.read(offset, 1000)
    assert offsets(opened.log.read(4, 1000))[0] == 4


def test_an_empty_log_has_nothing_to_read(partition: OpenPartition) -> None:
    log = partition().log

    assert bytes(log.read(0, 1000)) == b""
    with pytest.raises(OffsetOutOfRange):
        log.read(1, 1000)


def test_a_read_stays_within_a_segment_and_the_next_goes_on_in_the_next(partition: OpenPartition) -> None:
    opened = partition(segment_bytes=1024)
    for _ in range(30):
        opened.log.append(batch(size=100))

    assert [len(headers(data)) for data in read_steps(opened.log, 0, 1 << 20)] == [10, 10, 10]
    assert [len(headers(data)) for data in read_steps(opened.log, 5, 250)][:3] == [2, 2, 1]
    assert offsets(read_all(opened.log)) == list(range(30))


def test_a_reader_at_the_end_gets_new_batches(partition: OpenPartition) -> None:
    opened = partition(segment_bytes=1024)
    for number in range(30):
        assert bytes(opened.log.read(number, 1000)) == b""
        opened.log.append(batch(b"%d" % number, size=100))
        assert offsets(opened.log.read(number, 1000)) == [number]


def test_many_readers_at_different_places_do_not_disturb_each_other(partition: OpenPartition) -> None:
    opened = partition(segment_bytes=2000)
    for number in range(100):
        opened.log.append(batch(b"%d" % number))
    readers = [read_steps(opened.log, start, 70 + start) for start in range(100)]
    found: list[bytes] = [b""] * len(readers)
    is_reading = True
    while is_reading:
        is_reading = False
        for number, reader in enumerate(readers):
            data = next(reader, b"")
            found[number] += data
            is_reading = is_reading or bool(data)

    assert [offsets(data) for data in found] == [list(range(start, 100)) for start in range(100)]


def test_a_consumer_that_reads_on_needs_no_index(partition: OpenPartition, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = partition(index_interval_bytes=EVERY_BATCH)
    stored = filled(opened, (1,) * 20)
    opened.reopen_clean()
    opened.log.append(batch())
    opened.log.read(0, 1)

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("ottla.storage.segment_files.index_file.IndexFile.find", refuse)
    assert list(read_steps(opened.log, 1, 1))[:19] == stored[1:]


# Gaps, as compaction leaves them


@pytest.fixture
def gapped(partition: OpenPartition) -> Partition:
    """Batches at 5..6, 10, 20..22 | 40, 41 | nothing from 50 on | 60; the log goes from 0 to 70."""
    opened = partition(index_interval_bytes=EVERY_BATCH, cleanup_policy="compact")
    opened.stop()
    for path in opened.folder.iterdir():
        path.unlink()
    segments = {0: [(5, 2), (10, 1), (20, 3)], 40: [(40, 1), (41, 1)], 50: [], 60: [(60, 1), (69, 1)]}
    for base, batches in segments.items():
        data = b"".join(placed(batch(*[b"v"] * count), offset) for offset, count in batches)
        (opened.folder / f"{base:020d}.log").write_bytes(data)
    opened.reopen_unclean(0)
    return opened


def test_in_a_gap_the_next_batch_is_read(gapped: Partition) -> None:
    log = gapped.log
    assert (log.start_offset, log.next_offset) == (0, 70)
    bases = [5, 10, 20, 40, 41, 60, 69]
    lasts = [6, 10, 22, 40, 41, 60, 69]
    for _ in range(2):
        for offset in range(70):
            expected = next(base for base, last in zip(bases, lasts, strict=True) if last >= offset)
            assert headers(log.read(offset, 1))[0].base_offset == expected
        gapped.reopen_clean()
        log = gapped.log


def test_a_reader_goes_through_all_gaps(gapped: Partition) -> None:
    assert offsets(read_all(gapped.log)) == [5, 6, 10, 20, 21, 22, 40, 41, 60, 69]
    assert offsets(b"".join(read_steps(gapped.log, 30, 1))) == [40, 41, 60, 69]


def test_a_limit_in_a_gap_is_a_limit(gapped: Partition) -> None:
    assert bytes(gapped.log.read(23, 1000, 40)) == b""
    assert offsets(gapped.log.read(0, 1000, 15)) == [5, 6, 10]
    assert offsets(gapped.log.read(42, 1000, 61)) == [60]


def test_a_log_with_gaps_can_be_truncated_in_one(gapped: Partition) -> None:
    truncate_to(gapped.log, 55)
    assert gapped.log.next_offset == 50
    truncate_to(gapped.log, 30)
    assert gapped.log.next_offset == 23
    truncate_to(gapped.log, 15)
    assert gapped.log.next_offset == 11
    assert gapped.log.append(batch()).base_offset == 11
    assert offsets(read_all(gapped.log)) == [5, 6, 10, 11]


# Errors


def test_a_failing_disk_is_an_error_of_that_read_alone(
    partition: OpenPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = partition()
    filled(opened)
    opened.log.append(batch(b"x" * 300_000))

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "pread", fail)
        broken.setattr(os, "preadv", fail)
        with pytest.raises(StorageError, match="orders-0: Input/output error"):
            opened.log.read(0, 1 << 20)
        with pytest.raises(StorageError, match="orders-0: Input/output error"):
            opened.log.read(0, 1000)
        with pytest.raises(StorageError):
            offset_for_timestamp(opened.log, NOW)
    assert len(values(opened.log.read(0, 1000))) == 11


def test_a_shrunken_file_is_an_error_not_an_endless_loop(partition: OpenPartition) -> None:
    opened = partition(segment_bytes=1024)
    for _ in range(12):
        opened.log.append(batch(size=100))
    os.truncate(opened.log.segments[0].path, 450)

    assert offsets(opened.log.read(0, 1 << 20)) == [0, 1, 2, 3]
    for max_bytes in (0, 1, 100, 1 << 20):
        with pytest.raises((CorruptMessage, StorageError)):
            opened.log.read(4, max_bytes)
    assert offsets(opened.log.read(10, 1 << 20)) == [10, 11]


def test_a_deleted_file_is_an_error_of_storage(partition: OpenPartition) -> None:
    opened = partition(segment_bytes=1024)
    for _ in range(12):
        opened.log.append(batch(size=100))
    opened.files.close()
    opened.log.segments[0].path.unlink()

    with pytest.raises(StorageError, match="No such file"):
        opened.log.read(0, 1000)
    assert offsets(opened.log.read(10, 1000)) == [10, 11]


# By timestamp


def brute_force(log: PartitionLog, data: bytes, timestamp: int) -> tuple[int, int, int] | None:
    for header, one in zip(headers(data), cut(data), strict=True):
        for record in RecordReader(one):
            if record.timestamp >= timestamp and record.offset >= log.start_offset:
                return record.timestamp, record.offset, header.leader_epoch
    return None


def newest_from(start: int, data: bytes) -> int:
    """The highest timestamp from there on; records without one have none."""
    return max([-1, *(record.timestamp for record in RecordReader(data) if record.offset >= start)])


def cut(data: bytes) -> list[bytes]:
    found = []
    at = 0
    for header in headers(data):
        found.append(data[at : at + header.size])
        at += header.size
    return found


@given(
    times=st.lists(st.lists(st.integers(-3, 30), min_size=1, max_size=3), max_size=30),
    interval=st.sampled_from(INTERVALS),
    start=st.integers(0, 20),
    is_reopened=st.booleans(),
    epochs=st.booleans(),
)
def test_the_first_record_at_or_after_a_time_is_found_as_by_reading_everything(
    tmp_path_factory: pytest.TempPathFactory,
    times: list[list[int]],
    interval: int,
    start: int,
    is_reopened: bool,  # noqa: FBT001
    epochs: bool,  # noqa: FBT001
) -> None:
    config = LogConfig(segment_bytes=1024, index_interval_bytes=interval, flush="os")
    opened = Partition(tmp_path_factory.mktemp("log"), config, open_files=2)
    for number, stamps in enumerate(times):
        opened.log.append(batch(*[b"v"] * len(stamps), at=stamps, compression=number % 2), number // 7 * epochs)
    if is_reopened:
        opened.reopen_clean()
    everything = read_all(opened.log)
    opened.log.raise_start(min(start, opened.log.next_offset))

    for timestamp in range(-4, 32):
        assert offset_for_timestamp(opened.log, timestamp) == brute_force(opened.log, everything, timestamp)
    assert opened.log.newest_timestamp_left(1 << 20) == newest_from(opened.log.start_offset, everything)
    newest = max((stamp for stamps in times for stamp in stamps), default=-1)
    assert max(segment.newest_timestamp for segment in opened.log.segments) == max(newest, -1)
    opened.close()


def test_nothing_is_left_open_by_reads_and_lookups(tmp_path: Path) -> None:
    opened = Partition(tmp_path / "p-0", LogConfig(segment_bytes=1024), open_files=3)
    for number in range(50):
        opened.log.append(batch(at=NOW + number, size=100))
    read_all(opened.log)
    offset_for_timestamp(opened.log, NOW + 20)

    assert len(open_in(tmp_path)) <= 4
    opened.stop()
    assert len(open_in(tmp_path)) == 0


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("segment_bytes", [1024, 1 << 20])
def test_the_size_between_two_offsets_is_that_of_the_batches_from_one_to_the_other(
    partition: OpenPartition, interval: int, segment_bytes: int
) -> None:
    opened = partition(index_interval_bytes=interval, segment_bytes=segment_bytes)
    stored = filled(opened, (1, 3, 2, 1, 4) * 4)
    end = opened.log.next_offset
    assert (len(opened.log.segments) > 1) == (segment_bytes == 1024)

    for first in range(end):
        for last in range(first + 1, end):
            between = stored[of(stored, first) : of(stored, last)]
            assert opened.log.size_between(first, last) == sum(map(len, between)), (first, last)
        assert opened.log.size_between(first, end + 5) == sum(map(len, stored[of(stored, first) :]))
        assert opened.log.size_between(first, first) == opened.log.size_between(end, end) == 0
