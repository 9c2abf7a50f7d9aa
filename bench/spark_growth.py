"""Commits to the sinks of pipelines: what the n-th costs, beside the tenth; and the memory of a driver.

Commits and merges are made without Spark: the files of a micro-batch are written by pyarrow, and then committed as a
pipeline does it. The driver is a real one.

`BENCH_COMMITS=10,100,1000,5000` names the commits to measure (default 10,100,1000; `BENCH_SPARK=full` adds 5,000),
`BENCH_SECONDS` the most time for each kind (default 300): one that takes longer ends there, and says how far it came.
`BENCH_KINDS` chooses some of them, `BENCH_POSTGRESQL=postgresql://…` adds a database.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.report import Row
from bench.spark_driver_memory import driver_memory, resident_mb
from ottla.columns.evolution import Evolution
from ottla.columns.types import as_json, struct_of
from ottla.spark.pipelines.changes.rules import DELETE
from ottla.spark.pipelines.sinks.batch import MicroBatch
from ottla.spark.pipelines.sinks.iceberg import IcebergSink
from ottla.spark.pipelines.sinks.postgresql import PostgresqlSink
from ottla.spark.pipelines.sinks.registry import SINKS
from ottla.spark.pipelines.sinks.tables import TableSink
from ottla.spark.pipelines.tables.staging import BatchId, staged_files, staging_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ottla.spark.pipelines.sinks.sink import Sink
    from ottla.spark.pipelines.sinks.tables import MergingTableSink

KINDS = ("parquet", "delta", "iceberg", "sqlite", "delta merge", "iceberg merge", "sqlite merge")
DRIVER = "driver"
KEYS = 1000
"""Of a table that is merged into; a tenth of the changes deletes."""
COLUMNS = struct_of([("id", "bigint"), ("city", "string")])
ROWS = 10
AROUND = 40
"""The median of this many commits before the n-th is measured; ten before the tenth."""
MOST_GROWTH = 1.3
_NOISE_MS = 1.0


class FewRows:
    """The methods of a DataFrame that a database uses."""

    columns = COLUMNS.names

    def __init__(self, ids: Iterable[int]) -> None:
        self._ids = ids

    def select(self, *_: str) -> FewRows:
        return self

    @property
    def schema(self) -> FewRows:
        return self

    def jsonValue(self) -> Any:  # noqa: ANN401, N802 - as Spark calls it
        return as_json(COLUMNS)

    def toLocalIterator(self) -> Iterator[FewRow]:  # noqa: N802 - as Spark calls it
        return map(FewRow, self._ids)


@dataclass
class FewRow:
    id: int

    def asDict(self) -> dict[str, Any]:  # noqa: N802 - as Spark calls it
        return {"id": self.id, "city": "Prag"}


def new_ids(number: int) -> range:
    return range(number * ROWS, (number + 1) * ROWS)


def known_ids(number: int) -> list[int]:
    """The first micro-batch has all keys, every later one some of them: the table does not grow."""
    return list(range(KEYS)) if number == 0 else sorted(random.Random(number).sample(range(KEYS), ROWS))


def commit_of(sink: Sink) -> Callable[[int], None]:
    ids = known_ids if sink.changes.key else new_ids
    if not isinstance(sink, TableSink):
        return lambda number: _ignore(sink.write(FewRows(ids(number)), MicroBatch("growth", number, print)))  # type: ignore[arg-type]
    if sink.changes.key:
        return merge_of(sink)  # type: ignore[arg-type]  # it has a key
    table = sink.open_table()
    root = _root(sink)

    def commit(number: int) -> None:
        batch = BatchId("growth-growth", number)
        if not table.has(batch):
            table.columns()
            table.commit(staged(root, batch, new_ids(number)), batch, Evolution(COLUMNS))

    return commit


def merge_of(sink: MergingTableSink) -> Callable[[int], None]:
    import pyarrow as pa

    from ottla.spark.pipelines.tables.changes import Changes

    table: Any = sink.open_table()
    root = _root(sink)

    def merge(number: int) -> None:
        batch = BatchId("growth-growth", number)
        if table.has(batch):
            return
        ids = known_ids(number)
        if table.columns() is None:
            table.commit(staged(root, batch, ids), batch, Evolution(COLUMNS))
            return
        rows = {"id": ids, "city": ["Prag"] * ROWS, DELETE: [each % 10 == 0 for each in ids]}
        table.merge(Changes(pa.table(rows)), batch, Evolution(COLUMNS), sink.changes)

    return merge


def _root(sink: TableSink) -> Path:
    """Where staged files of its table are."""
    root = Path(sink.path)
    return root.joinpath(*sink.table.split("."), "data") if isinstance(sink, IcebergSink) else root


def _ignore(_: object) -> None:
    pass


def staged(root: Path, batch: BatchId, ids: Sequence[int]) -> Sequence[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = staging_folder(root, batch)
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": list(ids), "city": ["Prag"] * len(ids)}), folder / "part-00000-0.parquet")
    return staged_files(root, batch)


def rows() -> Iterator[Row]:
    marks = _marks()
    chosen = os.environ.get("BENCH_KINDS", ",".join([*KINDS, DRIVER])).split(",")
    for row in _all_rows(chosen, marks):
        # As it comes: the whole may take an hour.
        print(f"{row.what}: {row.ours} ({row.theirs})", file=sys.stderr, flush=True)
        yield row


def _marks() -> list[int]:
    default = "10,100,1000,5000" if os.environ.get("BENCH_SPARK") == "full" else "10,100,1000"
    return sorted(map(int, os.environ.get("BENCH_COMMITS", default).split(",")))


def _all_rows(chosen: Sequence[str], marks: Sequence[int]) -> Iterator[Row]:
    most_s = float(os.environ.get("BENCH_SECONDS", "300"))
    for kind in chosen:
        if kind == DRIVER:
            yield from driver_memory(marks, most_s)
            continue
        with tempfile.TemporaryDirectory() as folder:
            yield from _grown(kind, commit_of(sink_of(kind, folder)), marks, most_s)
    if url := os.environ.get("BENCH_POSTGRESQL"):
        table = f"growth_{os.getpid()}"
        sink = PostgresqlSink(name="growth", of="rows", url=url, table=table)
        yield from _grown("postgresql", commit_of(sink), marks, most_s)


def sink_of(kind: str, folder: str) -> Sink:
    """`kind` may say that rows are merged."""
    name, _, merges = kind.partition(" ")
    given = {"path": f"{folder}/table", "table": "shop.growth" if name == "iceberg" else "growth"}
    if merges:
        given |= {"key": ("id",), "mode": "update"}  # type: ignore[dict-item]
    made = SINKS.find(name)
    known = {key: value for key, value in given.items() if key in made.__struct_fields__}
    return made(name="growth", of="rows", **known)  # type: ignore[arg-type]  # keys of its kind


def _grown(kind: str, commit: Callable[[int], None], marks: Sequence[int], most_s: float) -> Iterator[Row]:
    cpu_ms: list[float] = []
    wall_ms: list[float] = []
    first = memory = 0.0
    begun = time.perf_counter()
    for number in range(marks[-1]):
        wall, cpu = time.perf_counter(), time.process_time()
        commit(number)
        wall_ms.append((time.perf_counter() - wall) * 1000)
        cpu_ms.append((time.process_time() - cpu) * 1000)
        is_over = time.perf_counter() - begun > most_s
        if number + 1 in marks or is_over:
            around = max(1, min(AROUND, number))
            now = statistics.median(cpu_ms[-around:])
            first, memory = first or now, memory or resident_mb()
            yield Row(
                what=f"{kind}, commit {number + 1:,}: CPU (wall), memory",
                ours=f"{now:.1f} ms ({statistics.median(wall_ms[-around:]):.1f} ms), {resident_mb():.0f} MB",
                theirs=f"{first:.1f} ms, {memory:.0f} MB at the {marks[0]}th",
                ratio=now / first,
                goal=f"<= {MOST_GROWTH}x",
                is_reached=now <= first * MOST_GROWTH + _NOISE_MS,
            )
        if is_over:
            return
