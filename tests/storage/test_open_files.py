from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

import pytest

from ottla.storage.segment_files.open_files import OpenFiles

from .making import open_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / str(number) for number in range(6)]
    for path in paths:
        path.write_text(path.name)
    return paths


@pytest.fixture
def no_descriptors_left() -> Iterator[list[int]]:
    """Every descriptor that the process may have is taken; those in the list can be given back."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(128, hard), hard))
    taken: list[int] = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    yield taken
    for fd in taken:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def contents(fd: int) -> str:
    return os.pread(fd, 10, 0).decode()


def test_a_file_is_opened_once(paths: list[Path]) -> None:
    files = OpenFiles(2)

    assert files.get(paths[0]) == files.get(paths[0])
    assert contents(files.get(paths[0])) == "0"
    assert len(files) == 1
    files.close()


def test_never_more_than_the_limit_are_open(paths: list[Path]) -> None:
    files = OpenFiles(3)
    for _ in range(3):
        for path in paths:
            assert contents(files.get(path)) == path.name
            assert len(files) <= 3
            assert len(open_in(path.parent)) == len(files)
    files.close()


def test_the_longest_unused_is_closed_first(paths: list[Path]) -> None:
    files = OpenFiles(2)
    files.get(paths[0])
    files.get(paths[1])
    files.get(paths[0])
    files.get(paths[2])

    assert open_in(paths[0].parent) == [str(paths[0]), str(paths[2])]
    files.close()


def test_a_limit_of_one_works(paths: list[Path]) -> None:
    files = OpenFiles(1)

    assert [contents(files.get(path)) for path in (*paths, *paths)] == ["0", "1", "2", "3", "4", "5"] * 2
    files.close()


def test_a_limit_below_one_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        OpenFiles(0)


def test_forgetting_closes_and_getting_opens_again(paths: list[Path]) -> None:
    files = OpenFiles(2)
    files.get(paths[0])
    files.forget(paths[0])
    files.forget(paths[1])

    assert open_in(paths[0].parent) == []
    paths[0].write_text("new")
    assert contents(files.get(paths[0])) == "new"
    files.close()


def test_closing_twice_closes_nothing_of_others(paths: list[Path]) -> None:
    files = OpenFiles(2)
    files.get(paths[0])
    files.close()
    stranger = os.open(paths[1], os.O_RDONLY)

    files.close()

    assert contents(stranger) == "1"
    os.close(stranger)


def test_a_missing_file_takes_no_room(paths: list[Path]) -> None:
    files = OpenFiles(1)
    with pytest.raises(FileNotFoundError):
        files.get(paths[0].with_name("missing"))

    assert len(files) == 0


def test_when_the_process_has_no_descriptors_left_another_file_is_closed(
    paths: list[Path], no_descriptors_left: list[int]
) -> None:
    files = OpenFiles(4)
    os.close(no_descriptors_left.pop())
    files.get(paths[0])

    assert contents(files.get(paths[1])) == "1"
    assert len(files) == 1
    files.close()


def test_without_a_file_to_close_the_read_fails_and_a_later_one_works(
    paths: list[Path], no_descriptors_left: list[int]
) -> None:
    files = OpenFiles(4)
    with pytest.raises(OSError, match="Too many open files"):
        files.get(paths[0])

    os.close(no_descriptors_left.pop())
    assert contents(files.get(paths[0])) == "0"
    files.close()
