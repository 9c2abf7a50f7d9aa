"""Batches on disk are served only if intact, and a damaged batch does not affect others."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import CorruptMessage
from ottla.storage.folder.closing import close_log
from ottla.storage.segment_files.cold_read import Bounds, Found, Unverified, find_checked
from ottla.storage.segment_files.scan import Stretch

from .making import EVERY_BATCH, Partition, batch, headers, offsets, open_in, placed

if TYPE_CHECKING:
    from collections.abc import Callable

    OpenPartition = Callable[..., Partition]

SIZE = 128
COUNT = 7
"""Seven batches of two records and 128 bytes each, so that a wrong length may still lead to a batch."""


def put(layout: str, at: int, value: int) -> Callable[[bytearray, int], None]:
    def damage(data: bytearray, start: int) -> None:
        struct.pack_into(layout, data, start + at, value)

    return damage


def add(layout: str, at: int, delta: int) -> Callable[[bytearray, int], None]:
    def damage(data: bytearray, start: int) -> None:
        struct.pack_into(layout, data, start + at, struct.unpack_from(layout, data, start + at)[0] + delta)

    return damage


def fill(byte: int) -> Callable[[bytearray, int], None]:
    def damage(data: bytearray, start: int) -> None:
        data[start : start + SIZE] = bytes([byte]) * SIZE

    return damage


DAMAGE = {
    "base offset one higher": add(">q", 0, 1),
    "base offset as that of the next": add(">q", 0, 2),
    "base offset far higher": add(">q", 0, 1 << 40),
    "base offset one lower": add(">q", 0, -1),
    "base offset as that of the one before": add(">q", 0, -2),
    "base offset zero": put(">q", 0, 0),
    "base offset negative": put(">q", 0, -1),
    "length one more": add(">i", 8, 1),
    "length one less": add(">i", 8, -1),
    "length of two batches": add(">i", 8, SIZE),
    "length of three batches": add(">i", 8, 2 * SIZE),
    "length zero": put(">i", 8, 0),
    "length negative": put(">i", 8, -1),
    "length huge": put(">i", 8, 0x7FFFFFFF),
    "length of a header": put(">i", 8, 49),
    "magic 1": put(">b", 16, 1),
    "magic 3": put(">b", 16, 3),
    "checksum": add(">I", 17, 1),
    "attributes": put(">h", 21, 1),
    "last offset one more": add(">i", 23, 1),
    "last offset one less": add(">i", 23, -1),
    "last offset huge": put(">i", 23, 0x7FFFFFFF),
    "last offset negative": put(">i", 23, -1),
    "timestamp": put(">q", 35, 0),
    "count": put(">i", 57, 0),
    "the last byte": add(">B", SIZE - 1, 1),
    "zeros": fill(0),
    "ones": fill(0xFF),
    "twos, which look like the format's number": fill(2),
}


def as_left(opened: Partition) -> list[bytes]:
    """The batches of a log that was filled and closed."""
    stored = []
    for number in range(COUNT):
        made = batch(b"%d" % number, b"x", size=SIZE)
        opened.log.append(made)
        stored.append(bytes(made))
    opened.stop()
    return stored


@pytest.mark.parametrize("interval", [EVERY_BATCH, 300, 4096])
@pytest.mark.parametrize("kind", DAMAGE)
def test_only_the_damaged_batch_is_not_served(partition: OpenPartition, kind: str, interval: int) -> None:
    opened = partition(index_interval_bytes=interval)
    stored = as_left(opened)
    path = opened.folder / f"{0:020d}.log"
    whole = path.read_bytes()
    # The first batch is where the file's name says, and no offset is lower.
    is_lower = kind in ("base offset one lower", "base offset as that of the one before", "base offset zero")
    for victim in (1, 3, 5, 6) if is_lower else (0, 1, 3, 5, 6):
        data = bytearray(whole)
        DAMAGE[kind](data, victim * SIZE)
        path.write_bytes(data)
        log = opened.reopen_clean()

        assert log.next_offset == 2 * COUNT
        for max_bytes in (1, 3 * SIZE, 1 << 20):
            for offset in range(2 * COUNT):
                number = offset // 2
                if number == victim:
                    with pytest.raises(CorruptMessage):
                        log.read(offset, max_bytes)
                else:
                    found = bytes(log.read(offset, max_bytes))
                    served = [bytes(found[at : at + SIZE]) for at in range(0, len(found), SIZE)]
                    assert served == stored[number : number + len(served)]
                    assert victim not in range(number, number + len(served))
        opened.kill()


def test_damage_is_detected_even_after_batches_that_were_already_read(partition: OpenPartition) -> None:
    opened = partition()
    as_left(opened)
    path = opened.folder / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[5 * SIZE - 1] ^= 1
    path.write_bytes(data)
    log = opened.reopen_clean()
    assert offsets(log.read(0, 1)) == [0, 1]

    assert offsets(log.read(0, 1 << 20)) == list(range(8))
    assert offsets(log.read(2, 3 * SIZE)) == list(range(2, 8))
    with pytest.raises(CorruptMessage, match=f"orders-0/{0:020d}.log: corrupt batch at position 512"):
        log.read(8, 1 << 20)


def test_what_is_appended_behind_damage_is_served(partition: OpenPartition) -> None:
    opened = partition()
    as_left(opened)
    path = opened.folder / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    log = opened.reopen_clean()

    log.append(batch(b"new"))

    assert offsets(log.read(2 * COUNT, 1 << 20)) == [2 * COUNT]
    with pytest.raises(CorruptMessage):
        log.read(2 * COUNT - 1, 1 << 20)


def test_damage_leaves_nothing_open(partition: OpenPartition) -> None:
    opened = partition()
    as_left(opened)
    path = opened.folder / f"{0:020d}.log"
    path.write_bytes(bytes(len(path.read_bytes())))
    log = opened.reopen_clean()
    with pytest.raises(CorruptMessage):
        log.read(0, 100)

    close_log(log)
    assert open_in(opened.folder) == []


# Which bytes have been checked


def test_checking_goes_from_the_front() -> None:
    unverified = Unverified(100)
    assert unverified.covers(0, 1)
    unverified.checked(50, 60)
    assert unverified.covers(50, 60)

    unverified.checked(0, 30)

    assert not unverified.covers(0, 30)
    assert unverified.covers(0, 31)
    assert unverified.covers(30, 31)
    unverified.checked(20, 100)
    assert not unverified.covers(0, 100)


def test_appended_batches_need_no_check() -> None:
    unverified = Unverified(100)

    assert not unverified.covers(100, 200)
    assert unverified.covers(99, 200)
    unverified.truncate(40)
    assert not unverified.covers(40, 100)
    assert unverified.covers(39, 100)


def test_a_new_file_needs_no_check_at_all() -> None:
    assert not Unverified(0).covers(0, 100)


# Looking for batches


def stretch_of(data: bytes, end_offset: int, offset: int = 0) -> Stretch:
    return Stretch(lambda at, size: data[at : at + size], 0, len(data), offset, end_offset)


def test_batches_are_found_by_the_same_rules_as_elsewhere() -> None:
    data = b"".join(placed(batch(b"a", b"b", size=SIZE), 2 * number) for number in range(4))
    stretch = stretch_of(data, 8)

    assert find_checked(stretch, Bounds(0, 8, 1)) == Found(0, SIZE, 2)
    assert find_checked(stretch, Bounds(3, 8, 2 * SIZE)) == Found(SIZE, 3 * SIZE, 6)
    assert find_checked(stretch, Bounds(2, 4, 1 << 20)) == Found(SIZE, 2 * SIZE, 4)
    assert find_checked(stretch, Bounds(2, 2, 1 << 20)) is None
    assert find_checked(stretch, Bounds(8, 9, 1 << 20)) is None


def test_a_gap_is_not_damage_and_the_next_batch_is_found() -> None:
    data = b"".join(placed(batch(size=SIZE), offset) for offset in (3, 10, 20))
    stretch = stretch_of(data, 30)

    assert find_checked(stretch, Bounds(0, 30, 1)) == Found(0, SIZE, 4)
    assert find_checked(stretch, Bounds(4, 30, 1)) == Found(SIZE, 2 * SIZE, 11)
    assert find_checked(stretch, Bounds(11, 30, 1 << 20)) == Found(2 * SIZE, 3 * SIZE, 21)
    assert find_checked(stretch, Bounds(25, 30, 1)) is None
    assert len(headers(data)) == 3
