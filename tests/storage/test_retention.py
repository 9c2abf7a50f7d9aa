from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from ottla.core.clock import ManualClock, SteadyClock
from ottla.storage.retention import delete_expired, expired

from .making import NOW, Partition, batch, offsets, open_in, read_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.storage.partition_log import PartitionLog

    OpenPartition = Callable[..., Partition]

FOREVER = {"retention_ms": -1, "retention_bytes": -1}


def fill(log: PartitionLog, *timestamps: int) -> None:
    """A segment for each of these timestamps; the last one is the active one."""
    for at in timestamps:
        log.roll()
        log.append(batch(at=at, size=500))


def doomed(opened: Partition, now_ms: int = NOW, start_offset: int = 0) -> int:
    return expired(opened.log.segments, opened.log.config, now_ms, start_offset)


def test_without_limits_everything_is_kept(partition: OpenPartition) -> None:
    opened = partition(**FOREVER)
    fill(opened.log, 0, 1, 2)

    assert doomed(opened, 1 << 62) == 0


def test_segments_are_deleted_when_their_newest_record_exceeds_retention(partition: OpenPartition) -> None:
    opened = partition(retention_ms=1000, retention_bytes=-1)
    fill(opened.log, NOW, NOW + 500, NOW + 700)

    assert [doomed(opened, NOW + age) for age in (0, 1000, 1001, 1500, 1501, 1700)] == [0, 0, 1, 1, 2, 2]


def test_the_active_segment_is_deleted_too_if_it_has_records(partition: OpenPartition) -> None:
    opened = partition(retention_ms=1000, retention_bytes=0)
    os.utime(opened.log.segments[0].path, (0, 0))
    assert doomed(opened, NOW + 10**9) == 0
    assert delete_expired(opened.log, NOW + 10**9) == []
    fill(opened.log, NOW, NOW)

    assert doomed(opened, NOW + 1001) == 2
    opened.log.roll()
    assert doomed(opened, NOW + 1001) == 2


def test_an_old_segment_behind_a_young_one_waits_for_it(partition: OpenPartition) -> None:
    opened = partition(retention_ms=1000)
    fill(opened.log, NOW, NOW + 5000, NOW, NOW)

    assert doomed(opened, NOW + 2000) == 1
    assert doomed(opened, NOW + 6001) == 4


def test_the_oldest_segments_are_deleted_while_the_size_exceeds_retention(partition: OpenPartition) -> None:
    opened = partition(retention_ms=-1)
    fill(opened.log, NOW, NOW, NOW, NOW)

    def doomed_at(retention_bytes: int) -> int:
        opened.log.use_config(replace(opened.config, retention_bytes=retention_bytes))
        return doomed(opened)

    # Four times 500 bytes: a segment goes only if what remains is still as much as allowed.
    assert [doomed_at(limit) for limit in (2001, 2000, 1501, 1500, 1499, 1000, 500, 1, 0)] == [
        0,
        0,
        0,
        1,
        1,
        2,
        3,
        3,
        4,
    ]


def test_segments_below_the_log_start_are_deleted_whatever_the_policy(partition: OpenPartition) -> None:
    opened = partition(**FOREVER, cleanup_policy="compact")
    fill(opened.log, NOW, NOW, NOW)

    assert [doomed(opened, start_offset=start) for start in (0, 1, 2, 3)] == [0, 1, 2, 2]


def test_compacted_topics_are_not_deleted_by_age_or_size_unless_both_are_asked_for(partition: OpenPartition) -> None:
    for policy, expected in (("compact", 0), ("compact,delete", 2), ("delete", 2)):
        opened = partition(policy, cleanup_policy=policy, retention_ms=0, retention_bytes=0)
        fill(opened.log, NOW, NOW)
        assert doomed(opened, NOW + 1) == expected


def test_records_without_a_timestamp_are_as_old_as_their_file(partition: OpenPartition) -> None:
    opened = partition(retention_ms=1000)
    fill(opened.log, -1, -1)
    for segment in opened.log.segments:
        os.utime(segment.path, (NOW / 1000, NOW / 1000))

    assert doomed(opened, NOW + 1000) == 0
    assert doomed(opened, NOW + 1001) == 2


def test_an_empty_segment_between_others_does_not_stop_retention(partition: OpenPartition) -> None:
    opened = partition(retention_ms=1000, cleanup_policy="compact,delete")
    fill(opened.log, NOW, NOW, NOW)
    opened.stop()
    os.truncate(opened.folder / f"{1:020d}.log", 0)
    os.utime(opened.folder / f"{1:020d}.log", (NOW / 1000, NOW / 1000))
    opened.reopen_clean()
    assert [segment.size for segment in opened.log.segments] == [500, 0, 500]

    assert doomed(opened, NOW + 1001) == 3


def test_a_clock_set_ahead_by_mistake_deletes_nothing(partition: OpenPartition) -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)
    opened = partition(retention_ms=1000)
    fill(opened.log, NOW, NOW)

    clock.set_wall_clock(NOW + 10**12)
    assert doomed(opened, steady.now_ms()) == 0
    clock.set_wall_clock(0)
    assert doomed(opened, steady.now_ms()) == 0
    clock.advance(2)
    assert doomed(opened, steady.now_ms()) == 2


# Effect on a log


def test_deleted_segments_are_renamed_at_once_and_their_records_gone(partition: OpenPartition) -> None:
    opened = partition(retention_ms=1000)
    fill(opened.log, NOW, NOW, NOW + 5000)

    removed = delete_expired(opened.log, NOW + 2000)

    assert sorted(path.name for path in removed) == opened.names(".deleted")
    assert {path.name.partition(".")[0] for path in removed} == {f"{0:020d}", f"{1:020d}"}
    assert opened.log.start_offset == 2
    assert offsets(read_all(opened.log)) == [2]
    assert opened.names(".snapshot") == [f"{2:020d}.snapshot"]
    assert opened.log.epochs.entries == [(0, 2)]
    assert delete_expired(opened.log, NOW + 2000) == []
    assert len(open_in(opened.folder)) == 1


def test_a_completely_deleted_log_continues_at_its_next_offset(partition: OpenPartition) -> None:
    opened = partition(retention_ms=1000)
    fill(opened.log, NOW, NOW)

    delete_expired(opened.log, NOW + 2000)

    assert (opened.log.start_offset, opened.log.next_offset) == (2, 2)
    assert opened.log.append(batch()).base_offset == 2
    for reopen in (opened.reopen_clean, opened.reopen_unclean):
        log = reopen()
        assert (log.start_offset, log.next_offset) == (2, 3)
    assert opened.names(".deleted") == []


def test_files_that_wait_for_removal_are_not_in_the_way_of_new_ones(partition: OpenPartition) -> None:
    opened = partition(retention_ms=1000)
    fill(opened.log, NOW)
    removed = delete_expired(opened.log, NOW + 2000)
    opened.log.append(batch())

    for path in removed:
        path.unlink()

    assert offsets(read_all(opened.log)) == [1]


@pytest.mark.parametrize("failing", range(1, 7))
def test_a_rename_that_fails_leaves_a_log_that_still_answers(
    partition: OpenPartition, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    opened = partition(retention_ms=1000)
    fill(opened.log, NOW, NOW, NOW + 5000)
    path_type = type(opened.folder)
    rename = path_type.rename
    calls = 0

    def fail_once(path: object, target: object) -> object:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(5, "Input/output error")
        return rename(path, target)  # type: ignore[arg-type]

    with monkeypatch.context() as broken:
        broken.setattr(path_type, "rename", fail_once)
        with pytest.raises(Exception, match="Input/output error"):
            delete_expired(opened.log, NOW + 2000)

    delete_expired(opened.log, NOW + 2000)
    assert offsets(read_all(opened.log)) == [2]
    assert offsets(read_all(opened.reopen_unclean())) == [2]
