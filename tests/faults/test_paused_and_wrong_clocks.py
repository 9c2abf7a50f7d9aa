"""Paused processes and wall clock jumps.

Outcome: a pause changes nothing. Retention and the expiry of producers go by a clock that does not jump, so neither
deletes what is young; timestamps follow the topic's policy, and lookups find them in whatever order they came.
"""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest
from tests.storage.making import offset_for_timestamp

from ottla.core.clock import ManualClock, SteadyClock
from ottla.core.errors import InvalidTimestamp, OutOfOrderSequenceNumber
from ottla.core.ids import TopicPartition
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.retention import delete_expired

from .history import History
from .killing import KILLED, fork, wait
from .making import NOW, Producer, batch, read_all
from .test_killed import collect, hold_to, whole_lines
from .writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

AT = TopicPartition("orders", 0)
YEAR_MS = 365 * 24 * 3_600_000
JUMPS = pytest.mark.parametrize("jump_ms", [-YEAR_MS, YEAR_MS], ids=["a year back", "a year ahead"])


def test_a_writer_stopped_again_and_again_and_then_killed_loses_nothing(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    pid = fork(lambda: Writer(tmp_path, lambda line: os.write(writing, line)).go_on_for_ever(random.Random(11)))
    os.close(writing)
    received = b""
    chance = random.Random(12)
    for _ in range(20):
        received += collect(reading, time.monotonic() + chance.random() * 0.02)
        os.kill(pid, signal.SIGSTOP)
        received += collect(reading, time.monotonic() + chance.random() * 0.02)
        os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL)
    assert wait(pid) == KILLED
    received += collect(reading, time.monotonic() + 60)
    os.close(reading)
    history = History()
    history.learn(whole_lines(received))
    assert history.acknowledged > 20
    hold_to(history, tmp_path, is_left=True)


class Station:
    """A log, the wall clock, and the clock used by retention."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.clock = ManualClock()
        self.steady = SteadyClock(self.clock)
        self.data_dir = DataDir(folder, self.clock)
        config = LogConfig(segment_bytes=1024, retention_ms=60_000, **settings)  # type: ignore[arg-type]
        self.log: PartitionLog = self.data_dir.open_partition(AT, config)

    def fill(self, segments: int) -> None:
        while len(self.log.segments) < segments:
            self.log.append(batch(b"x" * 200, at=self.clock.now_ms()))

    def clean_up(self) -> None:
        now_ms = self.steady.now_ms()
        for path in delete_expired(self.log, now_ms):
            path.unlink()
        self.log.producers.expire(now_ms, self.log.config.producer_id_expiration_ms)


@pytest.fixture(params=["CreateTime", "LogAppendTime"])
def station(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Station]:
    station = Station(
        tmp_path / "data", message_timestamp_type=request.param, message_timestamp_after_max_ms=2 * YEAR_MS
    )
    yield station
    station.data_dir.close()


@JUMPS
def test_retention_keeps_young_segments_and_deletes_old_ones(station: Station, jump_ms: int) -> None:
    station.fill(3)
    young = station.log.next_offset
    station.clock.set_wall_clock(NOW + jump_ms)
    station.clean_up()
    assert station.log.start_offset == 0
    station.clock.advance(59)
    station.clean_up()
    assert station.log.start_offset == 0
    station.clock.set_wall_clock(NOW + 59_000)
    station.fill(5)
    station.clock.advance(2)
    station.clean_up()
    assert 0 < station.log.start_offset <= young
    assert read_all(station.log)


@JUMPS
def test_records_stamped_while_the_clock_was_wrong_are_found_and_kept(station: Station, jump_ms: int) -> None:
    station.fill(2)
    station.clock.set_wall_clock(NOW + jump_ms)
    wrong = station.log.append(batch(b"wrong", at=NOW + jump_ms)).base_offset
    station.clock.set_wall_clock(NOW + 1)
    right = station.log.append(batch(b"right", at=NOW + 1)).base_offset
    newest = offset_for_timestamp(station.log, NOW + 1)
    assert newest is not None
    assert newest.offset == (wrong if jump_ms > 0 else right)
    first = offset_for_timestamp(station.log, NOW)
    assert first is not None
    assert first.offset == 0
    station.clean_up()
    found = [read.base_offset for read in read_all(station.log)]
    assert found[-1] == right
    # Only records with timestamps a year old may be deleted, with their segment.
    assert found[0] == 0 or jump_ms < 0


@JUMPS
def test_producers_are_not_forgotten_when_the_clock_jumps(tmp_path: Path, jump_ms: int) -> None:
    station = Station(tmp_path / "data", producer_id_expiration_ms=60_000)
    station.log.append(batch(by=Producer(1, 0, 0)))
    station.clock.set_wall_clock(NOW + jump_ms)
    station.clean_up()
    station.clock.set_wall_clock(NOW)
    assert station.log.append(batch(by=Producer(1, 0, 0))).is_duplicate
    with pytest.raises(OutOfOrderSequenceNumber):
        station.log.append(batch(by=Producer(1, 0, 5)))
    station.clock.advance(61)
    station.clean_up()
    assert not station.log.append(batch(by=Producer(1, 0, 5), at=NOW + 61_000)).is_duplicate
    station.data_dir.close()


def test_a_clock_that_is_behind_refuses_timestamps_from_the_future_until_it_is_set(tmp_path: Path) -> None:
    """As in Apache Kafka: `message.timestamp.after.max.ms` is relative to the broker's clock."""
    station = Station(tmp_path / "data")
    station.clock.set_wall_clock(NOW - YEAR_MS)
    with pytest.raises(InvalidTimestamp, match="in the future"):
        station.log.append(batch(at=NOW))
    station.clock.set_wall_clock(NOW)
    assert station.log.append(batch(at=NOW)).base_offset == 0
    station.data_dir.close()


def test_log_append_time_uses_the_logs_clock(tmp_path: Path) -> None:
    station = Station(tmp_path / "data", message_timestamp_type="LogAppendTime")
    stamps = []
    for jump_ms in (0, YEAR_MS, 5, -YEAR_MS, 10):
        station.clock.set_wall_clock(NOW + jump_ms)
        stamps.append(station.log.append(batch(at=NOW)).log_append_time - NOW)
    assert stamps == [0, YEAR_MS, 5, -YEAR_MS, 10]
    station.data_dir.close()
    with DataDir(tmp_path / "data", station.clock) as data_dir:
        log = data_dir.open_partition(AT, LogConfig(message_timestamp_type="LogAppendTime"))
        found = offset_for_timestamp(log, NOW + 6)
        assert found is not None
        assert found.offset == 1
