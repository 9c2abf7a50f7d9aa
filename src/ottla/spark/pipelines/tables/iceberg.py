"""An Iceberg table, by the package pyiceberg. A property of the table names the last micro-batch of each query, and
changes together with the files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.arrow_types import arrow_columns, arrow_schema
from ottla.spark.pipelines.evolution.rules import TableColumns
from ottla.spark.pipelines.tables.interface import Tidied
from ottla.spark.pipelines.tables.merging import data_file, groups_to_merge, merge
from ottla.spark.pipelines.tables.staging import BatchId, clear, put_in_place, stage
from ottla.spark.pipelines.tables.strays import remove_strays

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.evolution.rules import Evolution

_BATCH: Final = "ottla.batch."
_COPY: Final = "__partition_"


class IcebergTable:
    """In a catalog that is a SQLite file beside the data, unless another is given."""

    def __init__(self, path: str, name: str, partition_by: Sequence[str], catalog: Mapping[str, str]) -> None:
        self._warehouse = Path(path)
        self._name = name
        self._partition_by = list(partition_by)
        self._catalog_settings = dict(catalog)
        self._root = self._warehouse.joinpath(*name.split(".")) / "data"

    def has(self, batch: BatchId) -> bool:
        table = self._opened()
        last = None if table is None else table.properties.get(_BATCH + batch.query)
        return last is not None and int(last) >= batch.number

    def columns(self) -> TableColumns | None:
        table = self._opened()
        return None if table is None else TableColumns(arrow_columns(table.schema().as_arrow()))

    def add(self, frame: DataFrame, batch: BatchId, evolution: Evolution) -> int:
        schema = arrow_schema(evolution.columns)
        # Iceberg wants the columns of a partition in its files, and Spark leaves out those that name folders.
        for column in self._partition_by:
            frame = frame.withColumn(_COPY + column, frame[column])
        files = stage(frame, self._root, batch, [_COPY + column for column in self._partition_by])
        places = put_in_place(self._root, files)
        table = self._opened() or self._created(schema)
        with table.transaction() as change:
            if evolution.changes:
                with change.update_schema() as new:
                    new.union_by_name(schema)
            change.set_properties({_BATCH + batch.query: str(batch.number)})
            if places:
                change.add_files([_uri(place) for place in places])
        clear(self._root, batch)
        return sum(each.row_count for each in files)

    def files(self) -> list[str]:
        table = self._opened()
        if table is None:
            raise ConfigError(f"there is no Iceberg table {self._name} in {self._warehouse}")
        return [_path(task.file.file_path) for task in table.scan().plan_files()]

    def tidy(self, *, target_file_bytes: int, orphan_age_s: float) -> Tidied:
        table = self._opened()
        if table is None:
            return Tidied()
        merged = new = 0
        small = [data_file(Path(each)) for each in self.files()]
        for number, group in enumerate(groups_to_merge(small, target_file_bytes)):
            self._replace(table, group, number)
            merged += len(group)
            new += 1
        table.refresh()
        known = {_path(each) for each in table.inspect.all_files()["file_path"].to_pylist()}
        return Tidied(merged, new, remove_strays(self._root, known, orphan_age_s))

    def _replace(self, table: Any, group: Sequence[Path], number: int) -> None:  # noqa: ANN401 - pyiceberg's own
        """One file for many, in one snapshot."""
        from pyiceberg.io.pyarrow import parquet_file_to_data_file

        table.refresh()
        version = table.metadata.last_sequence_number
        merged = group[0].parent / f"merged-{version}-{number}.parquet"
        merge(group, merged)
        old = {str(each) for each in group}
        gone = [task.file for task in table.scan().plan_files() if _path(task.file.file_path) in old]
        with table.transaction() as change, change.update_snapshot().overwrite() as snapshot:
            for file in gone:
                snapshot.delete_data_file(file)
            snapshot.append_data_file(parquet_file_to_data_file(table.io, change.table_metadata, _uri(merged)))

    def _opened(self) -> Any:  # noqa: ANN401 - pyiceberg's own
        catalog = self._catalog()
        return catalog.load_table(self._name) if catalog.table_exists(self._name) else None

    def _created(self, schema: pa.Schema) -> Any:  # noqa: ANN401 - pyiceberg's own
        from pyiceberg.transforms import IdentityTransform

        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(self._name.split(".")[0])
        table = catalog.create_table(self._name, schema, location=_uri(self._root.parent))
        if self._partition_by:
            with table.update_spec() as spec:
                for column in self._partition_by:
                    spec.add_field(column, IdentityTransform(), column)
        return table

    def _catalog(self) -> Any:  # noqa: ANN401 - pyiceberg's own
        load_catalog = imported_load_catalog()
        if self._catalog_settings:
            return load_catalog("ottla", **self._catalog_settings)
        self._warehouse.mkdir(parents=True, exist_ok=True)
        database = f"sqlite:///{self._warehouse / 'catalog.db'}"
        return load_catalog("ottla", type="sql", uri=database, warehouse=_uri(self._warehouse))


def _uri(path: Path) -> str:
    """As pyiceberg reads it: with nothing escaped."""
    return f"file://{path}"


def _path(uri: str) -> str:
    return uri.removeprefix("file://")


def imported_load_catalog() -> Any:  # noqa: ANN401 - a function
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError:
        raise ConfigError("an iceberg sink needs the package pyiceberg; run: pip install 'ottla[pipelines]'") from None
    return load_catalog
