"""Small files are merged, old snapshots and orphans removed; every row stays, and the offsets are found again."""

import os
import time
from pathlib import Path

import pytest

from ottla.columns.partitioning import parse_partitioning
from ottla.lake.compacting import choose
from ottla.lake.covered import offsets
from ottla.lake.maintaining import Maintained, Upkeep, maintain

from .conftest import Lake

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
DAY_S = 24 * 3600
KIB = 1024


def maintained(lake: Lake, keep_snapshots: int = 100, orphans_older_than_s: float = DAY_S) -> Maintained:
    return next(maintain(lake.settings, [lake.topic], Upkeep(keep_snapshots, orphans_older_than_s)))


def data_files(lake: Lake) -> list[str]:
    return [Path(each.removeprefix("file://")).name for each in lake.table.inspect.files()["file_path"].to_pylist()]


def test_files_of_similar_size_are_merged_and_large_ones_are_left_alone() -> None:
    small = {f"s{each}": KIB for each in range(8)}
    medium = {f"m{each}": 1024 * KIB for each in range(7)}
    large = {f"l{each}": 40 * 1024 * KIB for each in range(9)}
    assert choose({**small, **medium, **large}) == [list(small)]
    assert choose(dict(list(small.items())[:7])) == []
    assert choose({**small, **medium, **large}, is_thorough=True) == [[*small, *medium]]
    assert choose({"one": KIB}, is_thorough=True) == []
    parts = choose({f"p{each}": 20 * 1024 * KIB for each in range(7)}, is_thorough=True)
    assert [len(each) for each in parts] == [3, 3]


def test_the_writer_merges_small_files_itself(lake: Lake) -> None:
    with lake.writer() as writer:
        for number in range(45):
            lake.numbers(range(number, number + 1))
            writer.round()
    assert len(data_files(lake)) <= 2 + 5 + 8
    assert lake.ids() == list(range(45))


def test_maintenance_beside_a_writer_keeps_rows_offsets_and_the_writer(lake: Lake) -> None:
    with lake.writer() as writer:
        for number in range(6):
            lake.numbers(range(number, number + 1))
            writer.round()
        done = maintained(lake, keep_snapshots=2)
        assert (done.merged, done.into) == (6, 1)
        assert done.expired >= 4
        assert len(lake.table.metadata.snapshots) <= 2
        assert offsets(lake.table) == {0: 6, 1: 0}
        lake.numbers(range(6, 8))
        assert writer.round().rows == 2
    assert len(data_files(lake)) == 2
    lake.numbers(range(8, 10))
    lake.append()
    assert lake.ids() == list(range(10))
    assert maintained(lake, keep_snapshots=2).merged == 3


def test_files_are_merged_within_partitions(lake: Lake) -> None:
    by = parse_partitioning("bucket(2, id)")
    for number in range(4):
        lake.numbers(range(10 * number, 10 * number + 10))
        lake.append(partition_by=by)
    assert (maintained(lake).merged, len(data_files(lake))) == (8, 2)
    assert lake.ids() == list(range(40))


def test_orphans_are_removed_once_they_are_old(lake: Lake) -> None:
    lake.numbers(range(3))
    lake.append()
    location = Path(lake.table.location().removeprefix("file://"))
    old, young = location / "data/old.parquet", location / "data/young.parquet"
    for each in (old, young):
        each.write_bytes(b"x")
    before_s = time.time() - 2 * DAY_S
    os.utime(old, (before_s, before_s))
    for each in location.rglob("*"):
        if each.is_file() and each not in (old, young):
            os.utime(each, (before_s, before_s))

    assert maintained(lake).orphans == 1
    assert not old.exists()
    assert young.exists()
    lake.numbers(range(3, 5))
    lake.append()
    assert lake.ids() == list(range(5))


def test_a_tagged_snapshot_keeps_its_files(lake: Lake) -> None:
    lake.numbers(range(3))
    lake.append()
    lake.numbers(range(3, 5))
    lake.append()
    tagged = lake.table.current_snapshot().snapshot_id
    lake.table.manage_snapshots().create_tag(tagged, "audit").commit()
    maintained(lake)
    for number in range(5, 20):
        lake.numbers(range(number, number + 1))
        lake.append(keep_snapshots=2)
    maintained(lake, keep_snapshots=2)
    assert sorted(lake.table.scan(snapshot_id=tagged).to_arrow()["id"].to_pylist()) == list(range(5))
    assert lake.ids() == list(range(20))
