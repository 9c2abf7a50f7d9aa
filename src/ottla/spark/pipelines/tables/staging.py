"""The files of a micro-batch: written by Spark beside the table, then moved into it.

File names are the same when a micro-batch is repeated, so that a repetition overwrites the files of a killed attempt.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from ottla.spark.pipelines.stores.files import LocalFiles

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.stores.files import Files

OWN_FOLDER: Final = "_ottla"
"""A folder in the table's folder; readers ignore names with this prefix."""
NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_ID_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class BatchId:
    """A micro-batch of a query."""

    query: str
    number: int

    @property
    def prefix(self) -> str:
        return f"{self.query[:_ID_LENGTH]}-{self.number:08d}-"


@dataclass(frozen=True, slots=True)
class StagedFile:
    staged: str
    """The current path, relative to the table's root."""
    name: str
    """The path in the table; the same if a log determines the table's files."""
    row_count: int
    size: int
    partition: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Staging:
    """The layout of a table's files."""

    partition_by: Sequence[str] = ()
    counts_all_files: bool = False
    """Whether every file in the folder is part of the table, so that none may be written there before the commit."""


STAGED_ASIDE: Final = Staging(counts_all_files=True)
"""For rows that are read again before they are written to the table."""


def stage(frame: DataFrame, files: Files, batch: BatchId, staging: Staging) -> list[StagedFile]:
    """Write the rows of a micro-batch beside the table."""
    if not isinstance(files, LocalFiles):
        from ottla.spark.pipelines.stores.writing import write_rows

        return write_rows(frame, files, batch, staging)
    folder = staging_folder(files.folder, batch)
    writer = frame.write.mode("overwrite")
    if staging.partition_by:
        writer = writer.partitionBy(*staging.partition_by)
    writer.parquet(folder.as_uri())
    return staged_files(files.folder, batch)


def staging_folder(root: Path, batch: BatchId) -> Path:
    return root / staging_name(batch)


def staging_name(batch: BatchId) -> str:
    return f"{OWN_FOLDER}/{batch.query}-{batch.number}"


def staged_files(root: Path, batch: BatchId) -> list[StagedFile]:
    """The files with rows, in an order independent of Spark's random names."""
    import pyarrow.parquet as pq

    found = []
    folder = staging_folder(root, batch)
    for number, file in enumerate(sorted(folder.rglob("part-*.parquet"), key=_order)):
        rows = pq.read_metadata(file).num_rows
        if rows:
            inside = file.parent.relative_to(folder)
            name = str(inside / f"{batch.prefix}{number}.parquet")
            staged = str(file.relative_to(root))
            found.append(StagedFile(staged, name, rows, file.stat().st_size, partition_of(inside.parts)))
    return found


def _order(file: Path) -> tuple[str, str]:
    # part-TASK-…: the task's number is the same when it is repeated, and what follows is not.
    return str(file.parent), file.name.split("-")[1]


def partition_of(folders: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    values = (folder.partition("=") for folder in folders)
    return tuple((unquote(name), None if value == NULL_PARTITION else unquote(value)) for name, _, value in values)


def staged_rows(files: Files, staged: Sequence[StagedFile], schema: pa.Schema) -> pa.Table:
    """Read the rows of staged files; the files are no longer needed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = []
    for file in staged:
        with pq.ParquetFile(files.source(file.staged)) as opened:
            found.append(opened.read().select(schema.names).cast(schema))
    files.remove(file.staged for file in staged)
    return pa.concat_tables([schema.empty_table(), *found])


def put_in_place(files: Files, staged: Sequence[StagedFile]) -> list[str]:
    """The names of the files in the table."""
    for file in staged:
        if file.staged != file.name:
            files.move(file.staged, file.name)
    return [file.name for file in staged]


def clear(files: Files, batch: BatchId) -> None:
    if isinstance(files, LocalFiles):
        shutil.rmtree(staging_folder(files.folder, batch), ignore_errors=True)
