"""Reads as ranges of files: the same batches as reading them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records.making import batch, record

from ottla.core.file_range import FileRange
from ottla.records.batch import place
from ottla.records.batches import find_batches
from ottla.storage.segment_files.cold_read import Bounds

if TYPE_CHECKING:
    from pathlib import Path

batch_ends = pytest.importorskip("ottla.storage.segment_files.batch_ends", reason="needs a C compiler")


def written(path: Path, sizes: list[int], gap: int = 0) -> list[tuple[int, int]]:
    """Write batches of one record each; returns the position and offset of each."""
    places, data = [], bytearray()
    for number, size in enumerate(sizes):
        one = batch(record(value=bytes(size)))
        offset = number * (1 + gap)
        place(one, 0, offset, 0)
        places.append((len(data), offset))
        data += one
    path.write_bytes(data)
    return places


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.sampled_from((0, 10, 300, 4000, 4100, 16_300, 40_000)), min_size=1, max_size=60),
    first=st.integers(0, 59),
    count=st.integers(1, 60),
    max_bytes=st.integers(1, 200_000),
    gap=st.integers(0, 2),
)
def test_the_end_of_a_range_is_where_a_read_ends(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], first: int, count: int, max_bytes: int, gap: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "segment"
    places = written(path, sizes, gap)
    position, offset = places[first % len(places)]
    data = path.read_bytes()
    bounds = Bounds(offset, offset + count, max_bytes)
    start, end, next_offset = find_batches(data[position:], *bounds)
    fd = os.open(path, os.O_RDONLY)
    try:
        assert start == 0
        assert batch_ends.find_end(fd, position, len(data), *bounds) == (position + end, next_offset)
    finally:
        os.close(fd)


@pytest.mark.parametrize("damage", [8, 16, 23, 57])
def test_damaged_headers_and_other_offsets_have_no_range(tmp_path: Path, damage: int) -> None:
    path = tmp_path / "segment"
    places = written(path, [5000] * 3)
    fd = os.open(path, os.O_RDWR)
    size = path.stat().st_size
    try:
        assert batch_ends.find_end(fd, places[1][0], size, 0, 3, size) is not None
        assert batch_ends.find_end(fd, places[0][0], size, 1, 3, size) is None, "the batch ends before"
        assert batch_ends.find_end(fd, places[0][0], size, 0, 0, size) is None, "nothing is readable"
        assert batch_ends.find_end(fd, places[0][0], size - 1, 0, 3, size) is None, "the last one is torn"
        os.pwrite(fd, b"\xff", places[1][0] + damage)
        assert batch_ends.find_end(fd, places[0][0], size, 0, 3, size) is None
    finally:
        os.close(fd)


def test_a_range_outlives_its_file_and_fails_if_that_is_truncated(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    fd = os.open(path, os.O_RDWR)
    before = FileRange.count
    found = FileRange(fd, 2, 5)
    path.unlink()
    assert (len(found), bytes(found)) == (5, b"23456")
    os.ftruncate(fd, 4)
    os.close(fd)
    with pytest.raises(OSError, match="truncated: 2 of 5"):
        bytes(found)
    assert FileRange.count == before + 1
    del found
    assert FileRange.count == before
