"""The rows of a table in an object store as a DataFrame, read by Spark's workers without Hadoop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.columns.abilities import ANY
from ottla.columns.arrow_types import arrow_schema
from ottla.columns.types import struct_of
from ottla.spark.pipelines.evolution.conforming import ddl_of
from ottla.spark.pipelines.tables.staging import partition_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ottla.columns.types import Struct
    from ottla.spark.pipelines.stores.files import Files
    from ottla.spark.pipelines.stores.settings import StorageSettings

_BATCH_ROWS = 1 << 16


def store_frame(spark: SparkSession, files: Files, addresses: Sequence[str], columns: Struct) -> DataFrame:
    known = struct_of((each.name, "string" if each.type == ANY else each.type) for each in columns.fields)
    read = RowReader(address=files.root, settings=files.settings, schema=arrow_schema(known))
    names = [(name,) for each in addresses if (name := files.name_of(each)) is not None]
    listed = spark.createDataFrame(names, "name string").repartition(min(len(names), 200))
    return listed.mapInArrow(read, ", ".join(f"`{each.name}` {ddl_of(each.type)}" for each in known.fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """A function for Spark's workers: names of files in, their rows out."""

    address: str
    settings: StorageSettings
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        from ottla.spark.pipelines.stores.object_files import ObjectFiles

        files = ObjectFiles(self.address, self.settings)
        for name in (name for batch in batches for name in batch.column("name").to_pylist()):
            values = dict(partition_of(name.split("/")[:-1]))
            with pq.ParquetFile(files.source(name)) as opened:
                for rows in opened.iter_batches(_BATCH_ROWS):
                    yield self._as_stored(rows, values)

    def _as_stored(self, rows: pa.RecordBatch, values: dict[str, str | None]) -> pa.RecordBatch:
        """With the table's columns: those that the file does not have are in its folders' names, or null."""
        import pyarrow as pa

        def column(field: pa.Field) -> pa.Array:
            if field.name in rows.schema.names:
                return rows.column(field.name).cast(field.type)
            value = values.get(field.name)
            if value is None:
                return pa.nulls(rows.num_rows, field.type)
            return pa.repeat(pa.scalar(value), rows.num_rows).cast(field.type)

        return pa.RecordBatch.from_arrays([column(field) for field in self.schema], schema=self.schema)
