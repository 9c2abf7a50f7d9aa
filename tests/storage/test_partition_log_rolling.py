"""When a log begins a new segment, and what a change of its config does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from ottla.core.errors import MessageTooLarge
from ottla.storage.recovery import LastKnown, open_log

from .making import EVERY_BATCH, NOW, Partition, batch, changed, headers, read_all, values

if TYPE_CHECKING:
    from collections.abc import Callable

    OpenPartition = Callable[..., Partition]


def bases(log: Any) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_segment_is_filled_to_the_last_byte(partition: OpenPartition) -> None:
    log = partition(segment_bytes=1024).log
    for size in (500, 524, 100, 924, 1024, 1024, 923):
        log.append(batch(size=size))

    assert bases(log) == [0, 2, 4, 5, 6]
    assert [segment.size for segment in log.segments] == [1024, 1024, 1024, 1024, 923]


def test_a_segment_is_as_old_as_its_first_batch_says(partition: OpenPartition) -> None:
    log = partition(segment_ms=1000, message_timestamp_after_max_ms=1 << 60).log
    for at in (NOW, NOW + 1000, NOW - 5000, NOW + 1001, NOW + 2001, NOW + 2002, NOW):
        log.append(batch(at=at))

    assert bases(log) == [0, 3, 5]


def test_a_new_segment_has_a_new_age(partition: OpenPartition) -> None:
    log = partition(segment_ms=1000, message_timestamp_after_max_ms=1 << 60).log
    log.append(batch(at=NOW))
    for step in range(10):
        log.append(batch(at=NOW + 10_000 + step))

    assert bases(log) == [0, 1]


def test_without_a_timestamp_a_segment_is_as_old_as_the_clock_says(partition: OpenPartition) -> None:
    opened = partition(segment_ms=1000)
    opened.log.append(batch(at=-1))
    opened.log.append(batch(at=NOW))
    opened.clock.advance(1.0)
    opened.log.append(batch(at=-1))
    assert bases(opened.log) == [0]
    opened.clock.advance(0.001)
    opened.log.append(batch(at=-1))

    assert bases(opened.log) == [0, 3]


def test_the_age_of_a_segment_survives_a_restart(partition: OpenPartition) -> None:
    opened = partition(segment_ms=1000, message_timestamp_after_max_ms=1 << 60)
    opened.log.append(batch(at=NOW))
    log = opened.reopen_clean()
    log.append(batch(at=NOW + 1000))
    log.append(batch(at=NOW + 1001))

    assert bases(log) == [0, 2]


@pytest.mark.parametrize(("is_rising", "full_after"), [(False, 129), (True, 85)])
def test_a_segment_ends_when_an_index_is_full(partition: OpenPartition, is_rising: bool, full_after: int) -> None:  # noqa: FBT001
    log = partition(segment_index_bytes=1024, index_interval_bytes=EVERY_BATCH).log
    for number in range(140):
        log.append(batch(at=NOW + number * is_rising))

    assert bases(log) == [0, full_after]
    for path in (log.segments[0].indexes.offset_path, log.segments[0].indexes.time_path):
        assert path.stat().st_size <= 1024
    assert len(values(read_all(log))) == 140


def test_a_segment_ends_before_an_offset_that_an_index_cannot_hold(partition: OpenPartition) -> None:
    opened = partition()
    opened.stop()
    # A batch whose last offset is the highest that fits, as compaction may leave one: all but one record are gone.
    made = changed(batch(b"v"), ">i", 23, (1 << 31) - 3)
    (opened.folder / "00000000000000000000.log").write_bytes(made)
    log = opened.reopen_unclean()
    assert log.next_offset == (1 << 31) - 2

    assert [log.append(batch()).base_offset - (1 << 31) for _ in range(3)] == [-2, -1, 0]
    assert bases(log) == [0, 1 << 31]
    log = opened.reopen_clean()
    assert [header.base_offset for header in headers(read_all(log))] == [0, (1 << 31) - 2, (1 << 31) - 1, 1 << 31]


def test_a_roll_of_an_empty_segment_does_nothing(partition: OpenPartition) -> None:
    opened = partition()
    opened.log.roll()
    opened.log.append(batch())
    opened.log.roll()
    opened.log.roll()

    assert bases(opened.log) == [0, 1]
    assert opened.names(".snapshot") == ["00000000000000000001.snapshot"]


def test_a_new_log_may_begin_anywhere(partition: OpenPartition) -> None:
    opened = partition()
    folder = opened.folder.with_name("other-0")
    log = open_log(folder, opened.config, opened.clock, opened.files, LastKnown(start_offset=1000))

    assert log.append(batch()).base_offset == 1000
    assert (folder / "00000000000000001000.log").exists()
    log.abandon()


def test_files_are_exactly_as_long_as_their_batches(partition: OpenPartition) -> None:
    opened = partition(segment_bytes=1024)
    for _ in range(20):
        opened.log.append(batch(size=100))

    for segment in opened.log.segments:
        assert segment.path.stat().st_size == segment.size
    assert opened.names() == sorted(
        {name for segment in opened.log.segments for name in (p.name for p in segment.paths()[:3])}
        | {"leader-epoch-checkpoint", "00000000000000000010.snapshot"}
    )


# Configuration while running


def test_a_changed_configuration_applies_from_the_next_append_on(partition: OpenPartition) -> None:
    opened = partition(segment_ms=10**9)
    log = opened.log
    log.append(batch(size=700))
    log.use_config(replace(opened.config, max_message_bytes=100, segment_bytes=1024))

    with pytest.raises(MessageTooLarge):
        log.append(batch(size=101))
    for _ in range(4):
        log.append(batch(size=100))
    assert bases(log) == [0, 4]
    log.use_config(replace(opened.config, message_timestamp_type="LogAppendTime", segment_ms=1))
    opened.clock.advance(1)
    assert log.append(batch()).log_append_time == NOW + 1000
    assert bases(log) == [0, 4, 5]


def test_appending_writes_once_and_opens_nothing(partition: OpenPartition, monkeypatch: pytest.MonkeyPatch) -> None:
    log = partition().log
    log.append(batch())
    made = batch(b"v" * 500)
    writes = []
    pwrite = os.pwrite

    def count(fd: int, data: bytes, position: int) -> int:
        writes.append(len(data))
        return pwrite(fd, data, position)

    def refuse(*_: object, **__: object) -> int:
        raise AssertionError

    monkeypatch.setattr(os, "pwrite", count)
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "fsync", refuse)
    log.append(made)
    assert writes == [len(made)]


def test_a_write_in_pieces_is_still_whole(partition: OpenPartition, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = partition()
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, position: pwrite(fd, memoryview(data)[:7], position))
    opened.log.append(batch(b"one"))
    opened.log.append(batch(b"two"))
    monkeypatch.undo()

    assert values(read_all(opened.log)) == [b"one", b"two"]
    assert values(read_all(opened.reopen_unclean())) == [b"one", b"two"]
