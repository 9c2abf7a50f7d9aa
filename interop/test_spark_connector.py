"""`format("ottla")` beside `format("kafka")`, Spark's own connector: the same rows, offsets, tasks and checkpoints."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from interop.kafka_artifacts import ToolMissingError
from interop.spark_connector import connector_jars
from ottla import Admin, Producer
from ottla.broker.embedded import EmbeddedBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(600)
pytest.importorskip("pyspark", reason="pyspark is not installed")

THE_START_MS = 1_700_000_000_000
BOTH = ("kafka", "ottla")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    import ottla.spark

    try:
        jars = connector_jars()
    except ToolMissingError as missing:
        pytest.skip(str(missing))
    config = {"spark.jars": jars, "spark.sql.shuffle.partitions": "1"}
    session = ottla.spark.session("interop", master="local[2]", config=config)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def topic(servers: str) -> str:
    """All that a record can be, in three partitions, one of them empty, and every compression."""
    with Admin(servers) as admin:
        admin.create_topic("mixed", partitions=3)
    for round_, compression in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        with Producer(servers, compression=compression) as producer:
            for number in range(200):
                producer.send(
                    "mixed",
                    None if number % 17 == 0 else b"value %d" % number * (number % 5),
                    key=None if number % 3 == 0 else b"key %d" % number,
                    partition=number % 2,
                    timestamp_ms=THE_START_MS + 1000 * round_ + number,
                    headers=[("h", b"1"), ("h", None), ("é", b"")][: number % 4],
                )
    return "mixed"


def load(spark: SparkSession, source: str, servers: str, *, is_stream: bool = False, **options: object) -> DataFrame:
    reader = (spark.readStream if is_stream else spark.read).format(source)
    reader = reader.option("kafka.bootstrap.servers", servers).option("includeHeaders", "true")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.orderBy("topic", "partition", "offset").collect()]


@pytest.mark.parametrize(
    "options",
    [
        {"subscribe": "mixed"},
        {"subscribePattern": "mi.*"},
        {"assign": '{"mixed":[1,2]}'},
        {"subscribe": "mixed", "startingOffsets": '{"mixed":{"0":3,"1":-2,"2":0}}'},
        {"subscribe": "mixed", "endingOffsets": '{"mixed":{"0":77,"1":-1,"2":-1}}'},
        {"assign": '{"mixed":[0,1]}', "startingTimestamp": THE_START_MS + 2500},
        {"subscribe": "mixed", "endingTimestamp": THE_START_MS + 2050},
        {"assign": '{"mixed":[0]}', "startingOffsetsByTimestamp": json.dumps({"mixed": {"0": THE_START_MS + 3001}})},
        {"subscribe": "mixed", "minPartitions": 7},
    ],
    ids=",".join,
)
def test_a_batch_read_has_the_same_rows_and_tasks(
    spark: SparkSession, servers: str, topic: str, options: dict[str, Any]
) -> None:
    theirs, ours = (load(spark, source, servers, **options) for source in BOTH)

    assert topic == "mixed"
    assert ours.schema == theirs.schema
    assert rows(ours) == rows(theirs)
    assert rows(theirs)
    # The connector creates a task for an empty partition.
    empty = 1 if "minPartitions" not in options and "0" not in options.get("assign", "") else 0
    assert abs(ours.rdd.getNumPartitions() - theirs.rdd.getNumPartitions()) <= empty


class AbortedError(Exception):
    """Raised in a transaction, which is aborted by it."""


def test_both_read_the_same_of_transactions(spark: SparkSession, servers: str) -> None:
    with Admin(servers) as admin:
        admin.create_topic("transactions")
    counts = {}
    with (
        Producer(servers, transactional_id="here") as here,
        Producer(servers, transactional_id="there", transaction_timeout_ms=600_000) as there,
    ):
        for number in range(20):
            with suppress(AbortedError), here.transaction():
                here.send("transactions", b"%d" % number)
                if number % 3 == 0:
                    raise AbortedError
        with there.transaction():
            there.send("transactions", b"open")
            there.flush()
            with here.transaction():
                here.send("transactions", b"behind what is open")
            for level in ("read_uncommitted", "read_committed"):
                options = {"subscribe": "transactions", "kafka.isolation.level": level}
                theirs, ours = (rows(load(spark, source, servers, **options)) for source in BOTH)
                assert ours == theirs
                counts[level] = len(ours)

    # Of those that were aborted some may never have been sent.
    assert counts["read_committed"] == 13
    assert counts["read_uncommitted"] >= 15


@pytest.mark.parametrize(
    ("options", "is_stream"),
    [
        ({"subscribe": "mixed", "assign": '{"mixed":[0]}'}, False),
        ({"subscribe": "mixed", "startingOffsets": "latest"}, False),
        ({"subscribe": "mixed", "endingOffsets": "earliest"}, False),
        ({"subscribe": "mixed", "startingOffsets": '{"mixed":{"0":3}}'}, False),
        ({"subscribe": "mixed", "startingTimestamp": THE_START_MS * 2}, False),
        ({"subscribe": "mixed", "endingOffsets": "latest"}, True),
        ({"subscribe": "mixed", "kafka.auto.offset.reset": "latest"}, False),
    ],
)
def test_both_refuse_the_same_options(
    spark: SparkSession, servers: str, topic: str, options: dict[str, Any], is_stream: bool, tmp_path: Path
) -> None:
    assert topic == "mixed"
    for source in BOTH:
        with pytest.raises(Exception):  # noqa: B017, PT011 - in which words is each one's own affair
            _use(load(spark, source, servers, is_stream=is_stream, **options), tmp_path / source, is_stream=is_stream)


def _use(frame: DataFrame, folder: Path, *, is_stream: bool) -> None:
    if is_stream:
        _run(frame.select("key", "value"), folder / "checkpoint", folder / "table")
    else:
        frame.count()


def test_both_sinks_write_the_same_records_to_the_same_partitions(spark: SparkSession, servers: str) -> None:
    columns = [
        "CAST(id AS string) AS key",
        "CONCAT('v', id) AS value",
        "array(struct('h' AS key, X'07' AS value)) AS headers",
    ]
    found = {}
    for sink in BOTH:
        with Admin(servers) as admin:
            admin.create_topic(f"sink-{sink}", partitions=4)
        frame = spark.range(500).selectExpr(*columns)
        options = {"kafka.bootstrap.servers": servers, "topic": f"sink-{sink}", "includeHeaders": "true"}
        frame.write.format(sink).options(**options).mode("append").save()
        read = load(spark, "ottla", servers, subscribe=f"sink-{sink}")
        found[sink] = sorted(
            (bytes(row.key), bytes(row.value), row.partition, str(row.headers)) for row in read.collect()
        )

    assert found["ottla"] == found["kafka"]
    assert len(found["kafka"]) == 500


def test_a_checkpoint_moves_from_one_to_the_other_and_back(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    with Admin(servers) as admin:
        admin.create_topic("moving", partitions=2)
    for round_, source in enumerate(("kafka", "ottla", "kafka", "ottla")):
        with Producer(servers) as producer:
            for number in range(100):
                producer.send("moving", b"%d" % (100 * round_ + number), partition=number % 2)
        options = {"subscribe": "moving", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 60}
        frame = load(spark, source, servers, is_stream=True, **options)
        _run(frame.select("value"), tmp_path / "checkpoint", tmp_path / "table")

    values = [int(bytes(row.value)) for row in spark.read.parquet(str(tmp_path / "table")).collect()]
    assert sorted(values) == list(range(400))


def _run(frame: DataFrame, checkpoint: Path, table: Path) -> None:
    writer = frame.writeStream.format("parquet").option("path", str(table))
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
