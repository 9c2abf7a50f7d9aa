"""Appends from a leader: accepted batches, and the state of the follower's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import CorruptMessage
from ottla.records.control import EndMarker
from ottla.storage.config import LogConfig
from ottla.storage.truncation import restart_at

from .making import NOW, Partition, Producing, batch, headers, placed, read_all, values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

ABORT = EndMarker(is_commit=False, coordinator_epoch=0)
CONFIG = LogConfig(segment_bytes=1024, flush="os")


def copy(leader: PartitionLog, follower: PartitionLog) -> None:
    while data := leader.read(max(follower.next_offset, leader.start_offset), 1 << 20):
        at = 0
        for header in headers(data):
            follower.append_as_follower(data[at : at + header.size])
            at += header.size


def leading(folder: Path) -> Partition:
    leader = Partition(folder, CONFIG)
    for number in range(8):
        by = Producing(id=7, epoch=0, sequence=number * 2, is_transactional=True)
        leader.log.append(batch(b"a", b"b", by=by, size=300), leader_epoch=number // 3)
    leader.log.append_end_marker(7, 0, ABORT, leader_epoch=4)
    return leader


def test_a_follower_has_the_leaders_bytes_epochs_producers_and_aborted_transactions(tmp_path: Path) -> None:
    leader, follower = leading(tmp_path / "a"), Partition(tmp_path / "b", CONFIG)

    copy(leader.log, follower.log)

    assert read_all(follower.log) == read_all(leader.log)
    assert follower.log.epochs.entries == leader.log.epochs.entries == [(0, 0), (1, 6), (2, 12), (4, 16)]
    assert follower.log.producers.producers == leader.log.producers.producers
    assert follower.log.aborted_transactions(0, 100) == leader.log.aborted_transactions(0, 100) != []


@pytest.mark.parametrize("reopen", [Partition.reopen_clean, Partition.reopen_unclean])
def test_a_copy_that_was_left_and_opened_again_is_the_same(
    tmp_path: Path, reopen: Callable[[Partition], PartitionLog]
) -> None:
    leader, follower = leading(tmp_path / "a"), Partition(tmp_path / "b", CONFIG)
    copy(leader.log, follower.log)

    reopen(follower)

    assert read_all(follower.log) == read_all(leader.log)
    assert follower.log.epochs.entries == leader.log.epochs.entries


def test_a_batch_that_would_go_back_is_refused(tmp_path: Path) -> None:
    follower = Partition(tmp_path, CONFIG)
    follower.log.append_as_follower(memoryview(placed(batch(b"a", b"b"), 0)))

    with pytest.raises(CorruptMessage):
        follower.log.append_as_follower(memoryview(placed(batch(b"c"), 1)))

    assert follower.log.next_offset == 2


def test_a_batch_that_was_damaged_on_the_way_is_refused(tmp_path: Path) -> None:
    follower = Partition(tmp_path, CONFIG)
    damaged = placed(batch(b"abc"), 0)
    damaged[-1] ^= 1

    with pytest.raises(CorruptMessage):
        follower.log.append_as_follower(memoryview(damaged))


def test_gaps_that_compaction_left_on_the_leader_are_kept(tmp_path: Path) -> None:
    follower = Partition(tmp_path, CONFIG)

    follower.log.append_as_follower(memoryview(placed(batch(b"a"), 3, 1)))
    follower.log.append_as_follower(memoryview(placed(batch(b"b"), 9, 2)))

    assert follower.log.next_offset == 10
    assert follower.log.epochs.entries == [(1, 3), (2, 9)]
    assert values(follower.log.read(0, 1 << 20)) == [b"a", b"b"]


@pytest.mark.parametrize("reopen", [Partition.reopen_clean, Partition.reopen_unclean])
def test_a_log_can_restart_at_a_higher_offset_permanently(
    tmp_path: Path, reopen: Callable[[Partition], PartitionLog]
) -> None:
    follower = leading(tmp_path)

    restart_at(follower.log, 1000)
    assert (follower.log.start_offset, follower.log.next_offset) == (1000, 1000)
    assert follower.log.epochs.entries == []
    assert follower.log.producers.producers == {}
    follower.log.append_as_follower(memoryview(placed(batch(b"z", at=NOW), 1000, 9)))
    reopen(follower)

    assert (follower.log.start_offset, follower.log.next_offset) == (1000, 1001)
    assert values(follower.log.read(1000, 1 << 20)) == [b"z"]
    assert follower.log.epochs.entries == [(9, 1000)]
