"""The table of a sink. No Spark is imported here, so that a clean-up needs none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ottla.spark.pipelines.stores.addresses import is_in_store
from ottla.spark.pipelines.stores.files import LocalFiles

if TYPE_CHECKING:
    from ottla.spark.pipelines.definition import Sink
    from ottla.spark.pipelines.stores.files import Files
    from ottla.spark.pipelines.tables.interface import Table, Tidied


def files_of(sink: Sink) -> Files:
    if not is_in_store(sink.path):
        return LocalFiles(Path(sink.path))
    from ottla.spark.pipelines.stores.opening import store_files

    return store_files(sink.path, sink.storage)


def table_of(sink: Sink) -> Table:
    if sink.kind == "parquet":
        from ottla.spark.pipelines.tables.parquet import ParquetTable

        return ParquetTable(files_of(sink), sink.partition_by)
    if sink.kind == "delta":
        from ottla.spark.pipelines.tables.delta import DeltaTable

        return DeltaTable(files_of(sink), sink.partition_by, sink.keep_versions)
    from ottla.spark.pipelines.tables.iceberg import IcebergTable

    return IcebergTable(sink, files_of(sink))


def tidy(sink: Sink, *, orphan_age_s: float = 3600.0) -> Tidied:
    return table_of(sink).tidy(target_file_bytes=sink.target_file_bytes, orphan_age_s=orphan_age_s)
