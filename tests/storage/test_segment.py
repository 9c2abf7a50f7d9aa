from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import CorruptMessage
from ottla.records.batch import read_header
from ottla.storage.config import LogConfig
from ottla.storage.segment_files.cold_read import Bounds
from ottla.storage.segment_files.index_recovery import are_indexes_sane
from ottla.storage.segment_files.segment import Segment

from .making import EVERY_BATCH, NOW, batch, headers, offsets, open_in, placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.storage.segment_files.open_files import OpenFiles

    Made = Callable[..., Segment]

CONFIG = LogConfig(index_interval_bytes=EVERY_BATCH)
BASE = 100
SIZE = 80


@pytest.fixture
def made(tmp_path: Path, files: OpenFiles) -> Iterator[Made]:
    """A new segment with this many batches of one record."""
    segments = []

    def make(count: int = 0, config: LogConfig = CONFIG) -> Segment:
        segments.append(Segment.create(tmp_path, BASE, config, files))
        fill(segments[-1], count)
        return segments[-1]

    yield make
    for segment in segments:
        segment.close()


def fill(segment: Segment, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        one = placed(batch(at=NOW + number, size=SIZE), BASE + number)
        segment.append(one, BASE + number, NOW + number)


def everything(segment: Segment, end_offset: int) -> list[int]:
    return offsets(segment.read(Bounds(BASE, end_offset, 1 << 20), end_offset))


def test_a_new_segment_has_kafkas_files(tmp_path: Path, made: Made) -> None:
    made()

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{BASE:020d}{kind}" for kind in (".index", ".log", ".timeindex")
    ]


def test_leftover_files_of_a_new_segment_are_replaced(tmp_path: Path, made: Made) -> None:
    for kind in (".index", ".log", ".timeindex", ".txnindex"):
        (tmp_path / f"{BASE:020d}{kind}").write_bytes(b"left behind" * 100)

    segment = made(2)

    assert everything(segment, BASE + 2) == [BASE, BASE + 1]
    assert segment.path.stat().st_size == 2 * SIZE
    assert not segment.txn_index.path.exists()
    segment.seal()
    assert segment.indexes.offset_path.stat().st_size == 8


def test_a_sealed_segment_is_read_through_files_that_are_opened_as_needed(
    tmp_path: Path, files: OpenFiles, made: Made
) -> None:
    segment = made(3)
    segment.seal()
    segment.seal()
    assert open_in(tmp_path) == []

    assert everything(segment, BASE + 3) == [BASE, BASE + 1, BASE + 2]
    assert open_in(tmp_path) == [str(segment.indexes.offset_path), str(segment.path)]
    segment.close()
    assert len(files) == 0


def test_a_torn_tail_is_given_back_and_never_read(made: Made) -> None:
    segment = made(2)
    with segment.path.open("ab") as file:
        file.write(b"torn")
    assert everything(segment, BASE + 2) == [BASE, BASE + 1]

    segment.forget_torn_tail()

    assert segment.path.stat().st_size == 2 * SIZE


def test_an_append_covers_the_torn_tail_of_the_one_that_failed(made: Made) -> None:
    segment = made(1)
    with segment.path.open("ab") as file:
        file.write(b"torn" * 100)

    fill(segment, 1, first=1)
    segment.seal()

    assert segment.path.stat().st_size == 2 * SIZE
    assert [header.base_offset for header in headers(segment.path.read_bytes())] == [BASE, BASE + 1]


@pytest.mark.parametrize("interval", [EVERY_BATCH, 200, 4096])
def test_positions_are_found_for_every_offset(made: Made, interval: int) -> None:
    segment = made(10, LogConfig(index_interval_bytes=interval))

    for number in range(10):
        assert segment.position_of(BASE + number) == number * SIZE
        assert segment.place_before(BASE + number)[0] <= number * SIZE
    assert segment.position_of(BASE + 10) == 10 * SIZE
    assert segment.position_of(0) == 0


def test_a_segment_found_on_disk_continues_where_it_ended(tmp_path: Path, files: OpenFiles, made: Made) -> None:
    made(5).seal()
    segment = Segment.open(tmp_path, BASE, CONFIG, files)

    assert segment.open_for_append() == BASE + 5
    fill(segment, 3, first=5)

    assert everything(segment, BASE + 8) == list(range(BASE, BASE + 8))
    assert segment.newest_timestamp == NOW + 7
    assert segment.first_timestamp == NOW
    segment.close()


def test_an_empty_segment_found_on_disk_begins_at_its_name(tmp_path: Path, files: OpenFiles, made: Made) -> None:
    made().seal()
    segment = Segment.open(tmp_path, BASE, CONFIG, files)

    assert are_indexes_sane(segment)
    assert segment.open_for_append() == BASE
    assert segment.first_timestamp == segment.newest_timestamp == -1
    segment.close()


@pytest.mark.parametrize("wrong", ["position", "offset", "exceeds the end", "zero", "not a batch"])
def test_an_index_that_is_wrong_about_its_last_batch_is_not_sane(
    tmp_path: Path, files: OpenFiles, made: Made, wrong: str
) -> None:
    made(5).seal()
    entries = {
        "position": (4, 3 * SIZE),
        "offset": (3, 4 * SIZE),
        "exceeds the end": (4, 5 * SIZE),
        "zero": (0, 0),
        "not a batch": (4, 4 * SIZE + 1),
    }
    segment = Segment.open(tmp_path, BASE, CONFIG, files)
    assert are_indexes_sane(segment)
    relative, position = entries[wrong]
    data = segment.indexes.offset_path.read_bytes()
    segment.indexes.offset_path.write_bytes(data[:-8] + relative.to_bytes(4, "big") + position.to_bytes(4, "big"))

    assert not are_indexes_sane(Segment.open(tmp_path, BASE, CONFIG, files))


def test_an_index_that_is_wrong_in_its_middle_is_rebuilt_when_it_is_used(
    tmp_path: Path, files: OpenFiles, made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    made(9).seal()
    segment = Segment.open(tmp_path, BASE, CONFIG, files)
    before = segment.indexes.offset_path.read_bytes()
    segment.indexes.offset_path.write_bytes(before[:24] + b"\0\0\0\4\0\0\1\0" + before[32:])
    assert are_indexes_sane(segment)

    assert offsets(segment.read(Bounds(BASE + 4, BASE + 9, 1), BASE + 9)) == [BASE + 4]

    assert "rebuilding" in caplog.text
    assert segment.indexes.offset_path.read_bytes() == before


def test_truncated_segments_forget_removed_batches(made: Made) -> None:
    segment = made(6)
    assert everything(segment, BASE + 6)[-1] == BASE + 5
    segment.truncate(3 * SIZE, BASE + 3)

    assert segment.size == segment.path.stat().st_size == 3 * SIZE
    assert everything(segment, BASE + 3) == [BASE, BASE + 1, BASE + 2]
    assert segment.indexes.last is not None
    assert segment.indexes.last.last_offset == BASE + 2


def test_the_header_of_a_batch_can_be_looked_at(made: Made) -> None:
    segment = made(2)

    assert segment.header_at(SIZE).base_offset == BASE + 1
    assert read_header(segment.read_at(0, 1000)).base_offset == BASE
    with pytest.raises(CorruptMessage):
        segment.header_at(2 * SIZE)


def test_the_files_to_sync_depend_on_whether_the_segment_is_active(made: Made) -> None:
    segment = made(1)

    def names() -> list[str]:
        found = []
        for fd in segment.fsync_targets():
            found.append(os.readlink(f"/proc/self/fd/{fd}").rpartition(".")[2])
            os.close(fd)
        return found

    assert names() == ["log"]
    segment.seal()
    assert names() == ["log", "index", "timeindex"]


def test_the_number_of_remembered_positions_is_limited(made: Made) -> None:
    segment = made(200)
    for number in range(200):
        segment.read(Bounds(BASE + number, BASE + 200, 1), BASE + 200)

    assert len(segment.read_ends) <= 64
