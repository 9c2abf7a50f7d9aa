"""Conversion of column types to and from Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ottla.columns.types import Array, Map, Struct, decimal_of, struct_of
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.columns.types import Type

_ARROW_WORDS: Final = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float": "float", "double": "double",
    "string": "string", "large_string": "string", "binary": "binary", "large_binary": "binary", "bool": "boolean",
    "date32[day]": "date",
}  # fmt: skip


def from_arrow(kind: pa.DataType) -> Type:
    if pa.types.is_struct(kind):
        return struct_of((field.name, from_arrow(field.type)) for field in kind.fields)
    if pa.types.is_map(kind):
        return Map(from_arrow(kind.key_type), from_arrow(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return Array(from_arrow(kind.value_type))
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _ARROW_WORDS.get(str(kind), str(kind))


def arrow_columns(schema: pa.Schema) -> Struct:
    return struct_of((field.name, from_arrow(field.type)) for field in schema)


def to_arrow(kind: Type) -> pa.DataType:
    if isinstance(kind, Struct):
        return pa.struct([pa.field(each.name, to_arrow(each.type)) for each in kind.fields])
    if isinstance(kind, Array):
        return pa.list_(to_arrow(kind.element))
    if isinstance(kind, Map):
        return pa.map_(to_arrow(kind.key), to_arrow(kind.value))
    if (digits := decimal_of(kind)) is not None:
        return pa.decimal128(*digits)
    if kind.startswith("timestamp"):
        return pa.timestamp("us", tz=None if kind == "timestamp_ntz" else "UTC")
    arrow = {spark: arrow for arrow, spark in _ARROW_WORDS.items() if not arrow.startswith("large_")}.get(kind)
    if arrow is None:
        raise ConfigError(f"a table of files cannot store the type {kind}; cast the column to string")
    return pa.type_for_alias(arrow)


def with_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with these columns, whose types are the same or wider; a column that they lack is null."""
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def arrow_schema(columns: Struct) -> pa.Schema:
    return pa.schema([pa.field(field.name, to_arrow(field.type)) for field in columns.fields])
