"""`kind = "parquet"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ottla.spark.pipelines.evolution.abilities import Abilities
from ottla.spark.pipelines.sinks.tables import TableSink

if TYPE_CHECKING:
    from ottla.spark.pipelines.tables.interface import Table


class ParquetSink(TableSink, frozen=True, kw_only=True, tag="parquet"):
    summary: ClassVar[str] = "a folder of Parquet files"
    hints: ClassVar[dict[str, str]] = {"key": "to replace rows by key, use delta or iceberg"}
    abilities: ClassVar[Abilities] = Abilities(
        title="a Parquet folder",
        can_widen=False,
        stored_as={},
        why_not_widen="files of both types would stand side by side, and readers fail on one of them",
    )
    example: ClassVar[tuple[str, ...]] = (
        'path = "{name}"                 # a folder of Parquet files',
        '# path = "s3://bucket/{name}"     # or gs://, abfs://; see "Object stores" in docs/pipelines.md',
        '# partition_by = "day"          # a folder for each value',
        "compact_every = 100             # merge small files every 100 micro-batches",
    )

    def open_table(self) -> Table:
        from ottla.spark.pipelines.tables.parquet import ParquetTable

        return ParquetTable(self.files(), self.partition_by)
