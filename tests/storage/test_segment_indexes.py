"""The rules are those of docs/kafka-files.md, followed here a second time by brute force."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.config import LogConfig
from ottla.storage.segment_files import index_file, segment_indexes
from ottla.storage.segment_files.index_file import OFFSET_ENTRY, TIME_ENTRY
from ottla.storage.segment_files.open_files import OpenFiles
from ottla.storage.segment_files.segment_indexes import OffsetEntry, SegmentIndexes, TimeEntry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BASE = 240
DEFAULT = LogConfig()


class Added(NamedTuple):
    size: int
    last_offset: int
    max_timestamp: int


def kafkas_entries(
    batches: Sequence[Added], interval: int, *, is_final: bool
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The entries of both indexes for batches that are appended in one go."""
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    position = since_entry = 0
    newest, newest_offset = -1, BASE
    for added in batches:
        if added.max_timestamp > newest:
            newest, newest_offset = added.max_timestamp, added.last_offset
        if since_entry > interval:
            offsets.append((added.last_offset - BASE, position))
            if newest > (times[-1][0] if times else -1):
                times.append((newest, newest_offset - BASE))
            since_entry = 0
        since_entry += added.size
        position += added.size
    if is_final and newest > (times[-1][0] if times else -1):
        times.append((newest, newest_offset - BASE))
    return offsets, times


def fill(indexes: SegmentIndexes, batches: Sequence[Added], config: LogConfig, position: int = 0) -> None:
    for added in batches:
        indexes.add(position, *added, config)
        position += added.size


def new_indexes(folder: Path, files: OpenFiles) -> SegmentIndexes:
    return SegmentIndexes(folder / f"{BASE:020d}.log", BASE, files, is_new=True)


def on_disk(indexes: SegmentIndexes) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    return (
        list(OFFSET_ENTRY.iter_unpack(indexes.offset_path.read_bytes())),
        list(TIME_ENTRY.iter_unpack(indexes.time_path.read_bytes())),
    )


def numbered(sizes: list[int], timestamps: list[int]) -> list[Added]:
    return [Added(size, BASE + 2 * n + 1, at) for n, (size, at) in enumerate(zip(sizes, timestamps, strict=True))]


def test_the_batch_after_more_than_the_interval_gets_an_entry(tmp_path: Path, files: OpenFiles) -> None:
    indexes = new_indexes(tmp_path, files)
    fill(indexes, numbered([4096, 1, 4097, 100], [10, 20, 30, 40]), DEFAULT)

    # 4096 is not more than 4096; 4097 is. The last entry's own batch counts towards the next.
    assert indexes.offsets.entries() == [(5, 4097), (7, 8194)]
    assert indexes.times.entries() == [(30, 5), (40, 7)]


def test_the_first_batch_has_no_entry_and_every_other_one_has_if_the_interval_is_zero(
    tmp_path: Path, files: OpenFiles
) -> None:
    indexes = new_indexes(tmp_path, files)
    fill(indexes, numbered([70, 70, 70], [1, 2, 3]), LogConfig(index_interval_bytes=0))

    assert indexes.offsets.entries() == [(3, 70), (5, 140)]


def test_a_time_entry_is_the_newest_so_far_and_the_batch_it_came_with(tmp_path: Path, files: OpenFiles) -> None:
    indexes = new_indexes(tmp_path, files)
    fill(indexes, numbered([70] * 5, [10, 50, 50, 30, 60]), LogConfig(index_interval_bytes=100))

    # Entries come with the third and the fifth batch: first 50 of the second batch, then 60 of the fifth itself.
    assert indexes.offsets.entries() == [(5, 140), (9, 280)]
    assert indexes.times.entries() == [(50, 3), (60, 9)]


def test_without_timestamps_the_time_index_stays_empty(tmp_path: Path, files: OpenFiles) -> None:
    indexes = new_indexes(tmp_path, files)
    fill(indexes, numbered([70] * 3, [-1] * 3), LogConfig(index_interval_bytes=0))
    indexes.write_out(is_final=True)

    assert len(indexes.offsets) == 2
    assert indexes.time_path.read_bytes() == b""
    assert indexes.newest_timestamp == -1


def test_the_last_time_entry_of_a_finished_segment_is_its_newest(tmp_path: Path, files: OpenFiles) -> None:
    indexes = new_indexes(tmp_path, files)
    fill(indexes, numbered([70] * 3, [5, 9, 7]), DEFAULT)
    indexes.write_out(is_final=False)
    assert on_disk(indexes) == ([], [])

    indexes.write_out(is_final=True)
    indexes.write_out(is_final=True)

    assert on_disk(indexes) == ([], [(9, 3)])


added = st.lists(st.tuples(st.integers(61, 300), st.integers(1, 3), st.integers(-1, 12)), max_size=25)


def as_batches(drawn: list[tuple[int, int, int]]) -> list[Added]:
    batches = []
    next_offset = BASE
    for size, count, at in drawn:
        next_offset += count
        batches.append(Added(size, next_offset - 1, at))
    return batches


@given(drawn=added, interval=st.sampled_from([0, 100, 200, 4096]))
def test_any_segment_is_indexed_as_kafka_would(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, int, int]], interval: int
) -> None:
    batches = as_batches(drawn)
    files = OpenFiles(1)
    indexes = new_indexes(tmp_path_factory.mktemp("indexes"), files)
    config = LogConfig(index_interval_bytes=interval)
    fill(indexes, batches, config)

    assert (indexes.offsets.entries(), indexes.times.entries()) == kafkas_entries(batches, interval, is_final=False)
    indexes.write_out(is_final=True)
    assert on_disk(indexes) == kafkas_entries(batches, interval, is_final=True)
    assert indexes.newest_timestamp == max([batch.max_timestamp for batch in batches], default=-1)
    files.close()


@given(drawn=added, interval=st.sampled_from([0, 100, 200]), data=st.data(), is_sealed=st.booleans())
def test_after_going_back_to_an_entry_the_same_batches_get_the_same_entries(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[int, int, int]],
    interval: int,
    data: st.DataObject,
    is_sealed: bool,  # noqa: FBT001
) -> None:
    batches = as_batches(drawn)
    files = OpenFiles(2)
    config = LogConfig(index_interval_bytes=interval)
    indexes = new_indexes(tmp_path_factory.mktemp("indexes"), files)
    fill(indexes, batches, config)
    if is_sealed:
        indexes.write_out(is_final=True)
    positions = [0, *(position for _, position in indexes.offsets.entries())]
    position = data.draw(st.sampled_from(positions))
    number = next(n for n in range(len(batches) + 1) if sum(b.size for b in batches[:n]) == position)
    first_offset = batches[number - 1].last_offset + 1 if number else BASE

    indexes.drop_from(position, first_offset)
    fill(indexes, batches[number:], config, position)

    assert (indexes.offsets.entries(), indexes.times.entries()) == kafkas_entries(batches, interval, is_final=False)
    files.close()


@pytest.mark.parametrize(("timestamps", "full_after"), [([7] * 200, 128), (list(range(200)), 84)])
def test_an_index_is_full_when_the_next_entry_or_the_final_time_entry_would_not_fit(
    tmp_path: Path, files: OpenFiles, timestamps: list[int], full_after: int
) -> None:
    config = LogConfig(segment_index_bytes=1024, index_interval_bytes=0)
    indexes = new_indexes(tmp_path, files)
    entries = 0
    for number, one in enumerate(numbered([70] * 200, timestamps)):
        indexes.add(70 * number, *one, config)
        entries = number
        if indexes.is_full:
            break

    assert entries == full_after
    indexes.write_out(is_final=True)
    assert indexes.offset_path.stat().st_size <= 1024
    assert indexes.time_path.stat().st_size <= 1024


def test_lookups_say_absolute_offsets(tmp_path: Path, files: OpenFiles) -> None:
    indexes = new_indexes(tmp_path, files)
    fill(indexes, numbered([70] * 4, [10, 20, 30, 40]), LogConfig(index_interval_bytes=0))

    assert indexes.at_or_before(BASE + 2) is None
    assert indexes.at_or_before(BASE + 3) == OffsetEntry(BASE + 3, 70)
    assert indexes.at_or_before(BASE + 4) == OffsetEntry(BASE + 3, 70)
    assert indexes.at_or_before(BASE + 99) == indexes.last == OffsetEntry(BASE + 7, 210)
    assert indexes.at_or_before_time(19) is None
    assert indexes.at_or_before_time(20) == TimeEntry(20, BASE + 3)
    assert indexes.at_or_before_time(99) == TimeEntry(40, BASE + 7)


def test_missing_and_cut_files_are_not_whole(tmp_path: Path, files: OpenFiles) -> None:
    indexes = new_indexes(tmp_path, files)
    assert not indexes.is_whole()
    indexes.write_out(is_final=True)
    assert indexes.is_whole()

    for path, size in ((indexes.offset_path, 8), (indexes.time_path, 12)):
        path.write_bytes(bytes(size - 1))
        assert not indexes.is_whole()
        path.write_bytes(bytes(size))
        assert indexes.is_whole()
        path.unlink()
        assert not indexes.is_whole()
        path.touch()


def test_entries_are_written_in_bulk_and_never_offset_entries_without_their_time_entries(
    tmp_path: Path, files: OpenFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_indexes, "_WRITTEN_TOGETHER", 4)
    indexes = new_indexes(tmp_path, files)
    indexes.write_out(is_final=False)
    batches = numbered([70] * 12, [1, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 9])
    for number in range(12):
        fill(indexes, batches[number : number + 1], LogConfig(index_interval_bytes=0), 70 * number)
        offsets, times = on_disk(indexes)
        entries_due = number // 4 * 4
        assert len(offsets) == entries_due
        expected_offsets, expected_times = kafkas_entries(batches[: entries_due + 1], 0, is_final=False)
        assert (offsets, times) == (expected_offsets, expected_times if offsets else [])


def test_a_disk_that_is_full_for_the_index_fails_no_append(
    tmp_path: Path, files: OpenFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_indexes, "_WRITTEN_TOGETHER", 2)
    indexes = new_indexes(tmp_path, files)
    batches = numbered([70] * 9, list(range(9)))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(index_file, "write_all", refuse)
        fill(indexes, batches, LogConfig(index_interval_bytes=0))

    expected = kafkas_entries(batches, 0, is_final=False)
    assert (indexes.offsets.entries(), indexes.times.entries()) == expected
    indexes.write_out(is_final=False)
    assert on_disk(indexes) == expected
