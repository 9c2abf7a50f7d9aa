"""Commits to the sinks of pipelines: what the n-th costs, beside the tenth.

Without Spark: the files of a micro-batch are written by pyarrow, and then committed as a pipeline does it.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.report import Row
from ottla.spark.pipelines.evolution.rules import Evolution
from ottla.spark.pipelines.evolution.types import as_json, struct_of
from ottla.spark.pipelines.sinks.batch import MicroBatch
from ottla.spark.pipelines.sinks.iceberg import IcebergSink
from ottla.spark.pipelines.sinks.postgresql import PostgresqlSink
from ottla.spark.pipelines.sinks.registry import SINKS
from ottla.spark.pipelines.sinks.tables import TableSink
from ottla.spark.pipelines.tables.staging import BatchId, staged_files, staging_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ottla.spark.pipelines.sinks.sink import Sink

KINDS = ("parquet", "delta", "iceberg", "sqlite")
COLUMNS = struct_of([("id", "bigint"), ("city", "string")])
ROWS = 10
AROUND = 40
"""The median of this many commits before the n-th is measured; ten before the tenth."""
MOST_GROWTH = 1.3
_NOISE_MS = 1.0


class FewRows:
    """What a database asks of a frame of Spark's."""

    columns = COLUMNS.names

    def __init__(self, number: int) -> None:
        self._number = number

    @property
    def schema(self) -> FewRows:
        return self

    def jsonValue(self) -> Any:  # noqa: ANN401, N802 - as Spark calls it
        return as_json(COLUMNS)

    def toLocalIterator(self) -> Iterator[FewRow]:  # noqa: N802 - as Spark calls it
        return (FewRow(self._number * ROWS + each) for each in range(ROWS))


@dataclass
class FewRow:
    id: int

    def asDict(self) -> dict[str, Any]:  # noqa: N802 - as Spark calls it
        return {"id": self.id, "city": "Prag"}


def commit_of(sink: Sink) -> Callable[[int], None]:
    if not isinstance(sink, TableSink):
        return lambda number: _ignore(sink.write(FewRows(number), MicroBatch("growth", number, print)))  # type: ignore[arg-type]
    table = sink.open_table()
    root = Path(sink.path)
    if isinstance(sink, IcebergSink):
        root = root.joinpath(*sink.table.split("."), "data")

    def commit(number: int) -> None:
        batch = BatchId("growth-growth", number)
        if not table.has(batch):
            table.columns()
            table.commit(staged(root, batch), batch, Evolution(COLUMNS))

    return commit


def _ignore(_: object) -> None:
    pass


def staged(root: Path, batch: BatchId) -> Sequence[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = staging_folder(root, batch)
    folder.mkdir(parents=True)
    ids = [batch.number * ROWS + each for each in range(ROWS)]
    pq.write_table(pa.table({"id": ids, "city": ["Prag"] * ROWS}), folder / "part-00000-0.parquet")
    return staged_files(root, batch)


def rows() -> Iterator[Row]:
    """`BENCH_SPARK=full` goes on to 5,000 commits; `BENCH_POSTGRESQL=postgresql://…` adds a database to commit to."""
    marks = (10, 100, 1000, 5000) if os.environ.get("BENCH_SPARK") == "full" else (10, 100, 1000)
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            given = {"path": f"{folder}/table", "table": _table(kind)}
            made = SINKS.find(kind)
            known = {key: value for key, value in given.items() if key in made.__struct_fields__}
            sink = made(name="growth", of="rows", **known)  # type: ignore[arg-type]  # keys of its kind
            yield from _grown(kind, commit_of(sink), marks)
    if url := os.environ.get("BENCH_POSTGRESQL"):
        table = f"growth_{os.getpid()}"
        sink = PostgresqlSink(name="growth", of="rows", url=url, table=table)
        yield from _grown("postgresql", commit_of(sink), marks)


def _table(kind: str) -> str:
    return "shop.growth" if kind == "iceberg" else "growth"


def _grown(kind: str, commit: Callable[[int], None], marks: Sequence[int]) -> Iterator[Row]:
    cpu_ms: list[float] = []
    wall_ms: list[float] = []
    first = 0.0
    for number in range(marks[-1]):
        wall, cpu = time.perf_counter(), time.process_time()
        commit(number)
        wall_ms.append((time.perf_counter() - wall) * 1000)
        cpu_ms.append((time.process_time() - cpu) * 1000)
        if number + 1 in marks:
            around = min(AROUND, number)
            now = statistics.median(cpu_ms[-around:])
            first = first or now
            yield Row(
                what=f"{kind}, commit {number + 1:,}: CPU (wall), memory",
                ours=f"{now:.1f} ms ({statistics.median(wall_ms[-around:]):.1f} ms), {_memory_mb():.0f} MB",
                theirs=f"{first:.1f} ms at the 10th",
                ratio=now / first,
                goal=f"<= {MOST_GROWTH}x",
                is_reached=now <= first * MOST_GROWTH + _NOISE_MS,
            )


def _memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
