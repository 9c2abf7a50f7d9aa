"""Parquet files of a table, with names that say which writer wrote them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io.pyarrow import pyarrow_to_schema, write_file
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey, _to_partition_representation
from pyiceberg.table import WriteTask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.manifest import DataFile
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

_NO_UUID: Final = UUID(int=0)


@dataclass(frozen=True)
class _NamedTask(WriteTask):  # type: ignore[misc]  # a class of pyiceberg
    stem: str = ""

    def generate_data_file_filename(self, extension: str) -> str:
        return f"{self.stem}-{self.task_id:03d}.{extension}"


def write_files(table: Table, rows: pa.Table, stem: str) -> list[DataFile]:
    """One file for each partition of the table that has rows."""
    return list(write_file(io=table.io, table_metadata=table.metadata, tasks=_tasks(table.metadata, rows, stem)))


def _tasks(metadata: TableMetadata, rows: pa.Table, stem: str) -> Iterator[_NamedTask]:
    schema, spec = metadata.schema(), metadata.spec()
    given = pyarrow_to_schema(rows.schema, name_mapping=schema.name_mapping)
    if spec.is_unpartitioned():
        yield _NamedTask(_NO_UUID, 0, given, rows.to_batches(), stem=stem)
        return
    for number, (key, part) in enumerate(_partitions(schema, spec, rows)):
        yield _NamedTask(_NO_UUID, number, given, part.to_batches(), partition_key=key, stem=stem)


def _partitions(schema: Schema, spec: PartitionSpec, rows: pa.Table) -> Iterator[tuple[PartitionKey, pa.Table]]:
    """The rows of each partition. Not by pyiceberg's own function: its transforms need another package."""
    found = [_transformed(schema, field, rows) for field in spec.fields]
    names = [str(number) for number in range(len(found))]
    codes = pa.table([codes for _, codes in found], names=names)
    for combination in codes.group_by(names).aggregate([]).to_pylist():
        values = [
            PartitionFieldValue(field=field, value=known[combination[name]])
            for field, (known, _), name in zip(spec.fields, found, names, strict=True)
        ]
        is_there = functools.reduce(pc.and_, [pc.equal(codes[name], combination[name]) for name in names])
        yield PartitionKey(field_values=values, partition_spec=spec, schema=schema), rows.filter(is_there)


def _transformed(schema: Schema, field: PartitionField, rows: pa.Table) -> tuple[list[Any], pa.ChunkedArray]:
    """The values of a partition field, and for each row the number of its value."""
    kind = schema.find_field(field.source_id).field_type
    column = _leaf(rows, schema.find_column_name(field.source_id))
    if pa.types.is_timestamp(column.type) and str(field.transform) != "identity":
        # No transform is finer. There are few hours, and many microseconds.
        column = pc.floor_temporal(column, unit="hour")
    distinct = pc.unique(column)
    transform = field.transform.transform(kind)
    made = [transform(_to_partition_representation(kind, each)) for each in distinct.to_pylist()]
    known = list(dict.fromkeys(made))
    numbers = pa.array([known.index(each) for each in made], pa.int32())
    return known, numbers.take(pc.index_in(column, value_set=distinct))


def _leaf(rows: pa.Table, path: str) -> pa.ChunkedArray:
    """A column, or a field in a struct."""
    name, *inner = path.split(".")
    column = rows[name] if name in rows.column_names else rows[path]
    for each in inner if name in rows.column_names else ():
        column = pc.struct_field(column, each)
    return column
