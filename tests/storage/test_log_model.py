"""Model test: a log behaves like a list of batches under any sequence of operations.

Segments and indexes are as small as they can be, so that every boundary is hit. To look further than CI does:
`pytest tests/storage/test_log_model.py --hypothesis-profile=long`.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from ottla.core.errors import DuplicateSequenceNumber, OffsetOutOfRange, OutOfOrderSequenceNumber
from ottla.core.sealing import SEAL_BYTES, Sealer
from ottla.records.batch import HEADER_BYTES, check_batch
from ottla.records.control import EndMarker
from ottla.records.reader import RecordReader
from ottla.storage.cipher import BatchCipher, BatchOwner
from ottla.storage.config import LogConfig
from ottla.storage.inspect import verify_segment
from ottla.storage.retention import delete_expired
from ottla.storage.rewrites.rewriting import put_in_place, rewrites_due
from ottla.storage.segment_files.read_buffers import ReadBuffers
from ottla.storage.truncation import truncate_to

from .encrypting import ONE_KEY, TOPIC
from .making import NOW, Partition, Producing, batch, headers, offset_for_timestamp, open_in, read_steps

if TYPE_CHECKING:
    from ottla.records.batch import BatchHeader
    from ottla.storage.partition_log import PartitionLog

PRODUCERS = (1, 2)
BIG = 1 << 20
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - waiting for the disk proves nothing here


@dataclass
class Stored:
    """A batch that is in the log, or was until retention took it."""

    sent: bytes
    data: bytes
    header: BatchHeader
    session: int
    """Which opening of the log it was appended in."""
    commits: bool | None = None
    """What a control batch says; None for data."""
    size: int = 0
    """How many bytes it takes in its file."""

    @property
    def base(self) -> int:
        return self.header.base_offset

    @property
    def end(self) -> int:
        return self.header.next_offset


@dataclass
class ModelSegment:
    base: int
    batches: list[Stored]
    began_ms: int
    intervals: set[int] = field(default_factory=set)
    """By which its batches were indexed."""

    @property
    def size(self) -> int:
        return sum(one.size for one in self.batches)

    @property
    def newest(self) -> int:
        return max([one.header.max_timestamp for one in self.batches], default=-1)


class LogModel(RuleBasedStateMachine):
    suffix = ".log"
    extra_bytes = 0
    """How much longer a batch is in its file."""

    def cipher(self) -> BatchCipher | None:
        return None

    @initialize(
        open_files=st.sampled_from([1, 2, 3, 16]),
        interval=st.sampled_from([0, 100, 300, 4096]),
        segment_bytes=st.sampled_from([1024, 1400, 100_000]),
    )
    def begin(self, open_files: int, interval: int, segment_bytes: int) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=IN_MEMORY))
        config = LogConfig(
            segment_bytes=segment_bytes,
            segment_index_bytes=1024,
            index_interval_bytes=interval,
            segment_ms=50_000,
            retention_ms=100_000,
            retention_bytes=-1,
            message_timestamp_after_max_ms=1 << 60,
            flush="os",
        )
        self.partition = Partition(self.folder / "p-0", config, open_files=open_files, cipher=self.cipher())
        self.segments = [ModelSegment(0, [], NOW)]
        self.start = 0
        self.epoch = 0
        self.history: list[Stored] = []  # all batches that ever were, but for truncated ones
        self.session = 0
        self.consumer: int | None = None
        self.has_all_snapshots = True

    @property
    def log(self) -> PartitionLog:
        return self.partition.log

    @property
    def config(self) -> LogConfig:
        return self.partition.config

    @property
    def batches(self) -> list[Stored]:
        return [one for segment in self.segments for one in segment.batches]

    @property
    def end(self) -> int:
        return self.batches[-1].end if self.batches else self.segments[-1].base

    # Appending

    @rule(
        values=st.lists(st.binary(max_size=40), min_size=1, max_size=4),
        ages=st.lists(st.integers(-30_000, 30_000) | st.just(1 << 62), min_size=4, max_size=4),
        compression=st.sampled_from([0, 0, 0, 1, 3, 4]),
        size=st.sampled_from([None, None, None, 200, 700]),
    )
    def append(self, values: list[bytes], ages: list[int], compression: int, size: int | None) -> None:
        at = [max(self.partition.clock.now_ms() - age, -1) for age in ages[: len(values)]]
        made = batch(*values, at=at, compression=compression, size=None if compression else size)
        self._append(made)

    @rule(producer=st.sampled_from(PRODUCERS), count=st.integers(1, 3), is_transactional=st.booleans())
    def append_as(self, producer: int, count: int, is_transactional: bool) -> None:  # noqa: FBT001
        epoch, sequence = self._next_sequence(producer)
        is_transactional = is_transactional or producer in self._open_transactions()
        by = Producing(producer, epoch, sequence, is_transactional)
        self._append(batch(*[b"%d" % producer] * count, at=self.partition.clock.now_ms(), by=by))

    @rule(producer=st.sampled_from(PRODUCERS))
    def begin_another_producer_epoch(self, producer: int) -> None:
        if producer in self._open_transactions():
            return
        epoch, _ = self._next_sequence(producer)
        self._append(batch(at=self.partition.clock.now_ms(), by=Producing(producer, epoch + 1, 0)))

    @rule(producer=st.sampled_from(PRODUCERS), back=st.integers(1, 6))
    def repeat_a_batch(self, producer: int, back: int) -> None:
        epoch, _ = self._next_sequence(producer)
        known = [
            one
            for one in self.history
            if one.header.producer_id == producer and one.header.producer_epoch == epoch and one.commits is None
        ]
        if len(known) < back or known[-back].base < self.segments[0].base:
            return
        one = known[-back]
        is_remembered = back == 1 or (back <= 5 and one.session == self.session)
        try:
            appended = self.log.append(bytearray(one.sent), self.epoch)
        except (DuplicateSequenceNumber, OutOfOrderSequenceNumber):
            assert not is_remembered
        else:
            assert appended.is_duplicate
            assert (appended.base_offset, appended.last_offset) == (one.base, one.end - 1)

    @rule(producer=st.sampled_from(PRODUCERS), gap=st.integers(1, 5))
    def leave_a_gap_in_the_sequence(self, producer: int, gap: int) -> None:
        epoch, sequence = self._next_sequence(producer)
        if any(one.header.producer_id == producer for one in self.batches):
            with pytest.raises(OutOfOrderSequenceNumber):
                self.log.append(batch(by=Producing(producer, epoch, sequence + gap)), self.epoch)

    @rule(producer=st.sampled_from(PRODUCERS), is_commit=st.booleans())
    def end_transaction(self, producer: int, is_commit: bool) -> None:  # noqa: FBT001
        if producer not in self._open_transactions():
            return
        epoch, _ = self._next_sequence(producer)
        must_roll = self._must_roll(78, self.partition.clock.now_ms())
        appended = self.log.append_end_marker(producer, epoch, EndMarker(is_commit, 0), self.epoch)
        self._store(b"", bytes(self._last_batch()), appended.base_offset, must_roll, commits=is_commit)

    def _last_batch(self) -> memoryview:
        return self.log.read(self.log.next_offset - 1, 1)

    def _append(self, made: bytearray) -> None:
        is_log_append_time = self.config.message_timestamp_type == "LogAppendTime"
        now = self.partition.clock.now_ms()
        must_roll = self._must_roll(len(made), now if is_log_append_time else check_batch(made).max_timestamp)
        sent = bytes(made)
        appended = self.log.append(made, self.epoch)
        assert not appended.is_duplicate
        assert appended.log_append_time == (now if is_log_append_time else -1)
        self._store(sent, bytes(made), appended.base_offset, must_roll)

    def _store(
        self,
        sent: bytes,
        data: bytes,
        base_offset: int,
        must_roll: bool,  # noqa: FBT001
        commits: bool | None = None,  # noqa: FBT001
    ) -> None:
        assert base_offset == self.end
        header = check_batch(data)
        assert header.base_offset == base_offset
        assert header.leader_epoch == self.epoch
        if must_roll:
            self.segments.append(ModelSegment(base_offset, [], self.partition.clock.now_ms()))
        elif not self.segments[-1].batches:
            self.segments[-1].began_ms = self.partition.clock.now_ms()
        stored = Stored(sent, data, header, self.session, commits, len(data) + self.extra_bytes)
        self.segments[-1].batches.append(stored)
        self.segments[-1].intervals.add(self.config.index_interval_bytes)
        self.history.append(stored)

    def _must_roll(self, size: int, max_timestamp: int) -> bool:
        active = self.segments[-1]
        if not active.batches:
            return False
        first = active.batches[0].header.max_timestamp
        age = max_timestamp - first if first >= 0 else self.partition.clock.now_ms() - active.began_ms
        indexes = self.log.segments[-1].indexes
        is_too_large = active.size + size + self.extra_bytes > self.config.segment_bytes
        return is_too_large or age > self.config.segment_ms or indexes.is_full

    def _next_sequence(self, producer: int) -> tuple[int, int]:
        known = [one.header for one in self.history if one.header.producer_id == producer]
        if not known:
            return 0, 0
        epoch = known[-1].producer_epoch
        data = [header for header in known if header.producer_epoch == epoch and not header.is_control]
        return epoch, (data[-1].last_sequence + 1 if data else 0)

    def _open_transactions(self) -> dict[int, int]:
        """Where the transactions began that are open."""
        began: dict[int, int] = {}
        for one in self.history:
            if one.commits is not None:
                began.pop(one.header.producer_id, None)
            elif one.header.is_transactional:
                began.setdefault(one.header.producer_id, one.base)
        return began

    @rule()
    def become_leader_again(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll()
        if self.segments[-1].batches:
            self.segments.append(ModelSegment(self.end, [], self.partition.clock.now_ms()))

    # Reading

    @rule(
        where=st.integers(-1, 200), max_bytes=st.sampled_from([0, 1, 60, 61, 100, 300, BIG]), limit=st.integers(0, 200)
    )
    def read(self, where: int, max_bytes: int, limit: int) -> None:
        offset = self.start + where % (self.end - self.start + 2) - (where < 0)
        until = None if limit > 150 else self.start + limit % (self.end - self.start + 2)
        if not self.start <= offset <= self.end:
            with pytest.raises(OffsetOutOfRange):
                self.log.read(offset, max_bytes, until)
            return
        self._check_read(offset, max_bytes, until)

    def _check_read(self, offset: int, max_bytes: int, until: int | None) -> int:
        found = bytes(self.log.read(offset, max_bytes, until))
        limit = self.end if until is None else min(until, self.end)
        wanted = [one for one in self.batches if one.end > offset and one.base < limit]
        if offset >= limit or not wanted:
            assert found == b""
            return offset
        count = len(headers(found))
        assert count >= 1
        assert found == b"".join(one.data for one in wanted[:count])
        assert count == 1 or len(found) <= max_bytes
        return wanted[count - 1].end

    @rule(max_bytes=st.sampled_from([0, 1, 61, 150, 500, BIG]))
    def read_on(self, max_bytes: int) -> None:
        """Like a consumer that continues where its last read ended."""
        if self.consumer is None or not self.start <= self.consumer <= self.end:
            self.consumer = self.start
        self.consumer = self._check_read(self.consumer, max_bytes, None)

    @rule(age=st.integers(-40_000, 40_000) | st.sampled_from([1 << 61, -(1 << 40)]))
    def look_for_a_timestamp(self, age: int) -> None:
        wanted = max(self.partition.clock.now_ms() - age, -2)
        self._check_timestamp(wanted)

    @rule(which=st.integers(0, 1000), near=st.sampled_from([-1, 0, 1]))
    def look_for_the_timestamp_of_a_record(self, which: int, near: int) -> None:
        if self.batches:
            records = list(RecordReader(self.batches[which % len(self.batches)].data, with_control=True))
            self._check_timestamp(records[which % len(records)].timestamp + near)

    def _check_timestamp(self, wanted: int) -> None:
        expected = next(
            (
                (record.timestamp, record.offset, one.header.leader_epoch)
                for one in self.batches
                for record in RecordReader(one.data, with_control=True)
                if record.offset >= self.start and record.timestamp >= wanted
            ),
            None,
        )
        assert offset_for_timestamp(self.log, wanted) == expected

    # Removing

    @rule(back=st.integers(0, 60))
    def truncate(self, back: int) -> None:
        offset = max(self.end - back, 0)
        truncate_to(self.log, offset)
        if offset >= self.end:
            return
        while len(self.segments) > 1 and self.segments[-1].base > offset:
            self.segments.pop()
        active = self.segments[-1]
        active.batches = [one for one in active.batches if one.end <= offset]
        self.history = [one for one in self.history if one.end <= max(offset, self.segments[0].base)]
        self.start = min(self.start, self.end)
        active.began_ms = self.partition.clock.now_ms() if not active.batches else active.began_ms

    @rule(part=st.integers(0, 10))
    def raise_start(self, part: int) -> None:
        offset = self.start + (self.end - self.start) * part // 10
        self.log.raise_start(offset)
        self.start = offset

    @rule(part=st.sampled_from([-1, 1]))
    def raise_start_too_far(self, part: int) -> None:
        with pytest.raises(OffsetOutOfRange):
            self.log.raise_start(self.start - 1 if part < 0 else self.end + 1)

    @rule(seconds=st.sampled_from([0, 1, 30, 60, 101]))
    def let_time_pass(self, seconds: int) -> None:
        self.partition.clock.advance(seconds)

    @precondition(lambda self: self.has_all_snapshots)  # else what only deleted segments knew of producers is lost
    @rule()
    def delete_expired(self) -> None:
        assume(all(one.newest >= 0 for one in self.segments if one.batches))  # else the file's own time decides
        now = self.partition.clock.now_ms()
        doomed = 0
        for number, segment in enumerate(self.segments):
            following = self.segments[number + 1].base if number + 1 < len(self.segments) else None
            is_below = following is not None and following <= self.start
            is_old = segment.batches and 0 <= self.config.retention_ms < now - segment.newest
            surplus = sum(one.size for one in self.segments[number:]) - self.config.retention_bytes
            is_surplus = segment.batches and self.config.retention_bytes >= 0 and surplus >= segment.size
            if is_below or is_old or is_surplus:
                doomed = number + 1
            else:
                break
        removed = delete_expired(self.log, now)
        if doomed == len(self.segments):
            self.segments.append(ModelSegment(self.end, [], now))
        logs = {f"{segment.base:020d}{self.suffix}.deleted" for segment in self.segments[:doomed]}
        assert {path.name for path in removed if self.suffix in path.name} == logs
        assert all(path.exists() for path in removed)
        for path in removed:
            path.unlink()
        del self.segments[:doomed]
        self.start = max(self.start, self.segments[0].base)

    @rule(
        interval=st.sampled_from([0, 100, 300]),
        segment_bytes=st.sampled_from([1024, 2000, 100_000]),
        retention_bytes=st.sampled_from([-1, 0, 500, 3000]),
        timestamps=st.sampled_from(["CreateTime", "CreateTime", "LogAppendTime"]),
    )
    def configure(self, interval: int, segment_bytes: int, retention_bytes: int, timestamps: str) -> None:
        self.partition.config = replace(
            self.config,
            index_interval_bytes=interval,
            segment_bytes=segment_bytes,
            retention_bytes=retention_bytes,
            message_timestamp_type=timestamps,  # type: ignore[arg-type]
        )
        self.log.use_config(self.config)

    # Leaving and coming back

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end

    @rule()
    def reopen_clean(self) -> None:
        self.partition.reopen_clean()
        self._reopened()

    @rule(
        is_flushed=st.booleans(),
        lost=st.sets(st.sampled_from([".index", ".timeindex", ".txnindex", "leader-epoch-checkpoint"])),
        torn=st.sampled_from([b"", b"", b"\0" * 30, b"\0" * 200, b"\xff" * 70]),
    )
    def reopen_unclean(self, is_flushed: bool, lost: set[str], torn: bytes) -> None:  # noqa: FBT001
        self.partition.kill()
        recovery_point = self.log.recovery_point if is_flushed else 0
        for path in self.partition.folder.iterdir():
            # Without a recovery point everything is replayed, and only then can a lost transaction index be rebuilt.
            if path.name.endswith(tuple(lost - ({".txnindex"} if is_flushed else set()))) and lost:
                path.unlink()
        if torn:
            with self.log.segments[-1].path.open("ab") as file:
                file.write(torn)
        self.partition.reopen_unclean(recovery_point)
        self._reopened()
        assert len(self.partition.names(".corrupt")) == (1 if torn else 0)
        for name in self.partition.names(".corrupt"):
            (self.partition.folder / name).unlink()

    @precondition(lambda self: not self.history or self.history[0].base >= self.segments[0].base)
    @rule(is_clean=st.booleans())
    def reopen_without_snapshots(self, is_clean: bool) -> None:  # noqa: FBT001
        self.partition.stop() if is_clean else self.partition.kill()
        for name in self.partition.names(".snapshot"):
            (self.partition.folder / name).unlink()
        self.partition.reopen_clean() if is_clean else self.partition.reopen_unclean()
        self.has_all_snapshots = False
        self._reopened()

    def _reopened(self) -> None:
        self.session += 1
        self.consumer = None
        self.segments[-1].began_ms = self.partition.clock.now_ms()
        for segment in self.segments:
            segment.intervals.add(self.config.index_interval_bytes)
        assert not self.partition.names(".tmp")

    # Invariants

    @invariant()
    def holds(self) -> None:
        self.the_log_is_what_was_appended()
        self.indexes_are_right()
        self.offset_indexes_are_kafkas()
        self.epochs_are_right()
        self.transactions_are_right()
        assert len(open_in(self.folder)) <= len(self.partition.files) + 1

    def the_log_is_what_was_appended(self) -> None:
        log = self.log
        assert (log.start_offset, log.next_offset) == (self.start, self.end)
        assert [segment.base_offset for segment in log.segments] == [segment.base for segment in self.segments]
        assert [segment.size for segment in log.segments] == [segment.size for segment in self.segments]
        assert log.size == sum(segment.size for segment in self.segments)
        visible = [one.data for one in self.batches if one.end > self.start]
        assert b"".join(read_steps(log, self.start, 250)) == b"".join(visible)
        assert log.recovery_point <= log.next_offset

    def indexes_are_right(self) -> None:
        for segment, model in zip(self.log.segments, self.segments, strict=True):
            position = 0
            at = {}
            for one in model.batches:
                at[one.end - 1 - model.base] = position
                position += one.size
            for relative, position in segment.indexes.offsets.entries():
                assert at.get(relative) == position
            stamps = {one.end - 1 - model.base: one.header.max_timestamp for one in model.batches}
            entries = segment.indexes.times.entries()
            assert all(stamps.get(relative) == timestamp for timestamp, relative in entries)
            assert entries == sorted(entries)
            assert segment.newest_timestamp == model.newest
            if segment is not self.log.segments[-1]:
                assert list(verify_segment(segment.path, segment.cipher and segment.cipher.open)) == []

    def offset_indexes_are_kafkas(self) -> None:
        """However often a segment was reopened, its index is as if written at once."""
        for segment, model in zip(self.log.segments, self.segments, strict=True):
            if len(model.intervals) > 1:
                continue  # what was indexed by which is not known here
            expected = []
            position = since_entry = 0
            for one in model.batches:
                if since_entry > max(model.intervals, default=0):
                    expected.append((one.end - 1 - model.base, position))
                    since_entry = 0
                since_entry += one.size
                position += one.size
            assert segment.indexes.offsets.entries() == expected

    def epochs_are_right(self) -> None:
        for one in self.batches:
            if one.base >= self.start:
                assert self.log.epochs.epoch_at(one.base) == one.header.leader_epoch
        assert self.log.epochs.latest <= self.epoch

    def transactions_are_right(self) -> None:
        opened = self._open_transactions()
        assert self.log.last_stable_offset == max(min(opened.values(), default=self.end), self.start)
        began: dict[int, int] = {}
        aborted = []
        for one in self.history:
            producer = one.header.producer_id
            if one.commits is None and one.header.is_transactional:
                began.setdefault(producer, one.base)
            elif one.commits is not None:
                first = began.pop(producer)
                stable = min(began.values(), default=one.end)
                if not one.commits and one.base >= self.segments[0].base:
                    aborted.append((producer, first, one.base, stable))
        assert [tuple(entry) for entry in self.log.aborted_transactions(0, BIG)] == sorted(
            aborted, key=lambda entry: entry[1]
        )

    def teardown(self) -> None:
        if hasattr(self, "partition"):
            self.partition.close()
            assert open_in(self.folder) == []
            shutil.rmtree(self.folder)


assert HEADER_BYTES == 61
TestLogModel = LogModel.TestCase


class EncryptedLogModel(LogModel):
    """The same, with keys that change and segments that are re-encrypted."""

    suffix = ".elog"
    extra_bytes = SEAL_BYTES

    def cipher(self) -> BatchCipher | None:
        self.sealer = Sealer(ONE_KEY)
        return BatchCipher(self.sealer, BatchOwner(TOPIC, 0), ReadBuffers())

    @rule()
    def rotate(self) -> None:
        self.sealer.use(self.sealer.ring.with_new_key())

    @rule()
    def encrypt_anew(self) -> None:
        newest = self.sealer.ring.newest
        due = rewrites_due(self.log, newest)
        if len(self.log.segments) > len(self.segments):
            self.segments.append(ModelSegment(self.end, [], self.partition.clock.now_ms()))
        for rewrite in due:
            rewrite.run()
            assert put_in_place(self.log, rewrite)
        for segment in self.segments:
            segment.intervals.add(self.config.index_interval_bytes)
        assert all(segment.oldest_key_id == newest for segment in self.log.segments)


TestEncryptedLogModel = EncryptedLogModel.TestCase
