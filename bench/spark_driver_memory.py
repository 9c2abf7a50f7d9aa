"""The memory of a driver over many micro-batches: of its Python process, and of its JVM after a collection."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.report import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

MOST_GROWTH = 1.3
RECORDS = 2
"""Of a micro-batch."""
FILE = """
broker = "{servers}"
every = "1 ms"
[source.orders]
topics = "orders"
schema = "id bigint, city string"
max_per_batch = {records}
[sink.delta]
kind = "delta"
path = "table"
compact_every = 100
[spark]
"spark.driver.extraJavaOptions" = "-XX:+UseSerialGC"
"""


def driver_memory(marks: Sequence[int], most_s: float) -> Iterator[Row]:
    """After each of these micro-batches, and after the last one for which there is time."""
    from bench.sides import Ottla
    from ottla import Admin, Producer

    with tempfile.TemporaryDirectory() as folder, Ottla() as side:
        with Admin(side.bootstrap) as admin:
            admin.create_topic("orders")
        with Producer(side.bootstrap) as producer:
            for number in range(RECORDS * (marks[-1] + 1)):
                producer.send("orders", json.dumps({"id": number, "city": "Prag"}).encode())
        file = Path(folder) / "growth.toml"
        file.write_text(FILE.format(servers=side.bootstrap, records=RECORDS))
        yield from _rows(_measured(file, marks, most_s))


def _measured(file: Path, marks: Sequence[int], most_s: float) -> list[tuple[int, float, float, float]]:
    """Micro-batch, milliseconds each since the one before, and megabytes of Python and of the JVM."""
    from ottla.spark.pipelines.loading import load_pipeline
    from ottla.spark.pipelines.running import RunOptions, run_pipeline
    from ottla.spark.pipelines.sessions import pipeline_session, silence

    pipeline = load_pipeline(file)
    spark = pipeline_session(pipeline, "local[2]")
    silence(spark, pipeline)
    found: list[tuple[int, float, float, float]] = []
    begun = time.perf_counter()
    last = [begun, 0.0]

    def look() -> bool:
        """Asked by the run again and again."""
        done = commits(file.parent / "table")
        is_over = time.perf_counter() - begun > most_s or done >= marks[-1]
        due = [mark for mark in marks if mark <= done and mark not in {at for at, *_ in found}]
        if due or is_over:
            each_ms = (time.perf_counter() - last[0]) * 1000 / max(1.0, done - last[1])
            found.append((due[-1] if due else done, each_ms, resident_mb(), heap_mb(spark)))
            last[:] = [time.perf_counter(), done]
        return is_over

    try:
        run_pipeline(spark, pipeline, RunOptions(is_over=look))
    finally:
        spark.stop()
    return found


def commits(table: Path) -> int:
    log = table / "_delta_log"
    return max((int(file.stem) for file in log.glob("0*.json")), default=0) if log.exists() else 0


def _rows(found: Sequence[tuple[int, float, float, float]]) -> Iterator[Row]:
    first: Any = None
    for batch, each_ms, python, heap in found:
        first = first or (python, heap)
        ratio = max(python / first[0], heap / first[1])
        yield Row(
            what=f"driver, micro-batch {batch:,}: Python, heap of the JVM",
            ours=f"{python:.0f} MB, {heap:.0f} MB ({each_ms:.0f} ms each)",
            theirs=f"{first[0]:.0f} MB, {first[1]:.0f} MB at the first",
            ratio=ratio,
            goal=f"<= {MOST_GROWTH}x",
            is_reached=ratio <= MOST_GROWTH,
        )


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / (1 << 20)


def heap_mb(spark: SparkSession) -> float:
    """In use after a collection."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - there is no other way to ask
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / (1 << 20)
