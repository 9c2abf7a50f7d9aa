"""`format("ottla")` beside `format("kafka")`, Spark's own connector: one topic, one broker, one Spark, in one run.

`BENCH_SPARK=full` takes 10 million records of 100 B and a gigabyte of 1 KiB ones instead of a tenth of that.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from interop.spark_connector import connector_jars

from bench.report import Row, speed
from bench.sides import Ottla
from ottla import Admin, Producer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCALE = 1 if os.environ.get("BENCH_SPARK") == "full" else 10
TOPICS = {"100 B": (100, 10_000_000 // SCALE), "1 KiB": (1024, 1_000_000 // SCALE)}
PARTITIONS = 4
ROWS_AT_A_TIME = 10_000
RUNS = 2
"""Rounds; the best counts, because of other load on the machine."""
TRIGGERS = 8
LOADS = ((1_000, 1), (20_000, 2))
"""Rows per second, and seconds between triggers."""
TURNS_PER_S = 10


@dataclass(frozen=True, slots=True)
class Measured:
    rows_per_s: float
    cpu_s_per_million: float


def rows() -> Iterator[Row]:
    import ottla.spark

    with Ottla() as side:
        for name, (size, count) in TOPICS.items():
            _fill(side.bootstrap, _topic(name), size, count)
        spark = ottla.spark.session("bench", master="local[2]", config={"spark.jars": connector_jars()})
        try:
            for name, (_, count) in TOPICS.items():
                yield from _compare(spark, side, name, count)
            yield from _overhead(spark, side.bootstrap)
            yield Row(what="largest Python worker", ours=f"{_largest_worker_mib():.0f} MiB", goal="stated")
        finally:
            spark.stop()


def _topic(name: str) -> str:
    return f"records-{name.replace(' ', '')}"


def _fill(servers: str, topic: str, size: int, count: int) -> None:
    with Admin(servers) as admin:
        admin.create_topic(topic, partitions=PARTITIONS)
    values = pa.array([os.urandom(size) for _ in range(ROWS_AT_A_TIME)], pa.binary())
    keys = pa.array([b"%016d" % number for number in range(ROWS_AT_A_TIME)], pa.binary())
    with Producer(servers) as producer:
        for turn in range(count // ROWS_AT_A_TIME):
            partitions = pa.repeat(pa.scalar(turn % PARTITIONS, pa.int32()), ROWS_AT_A_TIME)
            producer.send_arrow(topic, pa.record_batch([keys, values, partitions], ["key", "value", "partition"]))
        producer.flush()


def _compare(spark: SparkSession, side: Ottla, name: str, count: int) -> Iterator[Row]:
    def read(source: str, schema: str | None = None) -> DataFrame:
        reader = spark.read.format(source).option("subscribe", _topic(name))
        if schema is not None and source != "kafka":  # which has no such thing
            reader = reader.schema(schema)
        if source == "scan":
            return reader.format("ottla").option("path", str(side.folder / "data")).load()
        return reader.option("kafka.bootstrap.servers", side.bootstrap).load()

    jobs: dict[str, Callable[[str], None]] = {
        "count": lambda source: _require(read(source).count(), count),
        "count, one column in the schema": lambda source: _require(read(source, "offset bigint").count(), count),
        "to Parquet": lambda source: _to_parquet(read(source)),
    }
    for what, job in jobs.items():
        ours, theirs, scan = (measure(spark, job, source, count) for source in ("ottla", "kafka", "scan"))
        yield rows_speed(f"{name}: batch {what}", ours, theirs, 1.5)
        yield rows_speed(f"{name}: direct scan {what}", scan, theirs, 3.0)
    ours, theirs = (
        measure(spark, lambda source: _available_now(spark, side.bootstrap, source, _topic(name)), source, count)
        for source in ("ottla", "kafka")
    )
    yield rows_speed(f"{name}: AvailableNow to Parquet", ours, theirs, 1.5)


def _require(found: int, wanted: int) -> None:
    assert found == wanted, f"{found} rows instead of {wanted}"


def rows_speed(what: str, ours: Measured, theirs: Measured, at_least: float | None = None) -> Row:
    cpu = f" (CPU s per million rows: {ours.cpu_s_per_million:.2f} and {theirs.cpu_s_per_million:.2f})"
    return speed(what + cpu, ours.rows_per_s / 1e6, theirs.rows_per_s / 1e6, "M rows/s", at_least=at_least)


def measure(spark: SparkSession, job: Callable[[str], None], source: str, count: int) -> Measured:
    jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]  # noqa: SLF001
    found = []
    job(source)  # classes are loaded and workers are there
    for _ in range(RUNS):
        cpu, start = _cpu_s_of_tree(jvm), time.perf_counter()
        job(source)
        took = time.perf_counter() - start
        found.append(Measured(count / took, (_cpu_s_of_tree(jvm) - cpu) / count * 1e6))
    return max(found, key=lambda each: each.rows_per_s)


def _to_parquet(frame: DataFrame) -> None:
    folder = tempfile.mkdtemp(prefix="bench-parquet-")
    frame.write.mode("overwrite").parquet(folder)
    shutil.rmtree(folder)


def _available_now(spark: SparkSession, servers: str, source: str, topic: str) -> None:
    folder = tempfile.mkdtemp(prefix="bench-stream-")
    reader = spark.readStream.format(source).option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    writer = reader.option("startingOffsets", "earliest").load().writeStream.format("parquet")
    writer = writer.option("path", f"{folder}/table").option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    shutil.rmtree(folder)


def _overhead(spark: SparkSession, servers: str) -> Iterator[Row]:
    """How long a micro-batch takes; the two in turn, since the machine does other things too."""
    for rate, every_s in LOADS:
        found: dict[str, list[int]] = {"ottla": [], "kafka": []}
        for order in (("ottla", "kafka"), ("kafka", "ottla")):
            for source in order:
                found[source] += _micro_batches_ms(spark, servers, source, rate, every_s)
        ours, theirs = (statistics.median(found[source]) for source in ("ottla", "kafka"))
        yield Row(
            what=f"micro-batch at {rate:,} rows/s, {every_s} s triggers",
            ours=f"{ours:.0f} ms",
            theirs=f"{theirs:.0f} ms",
            ratio=ours / theirs,
            goal="<= theirs",
            is_reached=ours <= theirs,
        )


def _micro_batches_ms(spark: SparkSession, servers: str, source: str, rate: int, every_s: int) -> list[int]:
    topic = f"rate-{uuid.uuid4()}"
    with Admin(servers) as admin:
        admin.create_topic(topic, partitions=PARTITIONS)
    folder = tempfile.mkdtemp(prefix="bench-rate-")
    reader = spark.readStream.format(source).option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    writer = reader.option("startingOffsets", "earliest").load().writeStream.format("noop")
    query = writer.option("checkpointLocation", folder).trigger(processingTime=f"{every_s} seconds").start()
    count = rate // TURNS_PER_S
    # Evenly: with nothing new in some partitions, the connector's micro-batches take about 0.3 s longer.
    values, partitions = [b"%0100d" % number for number in range(count)], [each % PARTITIONS for each in range(count)]
    rows = pa.record_batch([pa.array(values), pa.array(partitions, pa.int32())], ["value", "partition"])
    with Producer(servers) as producer:
        next_s = time.monotonic()
        while len(durations := _durations(query)) < TRIGGERS:
            producer.send_arrow(topic, rows)
            producer.flush()
            next_s += 1 / TURNS_PER_S
            time.sleep(max(0.0, next_s - time.monotonic()))
    query.stop()
    shutil.rmtree(folder, ignore_errors=True)
    return durations[2:]


def _durations(query: object) -> list[int]:
    progress = query.recentProgress  # type: ignore[attr-defined]
    return [each.durationMs["triggerExecution"] for each in progress if each.numInputRows]


# What the kernel says of Spark's processes


def _tree(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, left = [], [root]
    while left:
        found.append(pid := left.pop())
        left += parents.get(pid, [])
    return found


def _cpu_s_of_tree(root: int) -> float:
    """Of the JVM, its Python workers, and those of them that are gone already."""
    ticks = 0
    for pid in _tree(root):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _largest_worker_mib() -> float:
    sizes = [0]
    for pid in _tree(os.getpid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        if b"pyspark.daemon" in command:
            sizes += [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
    return max(sizes) / 1024
