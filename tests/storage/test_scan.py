from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import CorruptMessage
from ottla.storage.segment_files import scan
from ottla.storage.segment_files.scan import Damage, FoundBatch, Stretch, scan_batches, scan_headers, walk

from .making import batch, placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Opened = Callable[[bytes], int]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens a file with these contents."""
    fds = []

    def open_file(data: bytes) -> int:
        (tmp_path / "file").write_bytes(data)
        fds.append(os.open(tmp_path / "file", os.O_RDONLY))
        return fds[-1]

    yield open_file
    for fd in fds:
        os.close(fd)


def batches(*sizes: int) -> list[bytes]:
    return [bytes(placed(batch(size=size), offset)) for offset, size in enumerate(sizes)]


def stretch(data: bytes, position: int = 0, offset: int = 0, end_offset: int = scan.NO_LIMIT) -> Stretch:
    return Stretch(lambda at, size: data[at : at + size], position, len(data), offset, end_offset)


def walked(data: bytes, **where: int) -> list[int | str]:
    """The base offsets of the batches that a walk finds, and an x for damage."""
    return ["x" if isinstance(one, Damage) else one.header.base_offset for one in walk(stretch(data, **where))]


SIZES = [
    [100],
    [100, 200, 300],
    [1000] * 50,
    [70, 4000, 70, 9000, 70],  # some larger than what is read at once
]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("chunk", [61, 100, 1000, 1 << 20])
def test_every_batch_is_found_however_little_is_read_at_once(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, sizes: list[int], chunk: int
) -> None:
    monkeypatch.setattr(scan, "_CHUNK_BYTES", chunk)
    expected = batches(*sizes)
    data = b"".join(expected)
    fd = opened(data)

    assert [header.size for _, header in scan_headers(fd, 0, len(data))] == sizes
    found = list(scan_batches(fd, 0, len(data)))
    assert [bytes(one.data) for one in found] == expected
    assert [one.position for one in found] == [sum(sizes[:n]) for n in range(len(sizes))]
    assert [bytes(one.data) for one in walk(stretch(data), chunk) if isinstance(one, FoundBatch)] == expected


def test_a_scan_may_begin_at_any_batch(opened: Opened) -> None:
    data = b"".join(batches(100, 200, 300))
    fd = opened(data)

    assert [header.base_offset for _, header in scan_headers(fd, 100, len(data))] == [1, 2]
    assert [one.header.base_offset for one in scan_batches(fd, 300, len(data))] == [2]
    assert list(scan_headers(fd, 600, 600)) == []
    assert walked(data, position=100, offset=1) == [1, 2]


@pytest.mark.parametrize("cut", [1, 60, 61, 99])
def test_a_batch_that_is_not_all_there_ends_a_scan(opened: Opened, cut: int) -> None:
    data = b"".join(batches(200, 100))[:-cut]
    fd = opened(data)
    headers = scan_headers(fd, 0, len(data))
    assert next(headers)[1].base_offset == 0
    with pytest.raises(CorruptMessage):
        next(headers)
    whole = scan_batches(fd, 0, len(data))
    assert next(whole).header.base_offset == 0
    with pytest.raises(CorruptMessage):
        next(whole)
    assert walked(data) == [0, "x"]


def test_a_walk_continues_after_damage() -> None:
    good = batches(*[100] * 6)
    for number in range(6):
        for damage in (b"\0", b"\2", b"\xff"):
            data = b"".join([*good[:number], damage * 100, *good[number + 1 :]])
            expected: list[int | str] = [*range(number), "x", *range(number + 1, 6)]
            assert walked(data) == expected


def test_damage_says_where_and_from_which_offset_on() -> None:
    good = batches(100, 100, 100)
    (damage,) = [one for one in walk(stretch(good[0] + bytes(100) + good[2])) if isinstance(one, Damage)]

    assert (damage.position, damage.offset) == (100, 1)
    assert damage.reason


def test_several_damaged_batches_in_a_row_are_one_damage_or_more_but_hide_nothing() -> None:
    good = batches(*[100] * 8)
    data = b"".join([*good[:2], b"\xff" * 300, *good[5:]])

    assert [one for one in walked(data) if one != "x"] == [0, 1, 5, 6, 7]


def test_a_batch_within_a_damaged_one_is_not_taken_for_one_of_the_log() -> None:
    """A record may hold what looks like a batch, as that of a tool that copies logs does."""
    inner = bytes(placed(batch(b"inner"), 0))
    outer = placed(batch(inner), 5)
    outer[-1] ^= 1
    data = bytes(outer) + bytes(placed(batch(b"next"), 6))

    assert walked(data, offset=5) == ["x", 6]


def test_garbage_of_any_kind_never_loops_or_crashes() -> None:
    chance = random.Random(7)
    good = batches(*[90] * 20)
    for _ in range(300):
        data = bytearray(b"".join(good))
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[at] ^= 1 << chance.randrange(8)
                case 1:
                    del data[at : at + chance.randrange(300)]
                case 2:
                    data[at:at] = chance.randbytes(chance.randrange(100))
                case _:
                    data[at : at + 50] = bytes(50)
            data = data or bytearray(1)
        found = [one for one in walk(stretch(bytes(data), end_offset=20), 128) if isinstance(one, FoundBatch)]
        bases = [one.header.base_offset for one in found]
        assert bases == sorted(set(bases))
        assert all(bytes(one.data[16:]) == good[one.header.base_offset][16:] for one in found)
