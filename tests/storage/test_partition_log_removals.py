"""Truncating at the end, and raising the start."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import OffsetOutOfRange, StorageError
from ottla.records.control import EndMarker
from ottla.storage.config import LogConfig
from ottla.storage.inspect import verify_segment
from ottla.storage.retention import delete_expired
from ottla.storage.truncation import truncate_to

from .making import (
    EVERY_BATCH,
    NOW,
    Partition,
    Producing,
    batch,
    headers,
    offset_for_timestamp,
    offsets,
    open_in,
    read_all,
    values,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

    OpenPartition = Callable[..., Partition]

COUNTS = [1, 3, 2, 1, 4, 2, 2, 5, 1, 3]
END = sum(COUNTS)
ABORT = EndMarker(is_commit=False, coordinator_epoch=0)


def filled(folder: Path, interval: int) -> Partition:
    """Ten batches with rising and falling timestamps in four segments."""
    opened = Partition(folder, LogConfig(segment_bytes=1024, index_interval_bytes=interval, flush="os"))
    for number, count in enumerate(COUNTS):
        at = NOW + (number * 7) % 5
        opened.log.append(batch(*[b"old"] * count, at=at, size=300), leader_epoch=number // 3)
    assert [segment.base_offset for segment in opened.log.segments] == [0, 6, 13, 21]
    return opened


def base_of(offset: int) -> int:
    """Where the batch with this offset begins."""
    base = 0
    for count in COUNTS:
        if base + count > offset:
            break
        base += count
    return base


@pytest.mark.parametrize("interval", [EVERY_BATCH, 500, 4096])
@pytest.mark.parametrize("offset", range(END + 1))
def test_a_log_can_be_truncated_anywhere_and_continues_there(tmp_path: Path, interval: int, offset: int) -> None:
    opened = filled(tmp_path, interval)
    before = read_all(opened.log)
    end = base_of(offset)

    truncate_to(opened.log, offset)

    assert opened.log.next_offset == end
    kept = b"".join(
        before[at : at + header.size]
        for at, header in zip(positions(before), headers(before), strict=True)
        if header.next_offset <= end
    )
    assert read_all(opened.log) == kept
    check_all(opened.log)
    assert opened.log.append(batch(b"new"), leader_epoch=9).base_offset == end
    for reopen in (opened.reopen_unclean, opened.reopen_clean):
        log = reopen()
        assert offsets(read_all(log)) == list(range(end + 1))
        assert values(read_all(log)) == [*values(kept), b"new"]
        check_all(log)
        assert log.epochs.epoch_at(end) == 9
        assert [log.epochs.epoch_at(header.base_offset) for header in headers(kept)] == [
            header.leader_epoch for header in headers(kept)
        ]
    opened.close()


def positions(data: bytes) -> list[int]:
    found = [0]
    for header in headers(data):
        found.append(found[-1] + header.size)
    return found[:-1]


def check_all(log: PartitionLog) -> None:
    """Indexes and newest timestamps are as the batches say."""
    for segment in log.segments:
        stored = segment.path.read_bytes()
        newest = max((header.max_timestamp for header in headers(stored)), default=-1)
        assert segment.newest_timestamp == newest
        for relative, position in segment.indexes.offsets.entries():
            assert segment.header_at(position).last_offset == segment.base_offset + relative
        if segment is not log.segments[-1]:
            assert list(verify_segment(segment.path)) == []
    assert len(open_in(log.folder)) <= len(log.segments) * 3 + 1


def test_truncating_at_or_beyond_the_end_does_nothing(partition: OpenPartition) -> None:
    opened = partition()
    opened.log.append(batch())

    truncate_to(opened.log, 1)
    truncate_to(opened.log, 100)

    assert opened.log.next_offset == 1


def test_a_log_can_be_truncated_repeatedly(partition: OpenPartition) -> None:
    opened = partition(segment_bytes=1024, index_interval_bytes=EVERY_BATCH)
    for step in range(30):
        for _ in range(5):
            opened.log.append(batch(b"%d" % step, size=150))
        truncate_to(opened.log, opened.log.next_offset - 3)

    assert [value[:2] for value in values(read_all(opened.log))[-4:] if value] == [b"28", b"28", b"29", b"29"]
    assert opened.log.next_offset == 60
    check_all(opened.log)


def test_truncating_below_the_start_lowers_it(partition: OpenPartition) -> None:
    opened = partition()
    for _ in range(5):
        opened.log.append(batch())
    opened.log.raise_start(4)

    truncate_to(opened.log, 2)

    assert (opened.log.start_offset, opened.log.next_offset) == (2, 2)
    opened.log.append(batch(b"new"))
    assert values(read_all(opened.log)) == [b"new"]


def test_truncating_below_the_first_segment_empties_the_log(partition: OpenPartition) -> None:
    opened = partition(retention_bytes=0)
    opened.log.append(batch())
    delete_expired(opened.log, NOW)
    opened.log.append(batch())

    truncate_to(opened.log, 0)

    assert (opened.log.start_offset, opened.log.next_offset, opened.log.size) == (1, 1, 0)


def test_truncated_records_are_no_longer_durable(partition: OpenPartition) -> None:
    opened = partition(flush="ack")
    for _ in range(5):
        opened.log.append(batch())
    opened.log.flush()

    truncate_to(opened.log, 3)
    opened.log.append(batch())

    assert opened.log.acknowledged_offset == 3


def test_a_flush_during_a_truncation_does_not_cover_later_records(partition: OpenPartition) -> None:
    log = partition(flush="ack").log
    for _ in range(5):
        log.append(batch())
    flush = log.begin_flush()
    assert flush is not None
    truncate_to(log, 2)
    for _ in range(5):
        log.append(batch(b"new"))

    flush.run()
    log.finish_flush(flush)

    assert log.acknowledged_offset <= 2


def test_truncation_restores_producer_states(partition: OpenPartition) -> None:
    opened = partition()
    for sequence in range(3):
        opened.log.append(batch(by=Producing(1, 0, sequence)))
        opened.log.roll()
    opened.log.append(batch(by=Producing(2, 0, 0)))

    truncate_to(opened.log, 2)

    assert opened.log.append(batch(b"again", by=Producing(1, 0, 2))).base_offset == 2
    assert opened.log.append(batch(by=Producing(1, 0, 1))).is_duplicate
    assert not opened.log.append(batch(by=Producing(2, 0, 77))).is_duplicate
    assert opened.names(".snapshot") == [f"{base:020d}.snapshot" for base in (1, 2)]


def test_a_transaction_whose_marker_was_truncated_is_open_again(partition: OpenPartition) -> None:
    log = partition().log
    log.append(batch(by=Producing(1, 0, 0, is_transactional=True)))
    log.append_end_marker(1, 0, ABORT)
    log.append(batch())
    assert log.last_stable_offset == 3

    truncate_to(log, 1)

    assert log.last_stable_offset == 0
    assert log.aborted_transactions(0, 100) == []
    log.append_end_marker(1, 0, ABORT)
    assert len(log.aborted_transactions(0, 100)) == 1


def test_the_age_of_a_segment_that_became_active_again_counts(partition: OpenPartition) -> None:
    log = partition(segment_ms=1000, message_timestamp_after_max_ms=1 << 60).log
    log.append(batch(at=NOW))
    log.append(batch(at=NOW + 5000))
    truncate_to(log, 1)
    log.append(batch(at=NOW + 1001))

    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_later_segments_go_first_so_that_a_crash_leaves_no_gap(
    partition: OpenPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = partition(segment_bytes=1024)
    for _ in range(5):
        opened.log.append(batch(size=1000))
    unlinked: list[str] = []
    path_type = type(opened.folder)
    unlink = path_type.unlink

    def note(path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002
        unlinked.append(path.name)
        unlink(path, missing_ok)

    monkeypatch.setattr(path_type, "unlink", note)
    truncate_to(opened.log, 1)

    assert [name for name in unlinked if name.endswith(".log")] == [f"{base:020d}.log" for base in (4, 3, 2)]


def test_a_failed_truncation_takes_the_partition_offline(
    partition: OpenPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = partition()
    for _ in range(3):
        opened.log.append(batch())

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "truncate", fail)
        with pytest.raises(StorageError, match="offline"):
            truncate_to(opened.log, 1)
    assert opened.log.is_offline
    opened.kill()
    assert open_in(opened.folder) == []
    assert offsets(read_all(opened.reopen_unclean())) == [0, 1, 2]


# The start


def test_below_a_raised_start_nothing_is_served(partition: OpenPartition) -> None:
    opened = partition()
    opened.log.append(batch(b"a", b"b", b"c"))
    opened.log.append(batch(b"d"), leader_epoch=1)

    opened.log.raise_start(2)

    with pytest.raises(OffsetOutOfRange):
        opened.log.read(1, 1000)
    # The batch that holds the start comes whole; a client passes over what is before.
    assert offsets(opened.log.read(2, 1000)) == [0, 1, 2, 3]
    assert opened.log.epochs.entries == [(0, 2), (1, 3)]
    assert offset_for_timestamp(opened.log, NOW) == (NOW, 2, 0)
    opened.log.raise_start(4)
    assert opened.log.epochs.entries == [(1, 4)]
    assert bytes(opened.log.read(4, 1000)) == b""


def test_the_start_never_goes_back_or_past_the_end(partition: OpenPartition) -> None:
    log = partition().log
    for _ in range(3):
        log.append(batch())
    log.raise_start(2)
    log.raise_start(2)

    for offset in (1, -1, 4):
        with pytest.raises(OffsetOutOfRange):
            log.raise_start(offset)
    assert log.start_offset == 2


def test_the_start_and_its_epochs_survive_a_restart(partition: OpenPartition) -> None:
    opened = partition()
    for epoch in range(4):
        opened.log.append(batch(), leader_epoch=epoch)
    opened.log.raise_start(2)

    for reopen in (opened.reopen_clean, opened.reopen_unclean):
        log = reopen()
        assert log.start_offset == 2
        assert log.epochs.entries == [(2, 2), (3, 3)]
