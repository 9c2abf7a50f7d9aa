"""Iceberg schemas as Spark schemas, and whether columns are found in files by their names. Pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import types as spark

from ottla.core.errors import ConfigError
from ottla.lake import system_columns as names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField

_PLAIN: Final[dict[str, spark.DataType]] = {
    "boolean": spark.BooleanType(),
    "int": spark.IntegerType(),
    "long": spark.LongType(),
    "float": spark.FloatType(),
    "double": spark.DoubleType(),
    "date": spark.DateType(),
    "timestamp": spark.TimestampNTZType(),
    "timestamptz": spark.TimestampType(),
    "string": spark.StringType(),
    "binary": spark.BinaryType(),
}
_FIELD_ID: Final = "parquet.field.id"
"""Spark finds a column in a file by this id if `BY_ID` is set."""
SYSTEM: Final = (
    spark.StructField(names.PARTITION, spark.IntegerType()),
    spark.StructField(names.OFFSET, spark.LongType()),
    spark.StructField(names.TIMESTAMP, spark.TimestampType()),
    spark.StructField(names.KEY, spark.BinaryType()),
    spark.StructField(
        names.HEADERS,
        spark.ArrayType(
            spark.StructType(
                [spark.StructField("key", spark.StringType()), spark.StructField("value", spark.BinaryType())]
            )
        ),
    ),
)
"""Columns of every table."""
BY_ID: Final = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
}


def spark_schema(schema: Schema, *, by_id: bool = False) -> spark.StructType:
    return _struct(schema.fields, by_id=by_id)


def _struct(fields: Iterable[NestedField], *, by_id: bool) -> spark.StructType:
    return spark.StructType(
        [
            # Columns that were added later are null in older files, whatever the table says.
            spark.StructField(
                each.name, _type(each.field_type, by_id=by_id), metadata={_FIELD_ID: each.field_id} if by_id else None
            )
            for each in fields
        ]
    )


def _type(kind: IcebergType, *, by_id: bool) -> spark.DataType:
    name = str(kind)
    if name in _PLAIN:
        return _PLAIN[name]
    if name.startswith("decimal"):
        return spark.DecimalType(kind.precision, kind.scale)
    if name.startswith("fixed"):
        return spark.BinaryType()
    if hasattr(kind, "fields"):
        return _struct(kind.fields, by_id=by_id)
    if hasattr(kind, "element_type"):
        return spark.ArrayType(_type(kind.element_type, by_id=by_id))
    if hasattr(kind, "key_type"):
        return spark.MapType(_type(kind.key_type, by_id=by_id), _type(kind.value_type, by_id=by_id))
    raise ConfigError(
        f"Spark's Parquet reader cannot read a column of type {name}; read the table with the jar of Iceberg instead"
    )


def has_renamed_columns(schemas: Iterable[Schema], current: Schema) -> bool:
    """Whether a current column had another name once, or its name belonged to another column."""
    ids = dict(_names(current.fields))
    current_names = {field_id: name for name, field_id in ids.items()}
    for schema in schemas:
        for name, field_id in _names(schema.fields):
            if current_names.get(field_id, name) != name or ids.get(name, field_id) != field_id:
                return True
    return False


def _names(fields: Iterable[NestedField], prefix: str = "") -> Iterator[tuple[str, int]]:
    for each in fields:
        name = f"{prefix}{each.name}"
        yield name, each.field_id
        yield from _nested(each.field_type, f"{name}.")


def _nested(kind: IcebergType, prefix: str) -> Iterator[tuple[str, int]]:
    if hasattr(kind, "fields"):
        yield from _names(kind.fields, prefix)
    elif hasattr(kind, "element_type"):
        yield from _nested(kind.element_type, prefix)
    elif hasattr(kind, "value_type"):
        yield from _nested(kind.key_type, f"{prefix}key.")
        yield from _nested(kind.value_type, f"{prefix}value.")
