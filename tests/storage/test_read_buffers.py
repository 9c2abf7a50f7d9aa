from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ottla.storage.segment_files.read_buffers import BUFFER_BYTES, ReadBuffers

from .making import Partition, batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MIB = 1 << 20
FILE_BYTES = 4 * MIB


@pytest.fixture
def content() -> bytes:
    return os.urandom(FILE_BYTES)


@pytest.fixture
def fd(tmp_path: Path, content: bytes) -> Iterator[int]:
    path = tmp_path / "file"
    path.write_bytes(content)
    fd = os.open(path, os.O_RDONLY)
    yield fd
    os.close(fd)


def memory_of(data: bytes | memoryview) -> object:
    assert isinstance(data, memoryview)
    return data.obj


@pytest.mark.parametrize("size", [1, 1000, 200_000, MIB, BUFFER_BYTES, BUFFER_BYTES + 1, 3 * MIB])
@pytest.mark.parametrize("position", [0, 12_345, FILE_BYTES - 150_000, FILE_BYTES])
def test_it_reads_what_is_in_the_file(fd: int, content: bytes, size: int, position: int) -> None:
    assert bytes(ReadBuffers().read(fd, size, position)) == content[position : position + size]


def test_memory_is_reused_once_unreferenced(fd: int) -> None:
    buffers = ReadBuffers()
    first = buffers.read(fd, MIB, 0)
    memory = id(memory_of(first))
    del first
    assert id(memory_of(buffers.read(fd, MIB, MIB))) == memory


def test_referenced_memory_is_not_reused(fd: int, content: bytes) -> None:
    buffers = ReadBuffers()
    part = memoryview(buffers.read(fd, MIB, 0))[1000:2000]
    others = [buffers.read(fd, MIB, 2 * MIB) for _ in range(20)]
    assert bytes(part) == content[1000:2000]
    assert all(other == content[2 * MIB : 3 * MIB] for other in others)


def test_it_keeps_no_more_than_a_few_megabytes_however_much_is_held(fd: int) -> None:
    buffers = ReadBuffers()
    held = [buffers.read(fd, MIB, 0) for _ in range(50)]
    kept = {id(memory_of(data)) for data in held if isinstance(data, memoryview)}
    assert 1 < len(kept) <= 8


def test_read_buffers_are_read_only(fd: int) -> None:
    data = ReadBuffers().read(fd, MIB, 0)
    assert memoryview(data).readonly


def test_a_failed_read_leaves_the_memory_for_the_next(fd: int, tmp_path: Path) -> None:
    buffers = ReadBuffers()
    memory = id(memory_of(buffers.read(fd, MIB, 0)))
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(IsADirectoryError):
        buffers.read(folder, MIB, 0)
    os.close(folder)
    assert id(memory_of(buffers.read(fd, MIB, 0))) == memory


def test_large_reads_of_a_log_do_not_disturb_each_other(partition: Callable[..., Partition]) -> None:
    log = partition().log
    for number in range(8):
        log.append(batch(b"%d" % number * 200_000))
    held = [log.read(offset, 300_000) for offset in range(8)]
    assert [bytes(data[-10:-2]) for data in held] == [b"%d" % number * 8 for number in range(8)]
