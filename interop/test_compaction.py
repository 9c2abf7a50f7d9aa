"""Logs that Ottla compacted, read by Apache Kafka's own tools and served by a real broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.dump_types import ProblemKind
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_reader import consume_foreign
from interop.kafka_tools import dump, segment_files
from interop.test_kafka_folders_in_ottla import read_all
from ottla.core.clock import ManualClock
from ottla.core.ids import TopicId, TopicPartition
from ottla.records.compaction import TombstoneRule
from ottla.records.compression import Compression
from ottla.records.control import EndMarker
from ottla.records.encode import BatchBuilder
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.partition_log import PartitionLog
from ottla.storage.rewrites.compaction import Budget, Compaction, CompactionRule, find_dirty
from ottla.storage.rewrites.rewriting import put_in_place

AT = TopicPartition("compacted-by-ottla", 0)
CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=30_000, index_interval_bytes=512)
DAY_MS = 86_400_000
RULE = CompactionRule(0.0, 0, 1 << 60, DAY_MS)


def batch(number: int, clock: ManualClock, **producer: int | bool) -> bytearray:
    builder = BatchBuilder(Compression(number % 5))
    for record in range(1 + number % 7):
        value = None if (number + record) % 5 == 4 else b"value %d of batch %d " % (record, number) * (1 + number % 13)
        builder.append(clock.now_ms() - record, b"key-%d" % (number * 7 % 60 + record), value, [("h", b"1")])
    return builder.build(**producer)  # type: ignore[arg-type]


def fill(log: PartitionLog, clock: ManualClock) -> None:
    sequence = 0
    for number in range(400):
        clock.advance(0.25)
        log.append(batch(number, clock))
        if number % 10 == 0:
            appended = log.append(batch(number, clock, producer_id=7, producer_epoch=0, base_sequence=sequence))
            sequence += appended.last_offset - appended.base_offset + 1
        if number % 25 == 0:
            for producer_id in (1000 + number, 2000 + number):
                by = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
                log.append(batch(number, clock, **by))
                is_commit = producer_id < 2000
                log.append_end_marker(producer_id, 0, EndMarker(is_commit=is_commit, coordinator_epoch=0))
    log.roll()


def compact(log: PartitionLog, now_ms: int) -> None:
    dirty = find_dirty(log, 0, log.last_stable_offset, RULE, now_ms)
    compaction = Compaction(log, dirty, TombstoneRule(now_ms, DAY_MS), Budget(1 << 20))
    compaction.note_keys()
    assert compaction.error is None
    for rewrite in compaction.rewrites():
        rewrite.run()
        assert put_in_place(log, rewrite), rewrite.error


@pytest.fixture(scope="module", params=[1, 2], ids=["compacted once", "twice, after the tombstones' time"])
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    clock = ManualClock()
    path = tmp_path_factory.mktemp("ottla") / "data"
    with DataDir(path, clock) as data_dir:
        log = data_dir.open_partition(AT, CONFIG, TopicId.random())
        fill(log, clock)
        size = log.size
        for number in range(request.param):
            compact(log, clock.now_ms() + number * 2 * DAY_MS)
        assert log.size < size / 2
        # So that a consumer knows when it has read everything.
        log.append(batch(400, clock))
    return path


def test_dump_log_segments_finds_nothing_but_gaps(kafka: KafkaArtifacts, data: Path) -> None:
    dumped = dump(kafka, segment_files(data / str(AT)))
    assert dumped.problems
    # The tool goes by a batch's records. Of a producer's last one none may be left, and Kafka indexes it all the same.
    others = dumped.problems_except(ProblemKind.NON_CONSECUTIVE_OFFSETS)
    assert [problem for problem in others if not problem.detail.endswith("log timestamp: -1")] == []


@pytest.mark.parametrize("recovers", [False, True], ids=["believing-our-indexes", "recovering"])
def test_a_real_broker_serves_it(kafka: KafkaArtifacts, data: Path, tmp_path: Path, recovers: bool) -> None:
    contents = consume_foreign(kafka, data / str(AT), tmp_path, recovers=recovers)
    with DataDir(data, ManualClock()) as data_dir:
        log = data_dir.open_partition(AT, CONFIG)
        assert list(contents.records) == read_all(AT, log)
        assert contents.extents[AT.topic, AT.partition].high_watermark == log.next_offset
