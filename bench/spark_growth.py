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
from ottla.spark.pipelines.databases.opening import database_of
from ottla.spark.pipelines.definition import TABLE_KINDS, Sink
from ottla.spark.pipelines.evolution.rules import Evolution
from ottla.spark.pipelines.evolution.types import as_json, struct_of
from ottla.spark.pipelines.tables.opening import table_of
from ottla.spark.pipelines.tables.staging import BatchId, staged_files, staging_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

KINDS = ("parquet", "delta", "iceberg", "sqlite")
COLUMNS = struct_of([("id", "bigint"), ("city", "string")])
ROWS = 10
AROUND = 40
"""So many commits before the n-th are measured, and the median of them counts; ten before the tenth."""
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
    if sink.kind not in TABLE_KINDS:
        database = database_of(sink)
        return lambda number: _ignore(database.write(FewRows(number), BatchId("growth", number), print))  # type: ignore[arg-type]
    table = table_of(sink)
    root = Path(sink.path).joinpath(*sink.table.split("."), "data") if sink.kind == "iceberg" else Path(sink.path)

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
            sink = Sink(name="growth", kind=kind, of="rows", path=f"{folder}/table", table=_table(kind))  # type: ignore[arg-type]
            yield from _grown(kind, commit_of(sink), marks)
    if url := os.environ.get("BENCH_POSTGRESQL"):
        table = f"growth_{os.getpid()}"
        sink = Sink(name="growth", kind="postgresql", of="rows", url=url, table=table)
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
