"""The power fails: of what was not synced, anything may be left.

Outcome: with `flush = "ack"` nothing that was acknowledged is lost. Under every policy what is found is a clean prefix
of what was appended: whole batches in order, from the start to some point, and at least to the last flush.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from ottla.core.clock import ManualClock
from ottla.storage.config import LogConfig
from ottla.storage.data_dir import DataDir

from .history import Batch, History, assert_same, assert_transactions
from .making import ROUNDS, leave, read_all
from .power import Recorder
from .writer import IDEMPOTENT, PARTITIONS, PLAIN, TRANSACTIONAL, Writer, next_of

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.core.ids import TopicPartition
    from ottla.storage.config import FlushPolicy
    from ottla.storage.partition_log import PartitionLog

STATES = int(500 * ROUNDS)
STEPS = 150


@dataclass
class Moment:
    """What was true of a partition from a certain change on."""

    time: int
    batches: list[Batch]
    durable_until: int = 0
    start_offset: int = 0
    about_to: str = ""
    sent: bytes | None = None
    cut_from: int = 0


@dataclass
class Past:
    """All that has been true of a partition, and where each producer was."""

    moments: list[Moment] = field(default_factory=lambda: [Moment(0, [])])

    def at(self, time: int) -> Moment:
        return [moment for moment in self.moments if moment.time <= time][-1]


class CarefulWriter(Writer):
    """A writer that acknowledges what the flush policy allows, and notes what was true at each change to the disk.

    Its flushes run when they are waited for, since threads would make a different recording each time.
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
        pending = partition.pending or {}
        about_to = pending.get("about", "")
        moment = Moment(self.recorder.now, list(partition.batches), start_offset=partition.start_offset)
        if log is not None and about_to != "delete":
            moment.durable_until = log.recovery_point
        moment.about_to = about_to
        moment.cut_from = pending.get("offset", 0)
        self.pasts[at].moments.append(moment)

    def begin_flush(self, at: TopicPartition) -> None:
        flush = self.data_dir.logs[at].begin_flush()
        if flush is not None:
            self.flushes.append((self.data_dir.logs[at], flush, None))  # type: ignore[arg-type]

    def finish_flushes(self) -> None:
        # Not in the order in which they began: each runs in a thread of its own.
        for log, flush, _ in reversed(self.flushes):
            flush.run()
            log.finish_flush(flush)
            for at in PARTITIONS:
                self.look_at(at)
        self.flushes.clear()

    def remove(self, doomed: Path) -> None:
        """Leave it: whether deleted files are still there makes no difference to anybody."""

    def reopen(self) -> None:
        super().reopen()
        for at in PARTITIONS:
            self.look_at(at)


def assert_clean_prefix(past: Past, time: int, log: PartitionLog) -> list[Batch]:
    """What was durable is there, with its bytes, and what else there is follows it without a gap."""
    moment = past.at(time)
    found = read_all(log)
    if moment.about_to == "delete" and not found:
        return []
    expected = [batch for batch in moment.batches if batch.last_offset >= log.start_offset]
    known = expected[: len(found)]
    assert_same(found[: len(known)], known)
    extra = found[len(known) :]
    # What was being appended when the power failed may be there as well.
    assert len(extra) <= (moment.about_to == "append")
    durable_until = moment.cut_from if moment.about_to == "truncate" else moment.durable_until
    lost = [batch for batch in expected[len(found) :] if batch.last_offset < min(durable_until, moment.durable_until)]
    assert not lost, f"{log!r} lost {len(lost)} durable batches"
    return known


def assert_usable(log: PartitionLog, known: list[Batch]) -> None:
    """Producers are where their last batches say, and appending goes on."""
    assert_transactions(read_all(log), log)
    for producer_id in (IDEMPOTENT, TRANSACTIONAL):
        sent = [b for b in known if b.data and b.data[43:51] == producer_id.to_bytes(8, "big")]
        if (
            sent
            and sent[-1].data
            and log.producers.producers[producer_id].batches[-1].last_offset == sent[-1].last_offset
        ):
            assert log.append(bytearray(sent[-1].data)).base_offset == sent[-1].base_offset
    for producer_id in (PLAIN, IDEMPOTENT, TRANSACTIONAL):
        made = next_of(log, producer_id)
        appended = log.append(bytearray(_batch(made)))
        assert not appended.is_duplicate
    assert read_all(log)[-1].last_offset == log.next_offset - 1


def _batch(by: object) -> bytearray:
    from .making import Producer, batch

    assert isinstance(by, Producer)
    return batch(b"after", by=by)


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
def test_what_is_durable_survives_and_nothing_is_mixed_up(in_memory: Path, flush: FlushPolicy, seed: int) -> None:
    recorder, writer = record(in_memory / "recorded", flush, seed)
    chance = random.Random(seed)
    for state in range(STATES):
        time = chance.randint(1, recorder.now)
        folder = in_memory / f"state {state}"
        recorder.lay_out(time, chance, folder)
        data_dir = DataDir(folder, ManualClock())
        for at in PARTITIONS:
            log = data_dir.open_partition(at, writer.config)
            known = assert_clean_prefix(writer.pasts[at], time, log)
            assert_usable(log, known)
        leave(data_dir)
        shutil.rmtree(folder)
