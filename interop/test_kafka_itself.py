"""Tests of the harness on Kafka's files, and of the rules in docs/kafka-files.md on a real broker."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from interop.conftest import KafkaFolder
from interop.dump_types import Dump, DumpedBatch, OffsetEntry, ProblemKind, TimeEntry
from interop.kafka_artifacts import KafkaArtifacts, ToolMissingError, kafka_artifacts
from interop.kafka_clients import Extent
from interop.kafka_content import CODECS, COMPRESSED, KINDS, RECOMPRESSED, SMALL_SEGMENTS, TRANSACTIONS
from interop.kafka_reader import consume_foreign
from interop.kafka_tools import dump, segment_files

FIRST = "00000000000000000000"
INDEX_BYTES, TIME_INDEX_BYTES = 65536, 65532
Damage = tuple[str, str, Callable[[bytes], bytes]]  # folder, suffix, change
CHECKPOINTS = ("recovery-point", "replication", "log-start", "cleaner")


def partitions(folder: KafkaFolder) -> list[Path]:
    return [folder.partition(topic, partition) for topic, partition in folder.contents.extents]


@pytest.fixture(scope="module")
def dumped(kafka: KafkaArtifacts, kafka_stopped: KafkaFolder) -> Dump:
    return dump(kafka, segment_files(*partitions(kafka_stopped)))


def test_a_missing_tool_is_a_one_line_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolMissingError, match="Java is not installed"):
        kafka_artifacts.__wrapped__()


def test_a_stopped_folder_has_the_files_of_a_clean_stop(kafka_stopped: KafkaFolder) -> None:
    log_dir = kafka_stopped.log_dir
    assert (log_dir / ".kafka_cleanshutdown").read_text().startswith('{"version":0,"brokerEpoch":')
    assert not (log_dir / ".lock").exists()
    for name in CHECKPOINTS:
        assert (log_dir / f"{name}-offset-checkpoint").read_text().startswith("0\n")
    for folder in partitions(kafka_stopped):
        assert (folder / "partition.metadata").read_text().startswith("version: 0\ntopic_id: ")
        assert (folder / "leader-epoch-checkpoint").exists()
    assert list(kafka_stopped.partition(TRANSACTIONS).glob("*.txnindex"))
    assert list(kafka_stopped.partition("deleted-records", 1).glob("*.log.deleted"))
    assert list(log_dir.glob("given-up-0.*-delete"))


def test_a_killed_folder_has_indexes_of_full_length(kafka_killed: KafkaFolder) -> None:
    assert not (kafka_killed.log_dir / ".kafka_cleanshutdown").exists()
    assert (kafka_killed.log_dir / ".lock").stat().st_size == 0
    for folder in partitions(kafka_killed):
        active = max(folder.glob("*.log"))
        assert active.with_suffix(".index").stat().st_size == INDEX_BYTES
        assert active.with_suffix(".timeindex").stat().st_size == TIME_INDEX_BYTES


def test_the_tool_finds_nothing_wrong_but_the_gaps_of_compaction(dumped: Dump) -> None:
    assert dumped.exit_code == 0
    assert not dumped.problems_except(ProblemKind.NON_CONSECUTIVE_OFFSETS)
    assert {file.parent.name for file in map(_file_of, dumped.problems)} == {"compacted-0"}


def test_the_tool_and_the_consumer_agree(kafka_stopped: KafkaFolder, dumped: Dump) -> None:
    starts = {place: extent.log_start_offset for place, extent in kafka_stopped.contents.extents.items()}
    read = sorted(
        (*place, record.offset, record.timestamp, record.key_size, record.value_size, len(record.header_keys))
        for file, batches in dumped.batches.items()
        for batch in batches
        for record in batch.records
        if record.control is None and record.offset >= starts[place := _place(file)]
    )
    consumed = [
        (r.topic, r.partition, r.offset, r.timestamp, _size(r.key), _size(r.value), len(r.headers))
        for r in kafka_stopped.contents.records
    ]
    assert read == consumed


def test_the_content_is_of_every_kind(kafka_stopped: KafkaFolder, dumped: Dump) -> None:
    batches = [batch for found in dumped.batches.values() for batch in found]
    assert {batch.compression for batch in batches} == set(CODECS)
    assert {batch.timestamp_type for batch in batches} == {"CreateTime", "LogAppendTime"}
    assert {record.control for batch in batches for record in batch.records} == {None, "COMMIT", "ABORT"}
    assert any(batch.count == 0 for batch in batches)
    assert any(batch.delete_horizon_ms for batch in batches)
    assert any(batch.producer_id >= 0 and not batch.is_transactional for batch in batches)
    assert any(batch.size > 1 << 20 for batch in batches)
    assert any(record.timestamp < -1 for batch in batches for record in batch.records)
    records = kafka_stopped.contents.records
    assert {record.key for record in records} >= {None, b""}
    assert {record.value for record in records} >= {None, b""}
    assert any(value is None for record in records for _, value in record.headers)
    assert len(list(kafka_stopped.partition(COMPRESSED).glob("*.log"))) > 2
    assert any(entry.current_txn_first_offset for found in dumped.producers.values() for entry in found)
    assert kafka_stopped.contents.extents["deleted-records", 1].log_start_offset > 0
    assert kafka_stopped.contents.extents["deleted-records", 2] == Extent(800, 800)
    assert kafka_stopped.contents.extents["empty", 0] == Extent(0, 0)


def test_the_indexes_follow_the_documented_rules(dumped: Dump) -> None:
    for log, batches in dumped.batches.items():
        is_small = not log.parent.name.startswith(("large-", "__"))
        interval = int(SMALL_SEGMENTS["index.interval.bytes"]) if is_small else 4096
        offsets, times = _documented_indexes(int(log.stem), batches, interval)
        assert list(dumped.offset_entries[log.with_suffix(".index")]) == offsets, log
        assert list(dumped.time_entries[log.with_suffix(".timeindex")]) == times, log


def test_every_kind_of_damage_is_found(kafka: KafkaArtifacts, kafka_stopped: KafkaFolder, tmp_path: Path) -> None:
    damage: dict[ProblemKind, Damage] = {
        ProblemKind.INDEX_MISMATCH: (f"{COMPRESSED}-0", ".index", lambda b: _add(b, 8, ">i", 1)),
        ProblemKind.TIMESTAMP_MISMATCH: (f"{COMPRESSED}-1", ".timeindex", lambda b: _add(b, 12, ">q", 1)),
        ProblemKind.TIMESTAMP_OUT_OF_ORDER: (f"{COMPRESSED}-2", ".timeindex", lambda b: b[:12] + b),
        ProblemKind.OFFSET_NOT_FOUND: (f"{COMPRESSED}-3", ".timeindex", lambda b: _add(b, 20, ">i", -1)),
        ProblemKind.UNREAD_ENTRIES: (f"{COMPRESSED}-4", ".index", lambda b: b + bytes(16)),
        ProblemKind.INVALID_BATCH: (f"{KINDS}-0", ".log", lambda b: _add(b, 100, ">B", 1)),
        ProblemKind.TRAILING_BYTES: (f"{KINDS}-1", ".log", lambda b: b + b"torn"),
        ProblemKind.NON_CONSECUTIVE_OFFSETS: ("large-0", ".log", _without_second_batch),
        ProblemKind.CORRUPT_SNAPSHOT: (f"{RECOMPRESSED}lz4-0", ".snapshot", lambda b: _add(b, 5, ">B", 1)),
        ProblemKind.CORRUPT_TXN_INDEX: (f"{TRANSACTIONS}-0", ".txnindex", lambda b: b"\xff" + b[1:]),
    }
    for folder, suffix, change in damage.values():
        shutil.copytree(kafka_stopped.log_dir / folder, tmp_path / folder)
        file = min((tmp_path / folder).glob(f"*{suffix}"))
        file.write_bytes(change(file.read_bytes()))
    shutil.copytree(kafka_stopped.partition("append-time"), tmp_path / "append-time-0")
    (tmp_path / "append-time-0" / f"{FIRST}.timeindex").unlink()
    for suffix in (".index", ".timeindex"):
        (tmp_path / "large-0" / f"{FIRST}{suffix}").write_bytes(b"")  # they would point past the end

    found = dump(kafka, segment_files(*tmp_path.iterdir()))

    assert found.exit_code == 0
    assert {problem.kind for problem in found.problems} >= {*damage, ProblemKind.MISSING_INDEX}
    for kind, (folder, suffix, _) in damage.items():
        if kind is not ProblemKind.CORRUPT_SNAPSHOT:  # the tool does not say which
            files = [_file_of(problem) for problem in found.problems if problem.kind is kind]
            assert {(file.parent.name, file.suffix) for file in files} == {(folder, suffix)}, kind


def test_a_failing_tool_is_detected(kafka: KafkaArtifacts, kafka_stopped: KafkaFolder, tmp_path: Path) -> None:
    copy = shutil.copytree(kafka_stopped.partition(COMPRESSED), tmp_path / f"{COMPRESSED}-0")
    index = copy / f"{FIRST}.index"
    index.write_bytes(index.read_bytes()[:-1])

    found = dump(kafka, [index])

    assert found.exit_code == 1
    assert [problem.kind for problem in found.problems] == [ProblemKind.CRASHED]
    assert "CorruptIndexException" in found.problems[0].detail


@pytest.mark.parametrize("recovers", [False, True])
def test_another_broker_takes_a_partition_over(
    kafka: KafkaArtifacts, kafka_stopped: KafkaFolder, tmp_path: Path, *, recovers: bool
) -> None:
    contents = consume_foreign(kafka, kafka_stopped.partition(TRANSACTIONS), tmp_path, recovers=recovers)

    ours = [r for r in kafka_stopped.contents.records if (r.topic, r.partition) == (TRANSACTIONS, 0)]
    assert list(contents.records) == ours


def _documented_indexes(
    base_offset: int, batches: tuple[DumpedBatch, ...], interval: int
) -> tuple[list[OffsetEntry], list[TimeEntry]]:
    offsets: list[OffsetEntry] = []
    times = [TimeEntry(-1, base_offset)]
    latest = times[0]
    unindexed_bytes = 0
    for batch in batches:
        if batch.max_timestamp > latest.timestamp:
            latest = TimeEntry(batch.max_timestamp, batch.last_offset)
        if unindexed_bytes > interval:
            offsets.append(OffsetEntry(batch.last_offset, batch.position))
            if latest.timestamp > times[-1].timestamp:
                times.append(latest)
            unindexed_bytes = 0
        unindexed_bytes += batch.size
    if latest.timestamp > times[-1].timestamp:
        times.append(latest)
    return offsets, times[1:]


def _add(content: bytes, at: int, form: str, difference: int) -> bytes:
    (value,) = struct.unpack_from(form, content, at)
    changed = bytearray(content)
    struct.pack_into(form, changed, at, (value + difference) % (1 << 8 * struct.calcsize(form)))
    return bytes(changed)


def _without_second_batch(log: bytes) -> bytes:
    (length,) = struct.unpack_from(">i", log, 8)
    second = length + 12
    (length,) = struct.unpack_from(">i", log, second + 8)
    return log[:second] + log[second + length + 12 :]


def _place(file: Path) -> tuple[str, int]:
    topic, _, partition = file.parent.name.rpartition("-")
    return topic, int(partition)


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _file_of(problem: object) -> Path:
    file = getattr(problem, "file", None)
    assert isinstance(file, Path)
    return file
