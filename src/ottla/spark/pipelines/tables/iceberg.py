"""An Iceberg table, with the package pyiceberg. A table property has the last micro-batch of each query, and changes in
the same commit as the files.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any, Final

from ottla.columns.arrow_types import arrow_columns, arrow_schema
from ottla.columns.evolution import TableColumns
from ottla.columns.types import columns_of
from ottla.core.errors import ConfigError
from ottla.lake.snapshots import UPKEEP, forget_oldest
from ottla.spark.pipelines.stores.files import FileInfo, LocalFiles
from ottla.spark.pipelines.tables.changes import Changes
from ottla.spark.pipelines.tables.interface import KEEP_VERSIONS, CleanupResult
from ottla.spark.pipelines.tables.merging import folder_of, groups_to_merge, merge, small_files
from ottla.spark.pipelines.tables.replaced import ReplacedFiles
from ottla.spark.pipelines.tables.staging import (
    STAGED_ASIDE,
    BatchId,
    Staging,
    clear,
    put_in_place,
    stage,
    staged_rows,
)
from ottla.spark.pipelines.tables.strays import remove_strays, remove_unused_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table, Transaction
    from pyspark.sql import DataFrame

    from ottla.columns.evolution import Evolution
    from ottla.spark.pipelines.changes.rules import ChangeRule
    from ottla.spark.pipelines.sinks.iceberg import IcebergSink
    from ottla.spark.pipelines.stores.files import Files
    from ottla.spark.pipelines.tables.staging import StagedFile

_BATCH: Final = "ottla.batch."
_COPY: Final = "__partition_"
_CREATED_BY_PIPELINE: Final = "ottla.created-by-pipeline"


class IcebergTable:
    """In a catalog that is a SQLite file beside the data, unless another is given."""

    def __init__(self, sink: IcebergSink, warehouse: Files) -> None:
        self._warehouse = warehouse
        self._name = sink.table
        self._partition_by = list(sink.partition_by)
        self._catalog_settings = dict(sink.catalog)
        self._keep_versions = sink.keep_versions
        self._table: Any = None
        self._opened_catalog: Any = None
        self._replaced = ReplacedFiles()
        self._location = sink.table.replace(".", "/")
        self._files = warehouse.at(warehouse.place(f"{self._location}/data"))

    def has(self, batch: BatchId) -> bool:
        table = self._opened()
        last = None if table is None else table.properties.get(_BATCH + batch.query)
        return last is not None and int(last) >= batch.number

    def columns(self) -> TableColumns | None:
        table = self._opened()
        return None if table is None else TableColumns(arrow_columns(table.schema().as_arrow()))

    def stage(self, frame: DataFrame, batch: BatchId) -> list[StagedFile]:
        # Iceberg wants the columns of a partition in its files, and Spark leaves out those that name folders.
        for column in self._partition_by:
            frame = frame.withColumn(_COPY + column, frame[column])
        return stage(frame, self._files, batch, Staging([_COPY + column for column in self._partition_by]))

    def commit(self, files: Sequence[StagedFile], batch: BatchId, evolution: Evolution) -> int:
        names = put_in_place(self._files, files)
        table = self._table or self._opened() or self._created(arrow_schema(evolution.columns))
        with _transaction(table) as change:
            self._prepare(table, change, batch, evolution)
            if names:
                # Whether the files are there is known by the micro-batch; asking for it opens every manifest.
                change.add_files([self._files.address(name) for name in names], check_duplicate_files=False)
        self._table = table
        clear(self._files, batch)
        return sum(each.row_count for each in files)

    def stage_changes(self, frame: DataFrame, batch: BatchId) -> Changes:
        schema = arrow_schema(columns_of(frame.schema.jsonValue()))
        return Changes(staged_rows(self._files, stage(frame, self._files, batch, STAGED_ASIDE), schema))

    def merge(self, changes: Changes, batch: BatchId, evolution: Evolution, rule: ChangeRule) -> int:
        from ottla.spark.pipelines.tables.iceberg_merge import rewrite
        from ottla.spark.pipelines.tables.iceberg_overwrite import overwrite

        table = self._opened()
        with _transaction(table) as change:
            self._prepare(table, change, batch, evolution)
            done = rewrite(table, change.table_metadata, changes, rule)
            if done.old or done.new:
                with overwrite(table, change) as snapshot:
                    for file in done.old:
                        snapshot.delete_data_file(file)
                    for file in done.new:
                        snapshot.append_data_file(file)
        self._table = table
        self._remove_replaced(table, [file.file_path for file in done.old])
        clear(self._files, batch)
        return done.row_count

    def _remove_replaced(self, table: Table, files: Sequence[str]) -> None:
        self._replaced.note(files, time.monotonic())
        keep = self._kept_versions(table.metadata.properties)
        due = () if keep is None else self._replaced.due(keep, time.monotonic())
        self._files.remove(name for each in due if (name := self._files.name_of(each)) is not None)

    def _prepare(self, table: Table, change: Transaction, batch: BatchId, evolution: Evolution) -> None:
        """Everything in a commit except its files."""
        self._expire(table, change)
        if evolution.changes:
            with change.update_schema() as new:
                new.union_by_name(arrow_schema(evolution.columns))
        change.set_properties({_BATCH + batch.query: str(batch.number)})

    def _expire(self, table: Table, change: Transaction) -> None:
        """Forget the oldest snapshots: every commit reads, copies and writes the list of all."""
        keep = self._kept_versions(table.metadata.properties)
        if keep is not None:
            forget_oldest(table, change, keep)

    def _kept_versions(self, properties: Mapping[str, str]) -> int | None:
        """None for a table created by others: its history is not shortened."""
        is_ours = not self._catalog_settings or _CREATED_BY_PIPELINE in properties
        return self._keep_versions or (KEEP_VERSIONS if is_ours else None)

    def files(self) -> list[str]:
        table = self._opened()
        if table is None:
            raise ConfigError(f"there is no Iceberg table {self._name} in {self._warehouse.root}")
        return [_path(task.file.file_path) for task in table.scan().plan_files()]

    def tidy(self, *, target_file_bytes: int, orphan_age_s: float) -> CleanupResult:
        table = self._opened()
        if table is None:
            return CleanupResult()
        merged = new = 0
        small = small_files(self._files, self._listed(table), target_file_bytes)
        for number, group in enumerate(groups_to_merge(small, target_file_bytes)):
            self._replace(table, group, number)
            merged += len(group)
            new += 1
        return CleanupResult(merged, new, self.remove_orphans(orphan_age_s))

    def remove_orphans(self, age_s: float) -> int:
        table = self._opened()
        if table is None:
            return 0
        data = {self._files.name_of(each) for each in table.inspect.all_files()["file_path"].to_pylist()}
        metadata = self._files.at(f"{table.location()}/metadata")
        remove_unused_metadata(metadata, {metadata.name_of(each) or "" for each in _metadata_files(table)}, age_s)
        return remove_strays(self._files, data - {None}, age_s)  # type: ignore[arg-type]  # there is no None

    def _listed(self, table: Table) -> list[FileInfo]:
        """The table's files in its folder; files elsewhere are not changed."""
        found = [(self._files.name_of(task.file.file_path), task.file) for task in table.scan().plan_files()]
        return [FileInfo(name, file.file_size_in_bytes, 0.0) for name, file in found if name is not None]

    def _replace(self, table: Table, group: Sequence[str], number: int) -> None:
        """Replace many files by one, in one snapshot."""
        from pyiceberg.io.pyarrow import parquet_file_to_data_file

        from ottla.spark.pipelines.tables.iceberg_overwrite import overwrite

        table.refresh()
        version = table.metadata.last_sequence_number
        # The name is unique: a concurrent compaction writes another file.
        merged = f"{folder_of(group[0])}merged-{version}-{number}-{secrets.token_hex(4)}.parquet"
        merge(self._files, group, merged)
        old = set(group)
        gone = [task.file for task in table.scan().plan_files() if self._files.name_of(task.file.file_path) in old]
        with _transaction(table) as change, overwrite(table, change) as snapshot:
            for file in gone:
                snapshot.delete_data_file(file)
            address = self._files.address(merged)
            snapshot.append_data_file(parquet_file_to_data_file(table.io, change.table_metadata, address))

    def _opened(self) -> Table:
        """The table, reloaded."""
        if self._table is not None:
            self._table.refresh()
        else:
            catalog = self._catalog()
            self._table = catalog.load_table(self._name) if catalog.table_exists(self._name) else None
        return self._table

    def _created(self, schema: pa.Schema) -> Table:
        from pyiceberg.transforms import IdentityTransform

        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(self._name.split(".")[0])
        table = catalog.create_table(
            self._name,
            schema,
            location=self._warehouse.address(self._location),
            properties=UPKEEP | {_CREATED_BY_PIPELINE: "true"},
        )
        if self._partition_by:
            with table.update_spec() as spec:
                for column in self._partition_by:
                    spec.add_field(column, IdentityTransform(), column)
        return table

    def _catalog(self) -> Catalog:
        if self._opened_catalog is None:
            self._opened_catalog = self._loaded_catalog()
        return self._opened_catalog

    def _loaded_catalog(self) -> Catalog:
        load_catalog = imported_load_catalog()
        if self._catalog_settings:
            return load_catalog("ottla", **{**self._warehouse.iceberg_properties, **self._catalog_settings})
        if not isinstance(self._warehouse, LocalFiles):
            raise ConfigError(f"{self._warehouse.root}: an iceberg sink in an object store needs a catalog")
        folder = self._warehouse.folder
        folder.mkdir(parents=True, exist_ok=True)
        database = f"sqlite:///{folder / 'catalog.db'}"
        return load_catalog("ottla", type="sql", uri=database, warehouse=self._warehouse.address(""))


def _metadata_files(table: Table) -> set[str]:
    """The metadata files of the table and of each of its snapshots."""
    used = {table.metadata_location, *(each.metadata_file for each in table.metadata.metadata_log)}
    for snapshot in table.metadata.snapshots:
        used.add(snapshot.manifest_list)
        used |= {manifest.manifest_path for manifest in snapshot.manifests(table.io)}
    return used


def _path(uri: str) -> str:
    return uri.removeprefix("file://")


def imported_load_catalog() -> Callable[..., Catalog]:
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError:
        raise ConfigError("an iceberg sink needs the package pyiceberg; run: pip install 'ottla[pipelines]'") from None
    load: Callable[..., Catalog] = load_catalog
    return load


def _transaction(table: Table) -> Transaction:
    from ottla.lake.transactions import TableTransaction

    return TableTransaction(table)
