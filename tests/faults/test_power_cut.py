"""Power cuts: unsynced data may be in any state.

Outcome: with `flush = "ack"` nothing that was acknowledged is lost. Under every policy what is found is a clean prefix
of what was appended: whole batches in order, from the start to some point, and at least to the last flush. The start
does not go back.
"""

from __future__ import annotations

import os
import random
import shutil
from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ottla.core.clock import ManualClock
from ottla.records.batch import read_header
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir

from .history import Batch, History, assert_same, assert_transactions, sent_data
from .making import ROUNDS, batch, leave, read_all
from .power import Recorder
from .writer import IDEMPOTENT, PARTITIONS, PLAIN, TRANSACTIONAL, Writer, next_of

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.core.ids import TopicPartition
    from ottla.storage.config import FlushPolicy
    from ottla.storage.partition_log import PartitionLog

STATES = int(300 * ROUNDS)
STEPS = 150


class Moment(NamedTuple):
    """The state of a partition from a certain change on, and the action in progress."""

    time: int
    batches: list[Batch]
    durable_until: int
    start_offset: int
    about: dict[str, Any]


class Past:
    """All states of a partition over time."""

    def __init__(self) -> None:
        self.moments = [Moment(0, [], 0, 0, {})]

    def at(self, time: int) -> Moment:
        return self.moments[bisect_right(self.moments, time, key=itemgetter(0)) - 1]


class CarefulWriter(Writer):
    """A writer that acknowledges by the flush policy, and records the state at each change to the disk.

    Its flushes run when awaited, because threads would make recordings differ.
    """

    weights = (60, 8, 10, 8, 3, 8, 2, 6, 2)

    def __init__(self, folder: Path, recorder: Recorder, config: LogConfig) -> None:
        self.recorder = recorder
        self.history = History()
        self.pasts = {at: Past() for at in PARTITIONS}
        super().__init__(folder, self.note, config)

    def note(self, line: bytes) -> None:
        self.history.learn([line])
        for at in PARTITIONS:
            self.look_at(at)

    def look_at(self, at: TopicPartition) -> None:
        partition = self.history.partition(str(at))
        log = self.data_dir.logs.get(at)
        about = partition.pending or {}
        is_doomed = log is None or about.get("about") == "delete"
        durable_until = 0 if log is None or is_doomed else log.recovery_point
        if about.get("about") == "truncate":
            durable_until = min(durable_until, about["offset"])
        self.pasts[at].moments.append(
            Moment(self.recorder.now, list(partition.batches), durable_until, partition.start_offset, about)
        )

    def begin_flush(self, at: TopicPartition) -> None:
        flush = self.data_dir.logs[at].begin_flush()
        if flush is not None:
            self.flushes.append((self.data_dir.logs[at], flush, None))  # type: ignore[arg-type]

    def finish_flushes(self) -> None:
        # Not in the order of their start: each runs in a separate thread.
        for log, flush, _ in reversed(self.flushes):
            flush.run()
            log.finish_flush(flush)
            for at in PARTITIONS:
                self.look_at(at)
        self.flushes.clear()

    def remove(self, doomed: Path) -> None:
        """Ignore: leftover deleted files make no difference."""

    def reopen(self) -> None:
        super().reopen()
        for at in PARTITIONS:
            self.look_at(at)


def assert_clean_prefix(past: Past, time: int, log: PartitionLog) -> None:
    """Durable batches are there unchanged, and any others follow without a gap."""
    moment = past.at(time)
    about_to = moment.about.get("about")
    found = read_all(log)
    if about_to == "delete" and not found:
        return
    assert log.start_offset <= moment.start_offset or about_to == "start"
    assert log.start_offset >= min(moment.start_offset, log.next_offset) or about_to == "truncate", (
        "the start went back"
    )
    expected = [batch for batch in moment.batches if batch.last_offset >= log.start_offset]
    assert_same(found[: len(expected)], expected[: len(found)])
    for extra in found[len(expected) :]:
        # The batch being appended at the power cut may be there, too; nothing else.
        assert about_to == "append"
        assert Batch(sent_data(moment.about), extra.base_offset, extra.last_offset).is_at(extra)
        assert len(found) == len(expected) + 1
    lost = [batch for batch in expected[len(found) :] if batch.last_offset < moment.durable_until]
    assert not lost, f"{log!r} lost {len(lost)} durable batches"


def assert_usable(log: PartitionLog) -> None:
    """Producer states match their last batches, and appending works."""
    found = read_all(log)
    assert_transactions(found, log)
    headers = [(read_header(read.data), read) for read in found]
    last = {header.producer_id: read for header, read in headers if not header.is_control}
    for producer_id in (IDEMPOTENT, TRANSACTIONAL):
        if producer_id in last:
            repeated = log.append(bytearray(last[producer_id].data))
            assert repeated.is_duplicate
            assert repeated.base_offset == last[producer_id].base_offset
    for producer_id in (PLAIN, IDEMPOTENT, TRANSACTIONAL):
        assert not log.append(batch(b"after", by=next_of(log, producer_id))).is_duplicate
    assert len(read_all(log)) == len(found) + 3


@pytest.fixture
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", os.fstat)


def record(folder: Path, flush: FlushPolicy, seed: int) -> tuple[Recorder, CarefulWriter]:
    chance = random.Random(seed)
    recorder = Recorder(folder)
    config = LogConfig(
        segment_bytes=3000, index_interval_bytes=400, retention_bytes=12_000, retention_ms=-1, flush=flush
    )
    with recorder.recording():
        writer = CarefulWriter(folder, recorder, config)
        for _ in range(STEPS):
            writer.go_on(chance)
            if flush == "ack" and chance.random() < 0.3:
                for at in PARTITIONS:
                    writer.begin_flush(at)
        if chance.random() < 0.5:
            writer.reopen()
    leave(writer.data_dir)
    return recorder, writer


@pytest.mark.usefixtures("no_waiting_for_the_disk")
@pytest.mark.parametrize(("flush", "seed"), [("ack", 0), ("ack", 1), ("ack", 2), ("interval", 3), ("os", 4)])
def test_durable_batches_survive_and_the_log_is_a_clean_prefix(in_memory: Path, flush: FlushPolicy, seed: int) -> None:
    recorder, writer = record(in_memory / "recorded", flush, seed)
    chance = random.Random(seed)
    for state in range(STATES):
        time = chance.randint(1, recorder.now)
        folder = in_memory / f"state {state}"
        recorder.lay_out(time, chance, folder)
        data_dir = DataDir(folder, ManualClock())
        for at in PARTITIONS:
            log = data_dir.open_partition(at, writer.config)
            assert_clean_prefix(writer.pasts[at], time, log)
            assert_usable(log)
        leave(data_dir)
        shutil.rmtree(folder)
