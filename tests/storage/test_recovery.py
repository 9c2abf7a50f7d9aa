"""Opening a folder in any state. Crashes and bad disks are tested in full in tests/faults."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from ottla.core.errors import CorruptMessage, StorageError
from ottla.storage.folder.closing import close_log
from ottla.storage.recovery import LastKnown, open_log

from .making import EVERY_BATCH, NOW, Partition, Producing, batch, headers, offsets, open_in, placed, read_all, values
from .recovering import answers, contents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    OpenPartition = Callable[..., Partition]

# A clean stop


def test_after_a_clean_stop_everything_is_as_it_was(opened: Partition) -> None:
    before = answers(opened.log)

    for _ in range(3):
        assert answers(opened.reopen_clean()) == before


def test_after_a_clean_stop_the_data_is_not_read(partition: OpenPartition, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = partition(segment_bytes=400_000)
    for number in range(1000):
        opened.log.append(batch(size=1000, by=Producing(number % 50, 0, number // 50)))
    opened.stop()
    total = 0
    pread = os.pread

    def count(fd: int, size: int, position: int) -> bytes:
        nonlocal total
        data = pread(fd, size, position)
        total += len(data)
        return data

    with monkeypatch.context() as counting:
        counting.setattr(os, "pread", count)
        log = opened.reopen_clean()

    assert log.next_offset == 1000
    assert total < 40_000  # of a million: some 4 KiB at the end, and the last entry of each index
    assert len(log.producers.producers) == 50


def test_after_a_clean_stop_damage_in_the_middle_does_not_block(partition: OpenPartition) -> None:
    opened = partition()
    for _ in range(300):
        opened.log.append(batch(size=1000))
    opened.stop()
    with (opened.folder / f"{0:020d}.log").open("r+b") as file:
        file.seek(100_000)
        file.write(b"\xee" * 50_000)

    log = opened.reopen_clean()

    assert log.next_offset == 300
    assert offsets(log.read(0, 1000)) == [0]
    assert offsets(log.read(200, 1000)) == [200]
    with pytest.raises(CorruptMessage):
        log.read(120, 1000)


def test_reopening_does_not_degrade_the_indexes(partition: OpenPartition) -> None:
    opened = partition(index_interval_bytes=EVERY_BATCH)
    for number in range(20):
        opened.log.append(batch(at=NOW + number))
    opened.reopen_clean()
    expected = [segment.indexes.offsets.entries() for segment in opened.log.segments]
    assert len(expected[0]) == 19

    for number in range(10):
        log = opened.reopen_clean() if number % 2 else opened.reopen_unclean(recovery_point=number)
        assert [segment.indexes.offsets.entries() for segment in log.segments] == expected
        assert len(log.segments[0].indexes.times.entries()) == 19


def test_a_continued_index_is_as_if_written_at_once(partition: OpenPartition) -> None:
    whole = partition("whole-0", index_interval_bytes=150)
    parts = partition("parts-0", index_interval_bytes=150)
    for number in range(60):
        made = batch(b"x" * (number % 7), at=NOW + number * 5 % 13)
        whole.log.append(bytearray(made))
        parts.log.append(made)
        if number % 4 == 3:
            parts.reopen_clean() if number % 8 == 3 else parts.reopen_unclean(recovery_point=number // 2)

    assert parts.log.segments[0].indexes.offsets.entries() == whole.log.segments[0].indexes.offsets.entries()
    assert parts.log.segments[0].newest_timestamp == whole.log.segments[0].newest_timestamp


def test_a_log_truncated_while_stopped_is_detected(opened: Partition) -> None:
    opened.stop()
    last = opened.log.segments[-1].path
    os.truncate(last, last.stat().st_size - 1)

    log = opened.reopen_clean()

    with pytest.raises(CorruptMessage):
        log.read(log.next_offset - 1, 1)
    # No offset is assigned twice, even if its batch is damaged.
    assert log.append(batch(b"new")).base_offset == opened.log.next_offset - 1
    assert values(log.read(log.next_offset - 1, 1)) == [b"new"]


# An unclean stop


@pytest.mark.parametrize("recovery_point", [0, 1, 7, 20, 30, 1000])
def test_after_a_kill_everything_is_as_it_was(opened: Partition, recovery_point: int) -> None:
    before = answers(opened.log)

    assert answers(opened.reopen_unclean(min(recovery_point, opened.log.next_offset))) == before
    assert not opened.names(".corrupt")


def test_rebuilt_indexes_are_the_ones_that_were_lost(opened: Partition) -> None:
    opened.reopen_clean()
    opened.stop()
    before = contents(opened.folder, ".index", ".timeindex", ".txnindex")
    for name in before:
        (opened.folder / name).unlink()

    opened.reopen_unclean(0)
    opened.stop()

    assert contents(opened.folder, ".index", ".timeindex", ".txnindex") == before


def test_only_batches_after_the_recovery_point_are_read(
    partition: OpenPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = partition(segment_bytes=100_000)
    for number in range(1000):
        opened.log.append(batch(at=NOW + number, size=1000))
    opened.stop()
    total = 0
    pread = os.pread

    def count(fd: int, size: int, position: int) -> bytes:
        nonlocal total
        data = pread(fd, size, position)
        total += len(data)
        return data

    with monkeypatch.context() as counting:
        counting.setattr(os, "pread", count)
        opened.reopen_unclean(recovery_point=990)

    assert total < 250_000


@pytest.mark.parametrize("tail", [b"\0", bytes(61), bytes(4096), b"\xff" * 100, b"Kafka" * 50])
def test_a_torn_tail_is_truncated_and_kept_aside(opened: Partition, tail: bytes) -> None:
    before = answers(opened.log)
    last = opened.log.segments[-1].path
    size = last.stat().st_size
    with last.open("ab") as file:
        file.write(tail)

    assert answers(opened.reopen_unclean()) == before
    assert opened.names(".corrupt") == [f"{last.name}.{size}.corrupt"]
    assert (opened.folder / f"{last.name}.{size}.corrupt").read_bytes() == tail
    assert not opened.log.lacks_records
    assert opened.log.append(batch()).base_offset == opened.log.next_offset - 1


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x04]))


def test_the_log_ends_at_unsynced_damage_and_the_rest_is_kept_aside(opened: Partition) -> None:
    second, third, *_ = opened.log.segments[1:]
    bases = [segment.base_offset for segment in opened.log.segments]
    flip(second.path, 70)
    opened.kill()

    log = opened.reopen_unclean(recovery_point=0)

    assert log.next_offset == second.base_offset
    assert offsets(read_all(log)) == list(range(log.next_offset))
    assert opened.names(".corrupt")[0].startswith(f"{second.base_offset:020d}.log.0")
    assert opened.names(".log.corrupt") == [f"{base:020d}.log.corrupt" for base in bases[2:]]
    assert not (opened.folder / f"{third.base_offset:020d}.index").exists()
    assert log.producers.producers[1].batches[-1].last_offset < second.base_offset
    assert log.lacks_records


def test_a_log_that_ends_at_damage_before_an_intact_batch_lacks_records(opened: Partition) -> None:
    *_, first, last = headers(read_all(opened.log))
    assert opened.log.segments[-1].base_offset <= first.base_offset < last.base_offset
    flip(opened.log.segments[-1].path, opened.log.segments[-1].size - first.size - last.size + 70)
    opened.kill()

    log = opened.reopen_unclean(recovery_point=0)

    assert log.next_offset == first.base_offset
    assert log.lacks_records


@pytest.mark.parametrize("at", [3, 30, 70], ids=["base offset", "producer id", "records"])
def test_a_log_whose_complete_last_batch_is_damaged_lacks_records(opened: Partition, at: int) -> None:
    """A process that is killed during a write leaves a prefix of it, so a complete batch was acknowledged or may be."""
    *_, last = headers(read_all(opened.log))
    flip(opened.log.segments[-1].path, opened.log.segments[-1].size - last.size + at)
    opened.kill()

    log = opened.reopen_unclean(recovery_point=0)

    assert log.next_offset == last.base_offset
    assert log.lacks_records


def test_a_log_that_was_cut_lacks_records_after_a_crash_too_until_that_is_forgotten(opened: Partition) -> None:
    *_, first, last = headers(read_all(opened.log))
    flip(opened.log.segments[-1].path, opened.log.segments[-1].size - first.size - last.size + 70)
    opened.kill()
    opened.reopen_unclean(recovery_point=0)
    opened.kill()

    log = opened.reopen_unclean(recovery_point=0)

    assert log.lacks_records
    log.forget_lack()
    assert not log.lacks_records
    opened.kill()
    assert not opened.reopen_unclean(recovery_point=0).lacks_records


def test_a_log_whose_last_batch_is_incomplete_lacks_no_record(opened: Partition) -> None:
    last = opened.log.segments[-1].path
    os.truncate(last, last.stat().st_size - 1)
    opened.kill()

    assert not opened.reopen_unclean(recovery_point=0).lacks_records


def test_damage_below_the_recovery_point_does_not_end_the_log(opened: Partition) -> None:
    end = opened.log.next_offset
    first = opened.log.segments[0]
    at_fault = headers(first.path.read_bytes())[2]
    before = answers(opened.log)[0]
    flip(first.path, sum(header.size for header in headers(first.path.read_bytes())[:2]) + 65)
    opened.kill()

    log = opened.reopen_unclean(recovery_point=end)

    assert log.next_offset == end
    assert not opened.names(".corrupt")
    for offset in range(end):
        if at_fault.base_offset <= offset <= at_fault.last_offset:
            with pytest.raises(CorruptMessage):
                log.read(offset, 1)
        else:
            assert bytes(log.read(offset, 1)) == before[offset]


def test_truncated_batches_do_not_reappear_as_producer_state(partition: OpenPartition) -> None:
    opened = partition()
    opened.log.append(batch(b"kept"))
    for sequence in range(3):
        opened.log.append(batch(b"lost", by=Producing(1, 0, sequence)))
        opened.log.roll()
    flip(opened.folder / f"{0:020d}.log", 69 + 65)
    opened.reopen_unclean(0)
    assert opened.log.next_offset == 1
    for number in range(6):
        opened.log.append(batch(b"other %d" % number))
        opened.log.roll()
    log = opened.reopen_unclean(0)

    assert log.producers.producers == {}
    assert not log.append(batch(b"new", by=Producing(1, 0, 0))).is_duplicate


# Odd logs


def test_an_empty_folder_is_an_empty_log(tmp_path: Path, partition: OpenPartition) -> None:
    opened = partition()
    (tmp_path / "empty-0").mkdir()
    log = open_log(tmp_path / "empty-0", opened.config, opened.clock, opened.files)

    assert (log.start_offset, log.next_offset, log.size) == (0, 0, 0)
    close_log(log)
    opened.files.close()


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_empty_log_can_be_left_and_found_again(partition: OpenPartition, is_clean: bool) -> None:  # noqa: FBT001
    opened = partition()
    for _ in range(3):
        log = opened.reopen_clean() if is_clean else opened.reopen_unclean()
        assert (log.start_offset, log.next_offset) == (0, 0)
    assert opened.names(".snapshot") == []
    assert log.append(batch()).base_offset == 0


def test_a_log_whose_first_segments_are_gone_begins_where_the_rest_does(opened: Partition) -> None:
    second = opened.log.segments[1].base_offset
    opened.stop()
    for path in opened.folder.glob(f"{0:020d}.*"):
        path.unlink()

    log = opened.reopen_clean()

    assert log.start_offset == second
    assert offsets(read_all(log))[0] == second


def test_a_start_above_the_end_is_the_end(partition: OpenPartition) -> None:
    opened = partition()
    opened.log.append(batch())
    opened.stop()

    log = open_log(opened.folder, opened.config, opened.clock, opened.files, LastKnown(False, 0, 500))  # noqa: FBT003

    assert (log.start_offset, log.next_offset) == (1, 1)
    log.abandon()


def test_a_folder_that_only_has_logs_is_enough(opened: Partition) -> None:
    before = answers(opened.log)
    opened.stop()
    for path in opened.folder.iterdir():
        if path.suffix != ".log":
            path.unlink()

    assert answers(opened.reopen_unclean(0)) == before


def test_a_copy_taken_while_it_is_written_to_opens(opened: Partition, tmp_path: Path) -> None:
    before = answers(opened.log)
    shutil.copytree(opened.folder, tmp_path / "copy-0")
    copy = open_log(tmp_path / "copy-0", opened.config, opened.clock, opened.files)

    assert answers(copy) == before
    close_log(copy)


def test_batches_with_bigger_gaps_than_a_file_can_hold_end_the_log(partition: OpenPartition) -> None:
    opened = partition(cleanup_policy="compact")
    opened.stop()
    data = placed(batch(b"1"), 0) + placed(batch(b"2"), 1 << 40)
    (opened.folder / f"{0:020d}.log").write_bytes(data)

    log = opened.reopen_unclean(0)

    assert values(read_all(log)) == [b"1"]
    assert log.append(batch(b"3")).base_offset == 1
    assert values(read_all(opened.reopen_clean())) == [b"1", b"3"]


# Failing opens


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_open_that_fails_anywhere_leaves_nothing_open_and_nothing_lost(
    opened: Partition,
    monkeypatch: pytest.MonkeyPatch,
    is_clean: bool,  # noqa: FBT001
) -> None:
    """Every call of the operating system in turn is refused once."""
    before = answers(opened.log)
    opened.stop()
    known = LastKnown(is_clean, opened.log.next_offset if is_clean else 0, 0)
    names = ["open", "pread", "truncate", "dup"]
    failures = 0
    for failing in range(1, 400):
        calls = 0

        def counted(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: object, **kwargs: object) -> object:
                nonlocal calls
                calls += 1
                if calls == failing:  # noqa: B023
                    raise OSError(errno.EIO, "Input/output error")
                return original(*args, **kwargs)

            return call

        with monkeypatch.context() as broken:
            for name in names:
                broken.setattr(os, name, counted(getattr(os, name)))
            try:
                log = open_log(opened.folder, opened.config, opened.clock, opened.files, known)
            except StorageError:
                failures += 1
                opened.files.close()
                assert open_in(opened.folder) == []
                continue
        is_through = calls < failing
        if is_through:
            assert answers(log) == before
        log.abandon()
        if is_through:
            break
    else:
        pytest.fail("it never ended")
    assert failures > 3
