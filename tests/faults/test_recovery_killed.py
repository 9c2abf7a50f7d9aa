"""Kill recovery at every modifying system call, and run it again.

Outcome: the same log as if it had not been interrupted.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from tests.storage.making import offset_for_timestamp

from ottla.core.clock import ManualClock
from ottla.core.ids import TopicPartition
from ottla.records.control import EndMarker
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir

from .encrypting import EncryptedDataDir
from .killing import KILLED, kill_at, run
from .making import NOW, Producer, batch, leave, read_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ottla.storage.config import CleanupPolicy
    from ottla.storage.partition_log import PartitionLog

AT = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=200)


def write_four_segments(folder: Path, kind: type[DataDir]) -> None:
    data_dir = kind(folder, ManualClock())
    log = data_dir.open_partition(AT, CONFIG)
    for number in range(24):
        log.append(batch(b"%02d" % number * 50, at=NOW + number, by=Producer(5, 0, number)), leader_epoch=number // 10)
        if number == 5:
            log.flush()
            data_dir.checkpoints.write()
        if number in (3, 11, 19):
            log.append(batch(b"t", at=NOW + number, by=Producer(6, 0, number // 8, is_transactional=True)))
            log.append_end_marker(6, 0, EndMarker(is_commit=False, coordinator_epoch=1))
    assert len(log.segments) >= 4
    leave(data_dir)


def tear_the_end(folder: Path) -> None:
    segment = max(folder.glob("*log"))
    os.truncate(segment, segment.stat().st_size - 10)


def damage_the_second_segment(folder: Path) -> None:
    with sorted(folder.glob("*log"))[1].open("r+b") as segment:
        segment.seek(700)
        segment.write(b"\xff" * 40)


def lose_the_end_of_the_second_segment(folder: Path) -> None:
    os.truncate(sorted(folder.glob("*log"))[1], 0)


def lose_all_indexes(folder: Path) -> None:
    for path in [*folder.glob("*index"), *folder.glob("*.snapshot"), folder / "leader-epoch-checkpoint"]:
        path.unlink()


def spoil_all_indexes(folder: Path) -> None:
    for path in [*folder.glob("*index"), *folder.glob("*.snapshot"), folder / "leader-epoch-checkpoint"]:
        path.write_bytes(b"\x01" * 68)
    (folder / "00000000000000000003.index").write_bytes(b"")
    (folder / "00000000000000000000.log.deleted").write_bytes(b"x")


DAMAGES = [
    tear_the_end,
    damage_the_second_segment,
    lose_the_end_of_the_second_segment,
    lose_all_indexes,
    spoil_all_indexes,
]


def state(log: PartitionLog) -> object:
    """The externally visible state of a log."""
    producers = [
        (number, known.epoch, list(known.batches)[-1:], known.transaction_start)
        for number, known in sorted(log.producers.producers.items())
    ]
    times = [offset_for_timestamp(log, NOW + number) for number in range(25)]
    return (
        read_all(log),
        log.start_offset,
        log.next_offset,
        [segment.base_offset for segment in log.segments],
        producers,
        log.epochs.entries,
        log.aborted_transactions(0, log.next_offset),
        times,
    )


def recover(folder: Path, config: LogConfig, kind: type[DataDir]) -> object:
    data_dir = kind(folder, ManualClock())
    try:
        return state(data_dir.open_partition(AT, config))
    finally:
        leave(data_dir)


@pytest.mark.parametrize(
    ("damage", "policy", "kind"),
    [
        *((damage, "delete", DataDir) for damage in DAMAGES),
        # A compacted log may have gaps, so it must be truncated in the right order.
        (damage_the_second_segment, "compact", DataDir),
        (damage_the_second_segment, "delete", EncryptedDataDir),
        (lose_all_indexes, "delete", EncryptedDataDir),
    ],
)
def test_a_killed_recovery_ends_in_the_same_state_as_an_uninterrupted_one(
    in_memory: Path, damage: Callable[[Path], None], policy: CleanupPolicy, kind: type[DataDir]
) -> None:
    config = replace(CONFIG, cleanup_policy=policy)
    damaged = in_memory / "damaged"
    write_four_segments(damaged, kind)
    damage(damaged / str(AT))
    shutil.copytree(damaged, in_memory / "expected")
    expected = recover(in_memory / "expected", config, kind)
    number, status = 0, KILLED
    while status == KILLED:
        number += 1
        folder = in_memory / str(number)
        shutil.copytree(damaged, folder)

        def work(number: int = number, folder: Path = folder) -> None:
            kill_at(number, "torn")
            recover(folder, config, kind)

        status = run(work)
        assert recover(folder, config, kind) == expected
        shutil.rmtree(folder)
    assert status == 0
    assert number > 8, "recovery changed too little to be interrupted"
