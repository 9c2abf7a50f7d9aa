"""Column types as Spark's own classes, and expressions over values with schema ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.columns.types import Array, Map, Struct, columns_of, decimal_of

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

    from ottla.columns.types import Type


# Not by DDL, which needs a session: Python processes of Spark's have none.
_SIMPLE: Final[dict[str, DataType]] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "binary": BinaryType(),
    "string": StringType(),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
    "date": DateType(),
}


def spark_type(kind: Type) -> DataType:
    if isinstance(kind, Struct):
        return struct_type(kind)
    if isinstance(kind, Array):
        return ArrayType(spark_type(kind.element))
    if isinstance(kind, Map):
        return MapType(spark_type(kind.key), spark_type(kind.value))
    if (digits := decimal_of(kind)) is not None:
        return DecimalType(*digits)
    return _SIMPLE[kind]


def struct_type(columns: Struct) -> StructType:
    return StructType([StructField(each.name, spark_type(each.type)) for each in columns.fields])


def columns_in_struct(kind: StructType) -> Struct:
    return columns_of(kind.jsonValue())


def without_id(value: Column) -> Column:
    """The data after a schema id; all of them if the id is in a header."""
    first = F.substring(value, 1, 1)
    return (
        F.when(first == F.lit(bytearray(b"\0")), F.substring(value, F.lit(6), F.length(value)))
        .when(first == F.lit(bytearray(b"\1")), F.substring(value, F.lit(18), F.length(value)))
        .otherwise(value)
    )
