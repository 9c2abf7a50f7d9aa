"""The files of a micro-batch: written by Spark beside the table, then put into it under names that say whose they are.

The names are the same whenever a micro-batch is repeated, so that a repeated one covers what a killed one left.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

OWN_FOLDER: Final = "_ottla"
"""In a table's folder; readers pass over names that begin so."""
_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_ID_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class BatchId:
    """Which micro-batch of which query."""

    query: str
    number: int

    @property
    def prefix(self) -> str:
        return f"{self.query[:_ID_LENGTH]}-{self.number:08d}-"


@dataclass(frozen=True, slots=True)
class StagedFile:
    staged: Path
    name: str
    """Where it belongs in the table."""
    row_count: int
    partition: tuple[tuple[str, str | None], ...]


def stage(frame: DataFrame, root: Path, batch: BatchId, partition_by: Sequence[str]) -> list[StagedFile]:
    """Write the rows of a micro-batch. Nothing of it is in the table yet."""
    folder = staging_folder(root, batch)
    writer = frame.write.mode("overwrite")
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer.parquet(folder.as_uri())
    return staged_files(folder, batch)


def staging_folder(root: Path, batch: BatchId) -> Path:
    return root / OWN_FOLDER / f"{batch.query}-{batch.number}"


def staged_files(folder: Path, batch: BatchId) -> list[StagedFile]:
    """Those with rows in them, in an order that does not depend on names that Spark made up."""
    import pyarrow.parquet as pq

    found = []
    for number, file in enumerate(sorted(folder.rglob("part-*.parquet"), key=_order)):
        rows = pq.read_metadata(file).num_rows
        if rows:
            inside = file.parent.relative_to(folder)
            name = str(inside / f"{batch.prefix}{number}.parquet")
            found.append(StagedFile(file, name, rows, _partition(inside.parts)))
    return found


def _order(file: Path) -> tuple[str, str]:
    # part-TASK-…: the task's number is the same when it is repeated, and what follows is not.
    return str(file.parent), file.name.split("-")[1]


def _partition(folders: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    values = (folder.partition("=") for folder in folders)
    return tuple((unquote(name), None if value == _NULL_PARTITION else unquote(value)) for name, _, value in values)


def staged_rows(files: Sequence[StagedFile], schema: pa.Schema) -> pa.Table:
    """The rows of staged files in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = [pq.ParquetFile(file.staged).read().select(schema.names).cast(schema) for file in files]
    return pa.concat_tables([schema.empty_table(), *found])


def put_in_place(root: Path, files: Sequence[StagedFile]) -> list[Path]:
    places = []
    for file in files:
        place = root / file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        file.staged.replace(place)
        places.append(place)
    return places


def clear(root: Path, batch: BatchId) -> None:
    shutil.rmtree(staging_folder(root, batch), ignore_errors=True)
