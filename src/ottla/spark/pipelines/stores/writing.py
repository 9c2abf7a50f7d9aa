"""The rows of a micro-batch as files in an object store, written by Spark's workers without Hadoop."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ottla.columns.arrow_types import arrow_schema
from ottla.columns.types import Struct, columns_of
from ottla.spark.pipelines.tables.staging import NULL_PARTITION, StagedFile, partition_of, staging_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, Row

    from ottla.spark.pipelines.stores.files import Files
    from ottla.spark.pipelines.stores.object_files import ObjectFiles
    from ottla.spark.pipelines.stores.settings import StorageSettings
    from ottla.spark.pipelines.tables.staging import BatchId, Staging

_RESULT: Final = "folder string, name string, rows long, size long"
_ROW_GROUP_BYTES: Final = 64 << 20
_FILE_BYTES: Final = 1 << 30
"""In memory. A store copies objects of at most 5 GB at once."""


def write_rows(frame: DataFrame, files: Files, batch: BatchId, staging: Staging) -> list[StagedFile]:
    """File names are unique to the attempt of a task; the files of failed attempts are orphans."""
    from pyspark.sql import functions as F  # noqa: N812 - the usual name

    columns = columns_of(frame.schema.jsonValue())
    stored = Struct(tuple(field for field in columns.fields if field.name not in staging.partition_by))
    target = f"{staging_name(batch)}/" if staging.counts_all_files else ""
    if staging.partition_by:
        as_text = {name: F.col(f"`{name}`").cast("string") for name in staging.partition_by}
        frame = frame.withColumns(as_text).sortWithinPartitions(*(f"`{name}`" for name in as_text))
    write = RowWriter(
        address=files.root,
        settings=files.settings,
        target=target,
        prefix=batch.prefix,
        partition_by=tuple(staging.partition_by),
        schema=arrow_schema(stored),
    )
    written = frame.mapInArrow(write, _RESULT).collect()
    return sorted((_staged(row, target) for row in written), key=lambda file: file.name)


def _staged(row: Row, target: str) -> StagedFile:
    name = row["folder"] + row["name"]
    partition = partition_of(row["folder"].split("/")[:-1])
    return StagedFile(target + name, name, row["rows"], row["size"], partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWriter:
    """A function for Spark's workers: rows in, the files they were written to out."""

    address: str
    settings: StorageSettings
    target: str
    prefix: str
    partition_by: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        written = list(self._written(batches))
        if written:
            names = ("folder", "name", "rows", "size")
            yield pa.RecordBatch.from_pydict({name: [each[name] for each in written] for name in names})

    def _written(self, batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        from ottla.spark.pipelines.stores.object_files import ObjectFiles

        files = ObjectFiles(self.address, self.settings)
        base = self.prefix + secrets.token_hex(6)
        number = 0
        runs = (run for batch in batches for run in _runs(batch, self.partition_by))
        # Rows are sorted by their partition, so that one file is open at a time.
        for folder, parts in groupby(runs, key=lambda run: run[0]):
            for rows in _file_loads(part for _, part in parts):
                name = f"{base}-{number}.parquet"
                number += 1
                yield self._write(files, folder, name, rows)

    def _write(self, files: ObjectFiles, folder: str, name: str, rows: Iterator[pa.Table]) -> dict[str, Any]:
        import pyarrow.parquet as pq

        place = self.target + folder + name
        count = 0
        with files.sink(place) as sink, pq.ParquetWriter(sink, self.schema, compression="snappy") as writer:
            for table in rows:
                count += table.num_rows
                writer.write_table(table.select(self.schema.names).cast(self.schema))
        return {"folder": folder, "name": name, "rows": count, "size": files.info(place).size}


def _runs(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows that belong together, with the folder that they belong to."""
    if not batch.num_rows:
        return
    if not columns:
        yield "", batch
        return
    values = list(zip(*(batch.column(name).to_pylist() for name in columns), strict=True))
    for key, numbers in groupby(range(batch.num_rows), key=values.__getitem__):
        rows = list(numbers)
        yield folder_of_partition(columns, key), batch.slice(rows[0], len(rows))


def folder_of_partition(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """As Hive and Spark name it."""
    parts = zip(columns, values, strict=True)
    return "".join(f"{quote(name, safe='')}={_folder_value(value)}/" for name, value in parts)


def _folder_value(value: str | None) -> str:
    return quote(value, safe=" ") if value else NULL_PARTITION


def _file_loads(parts: Iterator[pa.RecordBatch]) -> Iterator[Iterator[pa.Table]]:
    """Cut where a file would become too large."""
    groups = _row_groups(parts)
    for first in groups:
        yield _load(first, groups)


def _load(first: pa.Table, groups: Iterator[pa.Table]) -> Iterator[pa.Table]:
    size = first.nbytes
    yield first
    while size < _FILE_BYTES and (following := next(groups, None)) is not None:
        size += following.nbytes
        yield following


def _row_groups(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    import pyarrow as pa

    kept: list[pa.RecordBatch] = []
    size = 0
    for part in parts:
        kept.append(part)
        size += part.nbytes
        if size >= _ROW_GROUP_BYTES:
            yield pa.Table.from_batches(kept)
            kept, size = [], 0
    if kept:
        yield pa.Table.from_batches(kept)
