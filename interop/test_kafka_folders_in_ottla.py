"""Folders that a real Apache Kafka broker wrote, opened by Ottla."""

import shutil
from pathlib import Path

import pytest
from tests.storage.making import offset_for_timestamp

from interop.conftest import KafkaFolder
from interop.kafka_clients import ConsumedRecord, Extent
from interop.kafka_content import TRANSACTIONS
from ottla.core.clock import SystemClock
from ottla.core.ids import TopicPartition
from ottla.records.batch import read_header
from ottla.records.encode import BatchBuilder
from ottla.records.reader import Record, RecordReader
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.partition_log import PartitionLog

FETCH_BYTES = 50_000


def read_all(at: TopicPartition, log: PartitionLog) -> list[ConsumedRecord]:
    records: list[ConsumedRecord] = []
    offset = log.start_offset
    while data := log.read(offset, FETCH_BYTES):
        records += [_consumed(at, record) for record in RecordReader(data, offset)]
        # Control batches and what compaction emptied hold no records, and yet take offsets.
        offset = last_offset(data) + 1
    return records


def _consumed(at: TopicPartition, record: Record) -> ConsumedRecord:
    return ConsumedRecord(
        topic=at.topic,
        partition=at.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        is_log_append_time=record.is_log_append_time,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


def last_offset(batches: memoryview) -> int:
    position = 0
    while position < len(batches):
        header = read_header(batches, position)
        position += header.size
    return header.last_offset


@pytest.fixture(params=["kafka_stopped", "kafka_killed"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> KafkaFolder:
    original: KafkaFolder = request.getfixturevalue(request.param)
    shutil.copytree(original.log_dir, tmp_path / "data")
    return KafkaFolder(tmp_path / "data", original.contents)


def test_every_partition_holds_the_same_records_and_offsets(folder: KafkaFolder) -> None:
    records: list[ConsumedRecord] = []
    extents = {}
    with DataDir(folder.log_dir, SystemClock()) as data_dir:
        for at, topic_id in data_dir.partitions():
            assert topic_id is not None
            log = data_dir.open_partition(at, LogConfig(), topic_id)
            records += read_all(at, log)
            extents[at.topic, at.partition] = Extent(log.start_offset, log.next_offset)
    assert extents == dict(folder.contents.extents)
    assert sorted(records, key=lambda r: (r.topic, r.partition, r.offset)) == list(folder.contents.records)


def markers(log: PartitionLog) -> list[tuple[int, int]]:
    """Offset and timestamp of every control record: look-ups by time find them as Kafka's do."""
    found, offset = [], log.start_offset
    while data := log.read(offset, FETCH_BYTES):
        position = 0
        while position < len(data):
            header = read_header(data, position)
            if header.is_control:
                found.append((header.base_offset, header.max_timestamp))
            position += header.size
        offset = header.last_offset + 1
    return found


def test_timestamp_lookups_match_a_full_scan(folder: KafkaFolder) -> None:
    with DataDir(folder.log_dir, SystemClock()) as data_dir:
        for at, _ in data_dir.partitions():
            log = data_dir.open_partition(at, LogConfig())
            mine = [r for r in folder.contents.records if (r.topic, r.partition) == (at.topic, at.partition)]
            there = sorted([*((r.offset, r.timestamp) for r in mine), *markers(log)])
            for timestamp in sorted({r.timestamp for r in mine})[:50]:
                expected = next((offset for offset, then in there if then >= timestamp), None)
                found = offset_for_timestamp(log, timestamp)
                assert (found.offset if found else None) == expected, (at, timestamp)


def test_kafkas_aborted_transactions_are_known(folder: KafkaFolder) -> None:
    at = TopicPartition(TRANSACTIONS, 0)
    with DataDir(folder.log_dir, SystemClock()) as data_dir:
        log = data_dir.open_partition(at, LogConfig())
        aborted = log.aborted_transactions(0, log.next_offset)
    assert aborted
    assert aborted == sorted(aborted, key=lambda txn: txn.first_offset)


def test_appending_continues_where_kafka_stopped(folder: KafkaFolder) -> None:
    with DataDir(folder.log_dir, SystemClock()) as data_dir:
        for at, _ in data_dir.partitions():
            log = data_dir.open_partition(at, LogConfig())
            builder = BatchBuilder()
            builder.append(SystemClock().now_ms(), b"key", b"from Ottla")
            appended = log.append(builder.build(), leader_epoch=max(log.epochs.latest, 0))
            assert appended.base_offset == folder.contents.extents[at.topic, at.partition].high_watermark
            assert [r.value for r in RecordReader(log.read(appended.base_offset, 1), appended.base_offset)] == [
                b"from Ottla"
            ]
