"""Side files are deleted, truncated at each length, overwritten, swapped or replaced by a folder.

Outcome: the same answers as before, to reads as to questions about timestamps, and nothing young is deleted. What is
wrong is found out when it is used and rebuilt from the log. What has no second copy is lost, as in Apache Kafka: a log
whose start was raised starts again at its first segment without `log-start-offset-checkpoint`.
"""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.storage.making import offset_for_timestamp

from ottla.core.clock import ManualClock
from ottla.core.ids import TopicId, TopicPartition
from ottla.records.control import EndMarker
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import CLEAN_SHUTDOWN, DataDir
from ottla.storage.retention import delete_expired

from .making import NOW, Producer, Read, batch, leave, read_all, split

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

AT = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=1024, index_interval_bytes=150, retention_ms=1000)
TOPIC_ID = TopicId.parse("g44z2k4uQeCBfVXVsQ5aTQ")
# Unordered, so that the newest record of a segment is not its last.
TIMES = [NOW + ms for ms in (5, 60, 20, 30, 10, 40, 90, 55, 70, 100, 80, 150, 120, 130, 200, 140, 110, 115, 190, 180)]
START = 2


class Answers(NamedTuple):
    """All queries that a client can make."""

    batches: list[Read]
    single_reads: list[Read]
    timestamps: list[object]
    next_offset: int
    aborted: list[object]
    producers: list[object]


def answers(log: PartitionLog) -> Answers:
    log.raise_start(max(START, log.start_offset))
    producers = [
        (number, known.epoch, list(known.batches)[-1:], known.transaction_start)
        for number, known in sorted(log.producers.producers.items())
    ]
    return Answers(
        read_all(log),
        [next(split(log.read(offset, 1))) for offset in range(START, log.next_offset)],
        [offset_for_timestamp(log, time) for time in range(NOW - 1, NOW + 202, 3)],
        log.next_offset,
        list(log.aborted_transactions(0, log.next_offset)),
        producers,
    )


def young(folder: Path) -> int:
    """The number of records left when retention deletes everything older than the third segment's newest record."""
    with DataDir(folder, ManualClock()) as data_dir:
        log = data_dir.open_partition(AT, CONFIG)
        delete_expired(log, NOW + 1000 + 125)
        return log.start_offset


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder left by a clean stop: a log of several segments, all with transactions, and its side files."""
    folder = tmp_path_factory.mktemp("side-files") / "data"
    with DataDir(folder, ManualClock()) as data_dir:
        log = data_dir.open_partition(AT, CONFIG, TOPIC_ID)
        for number, time in enumerate(TIMES):
            log.append(batch(b"%02d" % number * 40, at=time, by=Producer(5, 0, number)), leader_epoch=number // 8)
            if number % 4 == 1:
                log.append(batch(b"t", at=time, by=Producer(6, 0, number // 4, is_transactional=True)))
                log._clock = ManualClock(time)
                log.append_end_marker(6, 0, EndMarker(is_commit=False, coordinator_epoch=1))
        log.raise_start(START)
        assert len(log.segments) >= 4
    return folder


class Damage(NamedTuple):
    what: str
    data: bytes | Path | None


def damages(path: Path, chance: random.Random) -> Iterator[Damage]:
    whole = path.read_bytes()
    yield Damage("deleted", None)
    yield Damage("a folder", path)
    for length in range(len(whole)):
        yield Damage(f"cut to {length} bytes", whole[:length])
    for size in {len(whole), 96}:
        yield Damage(f"{size} zeros", bytes(size))
        yield Damage(f"{size} ones", b"\xff" * size)
        yield Damage(f"{size} random bytes", chance.randbytes(size))
    yield Damage("garbage behind it", whole + chance.randbytes(12 * 17))
    if path.suffix:
        for other in sorted(path.parent.glob(f"*{path.suffix}")):
            if other.read_bytes() != whole:
                yield Damage(f"that of {other.name}", other.read_bytes())


def do(damage: Damage, path: Path) -> None:
    path.unlink()
    if isinstance(damage.data, bytes):
        path.write_bytes(damage.data)
    elif damage.data is not None:
        path.mkdir()


def each_damage(original: Path, working: Path, names: list[str], *, is_clean: bool) -> Iterator[tuple[str, Path]]:
    """A copy of the folder for each kind of damage to each file, with a description."""
    chance = random.Random(4)
    for name in names:
        for damage in damages(original / name, chance):
            shutil.copytree(original, working)
            do(damage, working / name)
            if not is_clean:
                (working / CLEAN_SHUTDOWN).unlink()
            yield f"{name}: {damage.what}", working
            shutil.rmtree(working)


def names_of(original: Path, *patterns: str) -> list[str]:
    names = sorted(str(path.relative_to(original)) for pattern in patterns for path in original.glob(pattern))
    assert len(names) >= len(patterns)
    return names


def ask(folder: Path) -> Answers:
    data_dir = DataDir(folder, ManualClock())
    try:
        return answers(data_dir.open_partition(AT, CONFIG, TOPIC_ID))
    finally:
        leave(data_dir)


WAYS = pytest.mark.parametrize("is_clean", [True, False], ids=["after a clean stop", "after a crash"])


@WAYS
@pytest.mark.parametrize(
    "patterns",
    [
        ("orders-0/*.index",),
        ("orders-0/*.timeindex",),
        ("orders-0/leader-epoch-checkpoint", "orders-0/partition.metadata"),
        ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "aborted-transactions-checkpoint"),
    ],
    ids=["offset index", "time index", "files of the partition", "checkpoints"],
)
def test_damaged_side_files_do_not_change_results(
    original: Path, in_memory: Path, patterns: tuple[str, ...], is_clean: bool
) -> None:
    shutil.copytree(original, in_memory / "expected")
    expected = ask(in_memory / "expected")
    assert len(expected.aborted) == 5
    for what, folder in each_damage(original, in_memory / "data", names_of(original, *patterns), is_clean=is_clean):
        assert ask(folder) == expected, what


@WAYS
def test_a_wrong_time_index_does_not_delete_young_records(original: Path, in_memory: Path, is_clean: bool) -> None:
    shutil.copytree(original, in_memory / "expected")
    expected = young(in_memory / "expected")
    assert expected > START
    names = names_of(original, "orders-0/*.timeindex")
    for what, folder in each_damage(original, in_memory / "data", names, is_clean=is_clean):
        assert young(folder) == expected, what


@WAYS
def test_producer_states_are_rebuilt_without_snapshots(original: Path, in_memory: Path, is_clean: bool) -> None:
    shutil.copytree(original, in_memory / "expected")
    expected = ask(in_memory / "expected")
    for what, folder in each_damage(
        original, in_memory / "data", names_of(original, "*/*.snapshot")[-2:], is_clean=is_clean
    ):
        assert ask(folder) == expected, what


@WAYS
def test_a_wrong_transaction_index_is_rebuilt(original: Path, in_memory: Path, is_clean: bool) -> None:
    shutil.copytree(original, in_memory / "expected")
    expected = ask(in_memory / "expected")
    for what, folder in each_damage(
        original, in_memory / "data", names_of(original, "*/*.txnindex"), is_clean=is_clean
    ):
        assert ask(folder) == expected, what


def test_a_lost_log_start_offset_becomes_the_start_of_the_first_segment(original: Path, in_memory: Path) -> None:
    names = ["log-start-offset-checkpoint"]
    starts = set()
    for _, folder in each_damage(original, in_memory / "data", names, is_clean=True):
        data_dir = DataDir(folder, ManualClock())
        starts.add(data_dir.open_partition(AT, CONFIG).start_offset)
        leave(data_dir)
    assert starts == {0}
