"""A data folder read without a broker and without a session of Spark's."""

import json
import random
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")

from ottla import Admin, Consumer, Producer, TopicPartition
from ottla.broker.embedded import EmbeddedBroker
from ottla.core.errors import ConfigError
from ottla.spark.errors import DataLoss
from ottla.spark.reader import scanning
from ottla.spark.reader.filters import Wanted
from ottla.spark.reader.log_files import partitions_in, read_checkpoint
from ottla.spark.reader.options import SourceOptions, parse_source
from ottla.spark.reader.rows import spark_schema


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Batches of ten records each, enough of them that some have index entries."""
    data_dir = tmp_path_factory.mktemp("data")
    with EmbeddedBroker(data_dir) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t", partitions=1)
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(2000):
                producer.send("t", b"%0100d" % number, timestamp_ms=1000 + number)
                if number % 10 == 9:
                    producer.flush()
        admin.delete_records({TopicPartition("t", 0): 5})
    return data_dir


def options(folder: Path, **given: str) -> SourceOptions:
    return parse_source({"path": str(folder), "subscribe": "t", **given}, is_stream=False)


def scan(given: SourceOptions, wanted: Wanted | None = None) -> list[int]:
    pieces = scanning.plan_scan(given, wanted or Wanted())
    return [
        offset
        for piece in pieces
        for rows in scanning.scan_piece(piece, given, spark_schema(with_headers=False))
        for offset in rows.column("offset").to_pylist()
    ]


def test_pieces_of_a_segment_cover_every_offset_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "_PIECE_BYTES", 20_000)

    assert len(scanning.plan_scan(options(folder), Wanted())) > 8
    assert scan(options(folder)) == list(range(5, 2000))


@pytest.mark.parametrize(("start", "end"), [(5, 6), (777, 1234), (1999, 2000), (123, 124)])
def test_any_range_of_offsets_is_found(folder: Path, start: int, end: int) -> None:
    bounds = {
        "startingOffsets": json.dumps({"t": {"0": start}}),
        "endingOffsets": json.dumps({"t": {"0": end}}),
    }

    assert scan(options(folder, **bounds)) == list(range(start, end))
    assert scan(options(folder), Wanted(first_offset=start, end_offset=end)) == list(range(start, end))


def test_times_are_found_to_the_record(folder: Path) -> None:
    assert scan(options(folder, startingTimestamp="2994")) == list(range(1994, 2000))
    assert scan(options(folder), Wanted(from_time_ms=2994)) == list(range(1994, 2000))
    with pytest.raises(ConfigError, match="t-0 has no record at or after 9999 ms"):
        scan(options(folder, startingTimestamp="9999"))


def test_records_above_the_high_watermark_are_left_out(folder: Path) -> None:
    watermarks = folder / "replication-offset-checkpoint"
    watermarks.write_text("0\n1\nt 0 1990\n")
    try:
        [found] = [each for each in partitions_in(str(folder)) if each.at.topic == "t"]
    finally:
        watermarks.unlink()

    assert (found.start, found.end) == (5, 1990)


class OnPurpose(Exception):
    """Raised to abort a transaction."""


def write_transactions(servers: str, stack: ExitStack) -> None:
    """Interleaved transactions of three producers, with other records in between. The last ones stay open."""
    chance = random.Random(3)
    plain = stack.enter_context(Producer(servers))
    producers = [stack.enter_context(Producer(servers, transactional_id=f"{each}")) for each in range(3)]
    open_now: dict[Producer, AbstractContextManager[None]] = {}
    for number in range(200):
        producer = chance.choice([plain, *producers])
        if producer is not plain and producer not in open_now:
            open_now[producer] = producer.transaction()
            open_now[producer].__enter__()
        producer.send("t", b"%020000d" % number)
        producer.flush()
        if producer in open_now and chance.random() < 0.3:
            end = open_now.pop(producer).__exit__
            if chance.random() < 0.5:
                end(None, None, None)
            else:
                with suppress(OnPurpose):
                    end(OnPurpose, OnPurpose(), None)
    assert open_now
    for transaction in open_now.values():
        stack.push(transaction)


def consumed(servers: str, isolation: str) -> list[int]:
    options = {"auto_offset_reset": "earliest", "isolation_level": isolation}
    with Consumer(servers, ["t"], **options) as consumer:  # type: ignore[arg-type]
        offsets: list[int] = []
        while records := consumer.poll(timeout_ms=300):
            offsets += [record.offset for record in records]
    return offsets


def test_a_scan_filters_like_a_consumer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "_PIECE_BYTES", 200_000)
    with EmbeddedBroker(tmp_path / "data") as broker, ExitStack() as stack:
        servers = broker.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("t", partitions=1, configs={"segment.bytes": "1048576"})
        write_transactions(servers, stack)
        for isolation in ("read_committed", "read_uncommitted"):
            given = options(tmp_path / "data", **{"kafka.isolation.level": isolation})
            assert scan(given) == consumed(servers, isolation)
        assert len(consumed(servers, "read_committed")) < len(consumed(servers, "read_uncommitted")) == 200

        # Undecided records are beyond the end.
        last = consumed(servers, "read_uncommitted")[-1]
        bounds = {"endingOffsets": json.dumps({"t": {"0": last + 1}}), "kafka.isolation.level": "read_committed"}
        with pytest.raises(DataLoss, match=f"t-0: offset {last} is past the end, which is"):
            scan(options(tmp_path / "data", **bounds))


def test_encrypted_segments_and_strange_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "00000000000000000000.elog").touch()
    with pytest.raises(ConfigError, match="is encrypted; read it through its broker"):
        partitions_in(str(tmp_path))
    with pytest.raises(ConfigError, match="is not a folder"):
        partitions_in(str(tmp_path / "nowhere"))
    (tmp_path / "checkpoint").write_text("0\n1\nnonsense\n")
    with pytest.raises(ConfigError, match="is not an offset checkpoint"):
        read_checkpoint(tmp_path / "checkpoint")
