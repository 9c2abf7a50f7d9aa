"""Folders that Ottla wrote, read by Apache Kafka's own tools and served by a real broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_reader import consume_foreign
from interop.kafka_tools import dump, segment_files
from interop.test_kafka_folders_in_ottla import read_all
from ottla.core.clock import ManualClock
from ottla.core.ids import TopicId, TopicPartition
from ottla.records.compression import Compression
from ottla.records.control import EndMarker
from ottla.records.encode import BatchBuilder
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.partition_log import PartitionLog

AT = TopicPartition("written-by-ottla", 0)
CONFIG = LogConfig(segment_bytes=30_000, index_interval_bytes=512)
STAMPED = TopicPartition("stamped-by-ottla", 0)
HEADERS = (("plain", b"1"), ("näme", b"\xff"), ("null", None))


def batch(number: int, clock: ManualClock, **producer: int | bool) -> bytearray:
    builder = BatchBuilder(Compression(number % 5))
    for record in range(1 + number % 7):
        key = None if record % 3 == 0 else b"key-%d" % record
        value = None if record % 5 == 4 else b"value %d of batch %d " % (record, number) * (1 + number % 13)
        # Not in order: a record may be older than the one before it.
        builder.append(clock.now_ms() - record % 4, key, value, HEADERS if record % 2 else ())
    return builder.build(**producer)  # type: ignore[arg-type]


def fill(log: PartitionLog, clock: ManualClock) -> None:
    sequence = 0
    for number in range(400):
        clock.advance(0.25)
        epoch = 0 if number < 200 else 3
        log.append(batch(number, clock), epoch)
        if number % 10 == 0:
            appended = log.append(batch(number, clock, producer_id=7, producer_epoch=0, base_sequence=sequence), epoch)
            sequence += appended.last_offset - appended.base_offset + 1
    for number in range(6):
        for producer_id in (20, 21):
            log.append(
                batch(
                    number + producer_id,
                    clock,
                    producer_id=producer_id + number * 10,
                    producer_epoch=1,
                    base_sequence=0,
                    is_transactional=True,
                ),
                leader_epoch=3,
            )
        log.append_end_marker(20 + number * 10, 1, EndMarker(is_commit=True, coordinator_epoch=2), leader_epoch=3)
        log.append_end_marker(21 + number * 10, 1, EndMarker(is_commit=False, coordinator_epoch=2), leader_epoch=3)


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, clock: ManualClock) -> Iterator[Path]:
    """A data folder after a clean stop."""
    path = tmp_path_factory.mktemp("ottla") / "data"
    with DataDir(path, clock) as data_dir:
        fill(data_dir.open_partition(AT, CONFIG, TopicId.random()), clock)
        stamped = LogConfig(message_timestamp_type="LogAppendTime", segment_bytes=20_000, index_interval_bytes=512)
        log = data_dir.open_partition(STAMPED, stamped, TopicId.random())
        for number in range(200):
            clock.advance(0.01)
            log.append(batch(number, clock))
    return path


def test_dump_log_segments_finds_nothing_wrong(kafka: KafkaArtifacts, data: Path) -> None:
    folders = [data / str(AT), data / str(STAMPED)]
    dumped = dump(kafka, segment_files(*folders))
    assert dumped.problems == ()
    assert len(dumped.batches) > 5
    assert sum(len(entries) for entries in dumped.offset_entries.values()) > 50
    assert sum(len(entries) for entries in dumped.time_entries.values()) > 30
    assert sum(len(entries) for entries in dumped.aborted.values()) == 6
    assert dumped.producers


@pytest.mark.parametrize("recovers", [False, True], ids=["believing-our-indexes", "recovering"])
@pytest.mark.parametrize("at", [AT, STAMPED], ids=str)
def test_a_real_broker_serves_what_ottla_wrote(
    kafka: KafkaArtifacts, data: Path, tmp_path: Path, at: TopicPartition, recovers: bool
) -> None:
    contents = consume_foreign(kafka, data / str(at), tmp_path, recovers=recovers)
    with DataDir(data, ManualClock()) as data_dir:
        log = data_dir.open_partition(at, CONFIG)
        assert list(contents.records) == read_all(at, log)
        assert contents.extents[at.topic, at.partition].high_watermark == log.next_offset


def test_a_killed_brokers_folder_is_adopted_by_a_real_broker(kafka: KafkaArtifacts, tmp_path: Path) -> None:
    clock = ManualClock()
    data_dir = DataDir(tmp_path / "data", clock)
    log = data_dir.open_partition(AT, CONFIG)
    fill(log, clock)
    # Nothing is closed: the files are what they would be after SIGKILL.
    contents = consume_foreign(kafka, log.folder, tmp_path / "kafka", recovers=True)
    assert list(contents.records) == read_all(AT, log)
    data_dir.close()
