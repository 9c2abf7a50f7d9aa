"""Records of `format("ottla")` as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import OttlaError
from ottla.lake import system_columns as names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_RECORD = {
    names.PARTITION: "partition",
    names.OFFSET: "offset",
    names.TIMESTAMP: "timestamp",
    names.KEY: "key",
    names.HEADERS: "headers",
    names.VALUE: "value",
}


def columns_of(records: DataFrame, schema: StructType) -> DataFrame:
    if unknown := [name for name in schema.names if name not in _RECORD]:
        raise OttlaError(f"values of this table are decoded, and {unknown[0]} is not a column of raw records")
    return records.selectExpr(*(f"{_RECORD[name]} AS `{name}`" for name in schema.names))
