from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.storage.config import LogConfig
from ottla.storage.files import file_name
from ottla.storage.rewrites.swap_files import complete_swaps

from .making import Partition, batch, open_in, placed, read_all, values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OLD = {0: [b"a", b"b"], 2: [b"c", b"d"], 4: [b"e", b"f"]}
"""Three segments of two batches each, by their base offset."""
COMPACTED = [(1, b"b"), (3, b"d")]
"""What compaction leaves of the first two."""


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    partition = Partition(tmp_path / "p-0", LogConfig(cleanup_policy="compact"))
    for contents in OLD.values():
        partition.log.roll()
        for value in contents:
            partition.log.append(batch(value))
    partition.stop()
    yield partition
    partition.close()
    assert open_in(tmp_path) == []


def write_compacted(folder: Path, suffixes: dict[str, str], base: int = 0) -> None:
    """The new segment's files, each with a suffix behind its name."""
    log = b"".join(placed(batch(value), offset) for offset, value in COMPACTED)
    contents = {".log": log, ".index": b"", ".timeindex": b"", ".txnindex": b""}
    for kind, suffix in suffixes.items():
        (folder / (file_name(base, kind) + suffix)).write_bytes(contents[kind])


def remove_old(folder: Path, *bases: int) -> None:
    for base in bases:
        for kind in (".log", ".index", ".timeindex"):
            path = folder / file_name(base, kind)
            path.rename(folder / f"{path.name}.deleted")


def everything_in(partition: Partition) -> list[bytes | None]:
    log = partition.reopen_unclean()
    return values(read_all(log))


ALL_SWAP = {".log": ".swap", ".index": ".swap", ".timeindex": ".swap"}


@pytest.mark.parametrize("removed", [(), (0,), (2,), (0, 2)])
def test_swap_files_replace_their_originals(partition: Partition, removed: tuple[int, ...]) -> None:
    write_compacted(partition.folder, ALL_SWAP)
    remove_old(partition.folder, *removed)

    assert everything_in(partition) == [b"b", b"d", b"e", b"f"]
    assert partition.names(".log") == [file_name(0, ".log"), file_name(4, ".log")]
    assert not partition.names(".swap")
    assert not partition.names(".deleted")
    assert partition.log.next_offset == 6


@pytest.mark.parametrize("left", [".index", ".timeindex"])
def test_remaining_swap_files_are_renamed_after_the_log(partition: Partition, left: str) -> None:
    remove_old(partition.folder, 0, 2)
    write_compacted(partition.folder, {".log": "", ".index": "", ".timeindex": ""} | {left: ".swap"})

    assert everything_in(partition) == [b"b", b"d", b"e", b"f"]
    assert not partition.names(".swap")


@pytest.mark.parametrize("suffixes", [dict.fromkeys(ALL_SWAP, ".cleaned"), ALL_SWAP | {".timeindex": ".cleaned"}])
def test_a_compaction_with_cleaned_files_is_discarded(partition: Partition, suffixes: dict[str, str]) -> None:
    write_compacted(partition.folder, suffixes)

    assert everything_in(partition) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    assert not partition.names(".swap")
    assert not partition.names(".cleaned")


def test_nothing_is_lost_if_the_completion_itself_is_interrupted_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every rename and removal in turn is the last thing that happens, and then the folder is opened."""
    path_type = type(tmp_path)
    interruptions = 0
    for steps in range(20):
        partition = Partition(tmp_path / f"p-{steps}", LogConfig(cleanup_policy="compact"))
        for contents in OLD.values():
            partition.log.roll()
            for value in contents:
                partition.log.append(batch(value))
        partition.stop()
        write_compacted(partition.folder, ALL_SWAP)
        left = steps

        def count_down() -> None:
            nonlocal left
            if left == 0:
                raise InterruptedError
            left -= 1

        def unlink(path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002
            count_down()
            original_unlink(path, missing_ok)

        def rename(path: Path, target: Path) -> Path:
            count_down()
            return original_rename(path, target)

        with monkeypatch.context() as interrupted:
            original_unlink, original_rename = path_type.unlink, path_type.rename
            interrupted.setattr(path_type, "unlink", unlink)
            interrupted.setattr(path_type, "rename", rename)
            try:
                complete_swaps(partition.folder)
            except InterruptedError:
                interruptions += 1

        assert everything_in(partition) == [b"b", b"d", b"e", b"f"]
        partition.close()
    assert interruptions > 5


def test_a_log_of_which_compaction_left_nothing_is_empty(partition: Partition) -> None:
    for kind in (".log", ".index", ".timeindex"):
        (partition.folder / (file_name(0, kind) + ".swap")).touch()

    assert everything_in(partition) == [b"c", b"d", b"e", b"f"]


def test_similar_files_are_not_touched(partition: Partition) -> None:
    (partition.folder / "notes.swap").write_text("mine")

    assert len(everything_in(partition)) == 6
    assert (partition.folder / "notes.swap").read_text() == "mine"
