"""`kind = "parquet"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ottla.columns.abilities import Abilities
from ottla.spark.pipelines.sinks.tables import TableSink

if TYPE_CHECKING:
    from ottla.spark.pipelines.tables.interface import Table


class ParquetSink(TableSink, frozen=True, kw_only=True, tag="parquet"):
    summary: ClassVar[str] = "a folder of Parquet files"
    hints: ClassVar[dict[str, str]] = {"key": "to replace rows by key, use delta or iceberg"}
    abilities: ClassVar[Abilities] = Abilities(
        title="a Parquet folder",
        can_widen=True,
        rewrites_to_widen=True,
        stored_as={},
    )
    example: ClassVar[tuple[str, ...]] = (
        'path = "{name}"                 # a folder of Parquet files',
        '# path = "s3://bucket/{name}"     # or gs://, abfs://; see "Object stores" in docs/pipelines.md',
        '# partition_by = "day"          # a folder for each value',
        "compact_every = 100             # merge small files every 100 micro-batches",
    )

    @property
    def replaces_files(self) -> bool:
        return self.compact_every is not None or self.evolution == "widen"

    def open_table(self) -> Table:
        from ottla.spark.pipelines.tables.parquet import ParquetTable

        return ParquetTable(self.files(), self.partition_by)
