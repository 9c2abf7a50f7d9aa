from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.segment_files import index_file
from ottla.storage.segment_files.index_file import OFFSET_ENTRY, TIME_ENTRY, IndexFile
from ottla.storage.segment_files.open_files import OpenFiles

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.segment_files.index_file import Entry

ENTRIES = [(10, 100), (20, 200), (30, 300), (40, 400)]


def index_of(path: Path, files: OpenFiles, written: list[Entry], unwritten: list[Entry]) -> IndexFile:
    index = IndexFile(path, OFFSET_ENTRY, files, is_new=True)
    for entry in written:
        index.append(*entry)
    index.write_out()
    for entry in unwritten:
        index.append(*entry)
    return index


def brute_force(entries: list[Entry], first: int) -> Entry | None:
    return max((entry for entry in entries if entry[0] <= first), default=None)


@pytest.mark.parametrize("written", range(len(ENTRIES) + 1))
def test_find_gives_the_last_entry_at_or_below_wherever_the_entries_are_kept(
    tmp_path: Path, files: OpenFiles, written: int
) -> None:
    index = index_of(tmp_path / "i", files, ENTRIES[:written], ENTRIES[written:])

    for first in range(-1, 45):
        assert index.find(first) == brute_force(ENTRIES, first)
    assert index.last == ENTRIES[-1]
    assert index.entries() == ENTRIES
    assert len(index) == len(ENTRIES)
    assert index.size == len(ENTRIES) * 8


def test_an_empty_index_finds_nothing(tmp_path: Path, files: OpenFiles) -> None:
    index = index_of(tmp_path / "i", files, [], [])

    assert index.find(0) is None
    assert index.find(1 << 31) is None
    assert index.last is None
    assert (tmp_path / "i").read_bytes() == b""


@pytest.mark.parametrize("written", range(len(ENTRIES) + 1))
@pytest.mark.parametrize("second", [0, 99, 100, 101, 200, 299, 300, 301, 400, 401, 1000])
def test_dropped_entries_are_gone_and_others_take_their_place(
    tmp_path: Path, files: OpenFiles, written: int, second: int
) -> None:
    index = index_of(tmp_path / "i", files, ENTRIES[:written], ENTRIES[written:])
    kept = [entry for entry in ENTRIES if entry[1] < second]

    index.drop_from(second)

    assert index.entries() == kept
    assert index.last == (kept[-1] if kept else None)
    assert [index.find(first) for first in (9, 10, 50)] == [brute_force(kept, first) for first in (9, 10, 50)]
    index.append(50, 5000)
    index.write_out()
    assert IndexFile(tmp_path / "i", OFFSET_ENTRY, files, is_new=False).entries() == [*kept, (50, 5000)]


@given(entries=st.sets(st.integers(0, 60)), written=st.integers(0, 60), dropped=st.integers(0, 70))
def test_any_index_answers_like_a_list(
    tmp_path_factory: pytest.TempPathFactory, entries: set[int], written: int, dropped: int
) -> None:
    pairs = [(number, 3 * number) for number in sorted(entries)]
    path = tmp_path_factory.mktemp("index") / "i"
    files = OpenFiles(1)
    index = index_of(path, files, pairs[:written], pairs[written:])

    index.drop_from(3 * dropped)

    kept = [pair for pair in pairs if pair[0] < dropped]
    assert [index.find(first) for first in range(-1, 62)] == [brute_force(kept, first) for first in range(-1, 62)]
    assert index.last == (kept[-1] if kept else None)
    files.close()


def test_writing_out_cuts_off_what_a_crash_left_behind_the_entries(tmp_path: Path, files: OpenFiles) -> None:
    path = tmp_path / "i"
    path.write_bytes(b"garbage" * 1000)
    index = IndexFile(path, OFFSET_ENTRY, files, is_new=True)
    index.append(1, 2)

    index.write_out()

    assert path.read_bytes() == bytes.fromhex("00000001 00000002")


def test_writing_out_twice_changes_nothing(tmp_path: Path, files: OpenFiles) -> None:
    index = index_of(tmp_path / "i", files, ENTRIES, [])
    before = (tmp_path / "i").read_bytes()

    index.write_out()

    assert (tmp_path / "i").read_bytes() == before
    assert len(before) == 8 * len(ENTRIES)


def test_time_entries_have_twelve_bytes(tmp_path: Path, files: OpenFiles) -> None:
    index = IndexFile(tmp_path / "t", TIME_ENTRY, files, is_new=True)
    index.append(1_700_000_000_000, 39)
    index.write_out()

    assert (tmp_path / "t").read_bytes() == bytes.fromhex("0000018bcfe56800 00000027")


def test_a_part_of_an_entry_at_the_end_of_the_file_does_not_count(tmp_path: Path, files: OpenFiles) -> None:
    path = tmp_path / "i"
    index_of(path, files, ENTRIES, [])
    os.truncate(path, 8 * len(ENTRIES) - 1)

    index = IndexFile(path, OFFSET_ENTRY, files, is_new=False)

    assert index.last == ENTRIES[-2]
    assert index.entries() == ENTRIES[:-1]


def test_a_file_that_shrinks_underneath_is_an_error_of_the_disk(tmp_path: Path, files: OpenFiles) -> None:
    path = tmp_path / "i"
    index = index_of(path, files, ENTRIES, [])
    os.truncate(path, 8)

    with pytest.raises(OSError, match="ends before entry"):
        index.find(40)


def test_a_full_disk_leaves_the_entries_in_memory_until_there_is_room(
    tmp_path: Path, files: OpenFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "i"
    index = IndexFile(path, OFFSET_ENTRY, files, is_new=True)
    expected = [(number, number) for number in range(3)]
    for entry in expected:
        index.append(*entry)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(index_file, "write_all", refuse)
        with pytest.raises(OSError, match="No space"):
            index.write_out()

    assert index.entries() == expected
    assert index.find(1) == (1, 1)
    index.write_out()
    assert IndexFile(path, OFFSET_ENTRY, files, is_new=False).entries() == expected
