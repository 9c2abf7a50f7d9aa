"""`format("ottla")` beside `format("kafka")`, Spark's own connector: one topic, one broker, one Spark, in turn.

`BENCH_SPARK=full` takes 10 million records of 100 B and a gigabyte of 1 KiB ones, the default is a tenth of that, and
`BENCH_SPARK=short` a hundredth. `BENCH_ROUNDS` is how often each side reads (default 3), in alternating order.
`BENCH_KINDS` chooses of `plain,special,latency`.
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
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from interop.spark_connector import connector_jars

from bench.report import Row, speed
from bench.sides import Ottla
from bench.spark_processes import cpu_s_of_tree, largest_worker_mib
from bench.spark_shapes import PLAIN, SPECIAL, Shape, fill
from ottla import Admin, Producer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUNDS: Final = int(os.environ.get("BENCH_ROUNDS", "3"))
"""The best counts, because of other load on the machine."""
KINDS: Final = os.environ.get("BENCH_KINDS", "plain,special,latency").split(",")
PARTITIONS: Final = 4
TRIGGERS: Final = 8
LOADS: Final = ((1_000, 1), (20_000, 2))
"""Rows per second, and seconds between triggers."""
TURNS_PER_S: Final = 10

Job = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measured:
    rows_per_s: float
    cpu_s_per_million: float


@dataclass(frozen=True, slots=True)
class Bench:
    spark: SparkSession
    side: Ottla

    def rows(self) -> Iterator[Row]:
        for kind, shapes, compare in (("plain", PLAIN, self._plain), ("special", SPECIAL, self._special)):
            for shape in shapes if kind in KINDS else ():
                fill(self.side.bootstrap, shape)
                yield from compare(shape)
        if "latency" in KINDS:
            yield from _overhead(self.spark, self.side.bootstrap)
        yield Row(what="largest Python worker", ours=f"{largest_worker_mib():.0f} MiB", goal="stated")

    def _plain(self, shape: Shape) -> Iterator[Row]:
        jobs: dict[str, Job] = {
            "count": lambda source: _require(self._read(source, shape).count(), shape.count),
            "count, one column in the schema": lambda source: _require(
                self._read(source, shape, "offset bigint").count(), shape.count
            ),
            "to Parquet": lambda source: _to_parquet(self._read(source, shape)),
        }
        for what, job in jobs.items():
            found = self._measured(job, shape, "ottla", "kafka", "scan")
            yield rows_speed(f"{shape.name}: batch {what}", found["ottla"], found["kafka"], 1.5)
            yield rows_speed(f"{shape.name}: direct scan {what}", found["scan"], found["kafka"], 3.0)
        yield self._available_now(shape)

    def _special(self, shape: Shape) -> Iterator[Row]:
        found = self._measured(lambda source: _to_parquet(self._parsed(source, shape)), shape, "ottla", "kafka")
        yield rows_speed(f"{shape.name}: batch to Parquet", found["ottla"], found["kafka"], 1.5)
        yield self._available_now(shape)

    def _read(self, source: str, shape: Shape, schema: str | None = None) -> DataFrame:
        reader = self.spark.read.format("ottla" if source == "scan" else source).option("subscribe", shape.topic)
        if schema is not None and source != "kafka":  # which has no such thing
            reader = reader.schema(schema)
        if source == "scan":
            return reader.option("path", str(self.side.folder / "data")).load()
        return reader.option("kafka.bootstrap.servers", self.side.bootstrap).load()

    def _parsed(self, source: str, shape: Shape) -> DataFrame:
        from pyspark.sql.functions import col, from_json

        frame = self._read(source, shape)
        if not shape.is_json:
            return frame
        return frame.select(from_json(col("value").cast("string"), shape.columns).alias("row")).select("row.*")

    def _available_now(self, shape: Shape) -> Row:
        servers = self.side.bootstrap

        def stream(source: str) -> None:
            _stream_what_there_is(self.spark, servers, source, shape.topic)

        found = self._measured(stream, shape, "ottla", "kafka")
        return rows_speed(f"{shape.name}: AvailableNow to Parquet", found["ottla"], found["kafka"], 1.5)

    def _measured(self, job: Job, shape: Shape, *sources: str) -> dict[str, Measured]:
        """The best round of each source; in each round they are in the reverse order of the one before."""
        found: dict[str, list[Measured]] = {source: [] for source in sources}
        for source in sources:
            job(source)  # classes are loaded and workers are there
        for number in range(ROUNDS):
            for source in sources if number % 2 == 0 else reversed(sources):
                found[source].append(_measure_once(self.spark, job, source, shape.count))
        return {source: max(each, key=lambda one: one.rows_per_s) for source, each in found.items()}


def rows() -> Iterator[Row]:
    import ottla.spark

    with Ottla() as side:
        spark = ottla.spark.session("bench", master="local[2]", config={"spark.jars": connector_jars()})
        try:
            yield from Bench(spark, side).rows()
        finally:
            spark.stop()


def _require(found: int, wanted: int) -> None:
    assert found == wanted, f"{found} rows instead of {wanted}"


def rows_speed(what: str, ours: Measured, theirs: Measured, at_least: float | None = None) -> Row:
    cpu = f" (CPU s per million rows: {ours.cpu_s_per_million:.2f} and {theirs.cpu_s_per_million:.2f})"
    return speed(what + cpu, ours.rows_per_s / 1000, theirs.rows_per_s / 1000, "k rows/s", at_least=at_least)


def measure(spark: SparkSession, job: Job, source: str, count: int) -> Measured:
    """The best round of a single source."""
    job(source)  # classes are loaded and workers are there
    return max((_measure_once(spark, job, source, count) for _ in range(ROUNDS)), key=lambda one: one.rows_per_s)


def _measure_once(spark: SparkSession, job: Job, source: str, count: int) -> Measured:
    jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]  # noqa: SLF001
    cpu, start = cpu_s_of_tree(jvm), time.perf_counter()
    job(source)
    took = time.perf_counter() - start
    return Measured(count / took, (cpu_s_of_tree(jvm) - cpu) / count * 1e6)


def _to_parquet(frame: DataFrame) -> None:
    folder = tempfile.mkdtemp(prefix="bench-parquet-")
    frame.write.mode("overwrite").parquet(folder)
    shutil.rmtree(folder)


def _stream_what_there_is(spark: SparkSession, servers: str, source: str, topic: str) -> None:
    folder = tempfile.mkdtemp(prefix="bench-stream-")
    reader = spark.readStream.format(source).option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    writer = reader.option("startingOffsets", "earliest").load().writeStream.format("parquet")
    writer = writer.option("path", f"{folder}/table").option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    shutil.rmtree(folder)


def _overhead(spark: SparkSession, servers: str) -> Iterator[Row]:
    """How long a micro-batch takes: medians, by phase, of both sources in alternating order."""
    for rate, every_s in LOADS:
        found: dict[str, list[dict[str, int]]] = {"ottla": [], "kafka": []}
        for number in range(ROUNDS):
            for source in ("ottla", "kafka") if number % 2 == 0 else ("kafka", "ottla"):
                found[source] += _micro_batches(spark, servers, source, rate, every_s)
        what = f"micro-batch at {rate:,} rows/s, {every_s} s triggers"
        ours, theirs = (_median(found[source], "triggerExecution") for source in ("ottla", "kafka"))
        yield Row(
            what=what,
            ours=f"{ours:.0f} ms",
            theirs=f"{theirs:.0f} ms",
            ratio=ours / theirs,
            goal="<= theirs",
            is_reached=ours <= theirs,
        )
        for phase in ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets"):
            both = [f"{_median(found[source], phase):.0f} ms" for source in ("ottla", "kafka")]
            yield Row(what=f"{what}: {phase}", ours=both[0], theirs=both[1])


def _median(batches: list[dict[str, int]], phase: str) -> float:
    return statistics.median(each.get(phase, 0) for each in batches)


def _micro_batches(spark: SparkSession, servers: str, source: str, rate: int, every_s: int) -> list[dict[str, int]]:
    """Milliseconds of each phase, without the first two micro-batches."""
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
        while query.isActive and len(durations := _durations(query)) < TRIGGERS:
            producer.send_arrow(topic, rows)
            producer.flush()
            next_s += 1 / TURNS_PER_S
            time.sleep(max(0.0, next_s - time.monotonic()))
    if failed := query.exception():
        raise failed
    query.stop()
    shutil.rmtree(folder, ignore_errors=True)
    return durations[2:]


def _durations(query: object) -> list[dict[str, int]]:
    progress = query.recentProgress  # type: ignore[attr-defined]
    return [each.durationMs for each in progress if each.numInputRows]
