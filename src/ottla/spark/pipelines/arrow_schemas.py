"""A frame's schema in Arrow's types. Spark's own functions for it change with every version; what it sends does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def arrow_schema(frame: DataFrame) -> pa.Schema:
    return schema_in_arrow(frame.sparkSession, frame.schema)


def schema_in_arrow(spark: SparkSession, schema: StructType) -> pa.Schema:
    return spark.createDataFrame([], schema).toArrow().schema
