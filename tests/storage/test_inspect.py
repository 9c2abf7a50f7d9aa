from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import CorruptMessage
from ottla.storage.inspect import batches, segment_files, verify_segment

from .making import EVERY_BATCH, NOW, Partition, batch, open_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    OpenPartition = Callable[..., Partition]

COUNT = 8


@pytest.fixture
def folder(partition: OpenPartition) -> Path:
    """Two segments of four batches of one record each, as a clean stop leaves them."""
    opened = partition(index_interval_bytes=EVERY_BATCH)
    for number in range(COUNT):
        if number == COUNT // 2:
            opened.log.roll()
        opened.log.append(batch(b"%d" % number, at=NOW + number))
    opened.stop()
    return opened.folder


def problems(path: Path) -> list[tuple[str, int, str]]:
    found = [(problem.path.suffix, problem.position, problem.text) for problem in verify_segment(path)]
    assert open_in(path.parent) == []
    return found


def change(path: Path, at: int, value: bytes) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:at] + value + data[at + len(value) :])


def test_the_segments_of_a_folder_come_oldest_first_and_a_file_is_itself(folder: Path) -> None:
    (folder / "notes.log").touch()

    files = segment_files(folder)
    assert [file.name for file in files] == ["00000000000000000000.log", "00000000000000000004.log"]
    assert segment_files(files[1]) == [files[1]]


@pytest.mark.parametrize(("from_offset", "expected"), [(0, [4, 5, 6, 7]), (6, [6, 7]), (8, [])])
def test_the_batches_of_a_file_are_read_from_an_offset_on(folder: Path, from_offset: int, expected: list[int]) -> None:
    found = batches(segment_files(folder)[1], from_offset)

    assert [one.header.base_offset for one in found] == expected
    assert open_in(folder) == []


def test_reading_stops_at_a_damaged_batch(folder: Path) -> None:
    file = segment_files(folder)[0]
    change(file, file.stat().st_size - 1, b"x")
    reading = batches(file)

    assert [next(reading).header.base_offset for _ in range(3)] == [0, 1, 2]
    with pytest.raises(CorruptMessage):
        next(reading)
    assert open_in(folder) == []


def test_nothing_is_wrong_with_what_a_log_wrote(folder: Path) -> None:
    assert [problems(file) for file in segment_files(folder)] == [[], []]


def test_a_damaged_batch_does_not_hide_another(folder: Path) -> None:
    file = segment_files(folder)[0]
    size = file.stat().st_size // 4
    change(file, size - 1, b"x")
    change(file, 3 * size - 1, b"x")

    assert [problem[:2] for problem in problems(file)] == [(".log", 0), (".log", 2 * size)]


def test_decreasing_offsets_are_reported(folder: Path) -> None:
    file = segment_files(folder)[1]
    change(file, 0, struct.pack(">q", 3))

    assert problems(file)[0] == (".log", 0, "found offset 3, expected 4")


def test_a_truncated_batch_at_the_end_is_reported(folder: Path) -> None:
    file = segment_files(folder)[0]
    size = file.stat().st_size // 4
    file.write_bytes(file.read_bytes()[:-5])

    assert problems(file)[0][:2] == (".log", 3 * size)


@pytest.mark.parametrize(("suffix", "entry_bytes"), [(".index", 8), (".timeindex", 12)])
def test_an_index_entry_without_a_batch_is_reported(folder: Path, suffix: str, entry_bytes: int) -> None:
    file = segment_files(folder)[0]
    change(file.with_suffix(suffix), 2 * entry_bytes - 1, b"\x63")

    [(where, position, text)] = problems(file)
    assert (where, position) == (suffix, entry_bytes)
    assert text.startswith("entry 1: no batch")


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_or_zero_padded_index_is_not_reported(folder: Path, suffix: str) -> None:
    """A running Kafka broker keeps room behind the entries."""
    file = segment_files(folder)[0]
    with file.with_suffix(suffix).open("ab") as index:
        index.write(bytes(24 * 5))
    assert problems(file) == []
    file.with_suffix(suffix).unlink()
    assert problems(file) == []
