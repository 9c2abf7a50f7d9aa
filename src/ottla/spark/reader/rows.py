"""Rows with the columns of Spark's Kafka connector, out of the columns of our codec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.core.ids import TopicPartition

ROWS_PER_BATCH: Final = 10_000
"""Spark takes Arrow batches of about this size fastest."""

_COLUMNS: Final = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)
_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_HEADERS: Final = StructField("headers", ArrayType(_HEADER))


_TYPES: Final = {field.name: field.dataType for field in (*_COLUMNS, _HEADERS)}


def spark_schema(*, with_headers: bool) -> StructType:
    return StructType([*_COLUMNS, _HEADERS] if with_headers else list(_COLUMNS))


def check_schema(schema: StructType) -> StructType:
    """Any of our columns, in any order: what is not asked for need not travel."""
    for field in schema.fields:
        if field.name not in _TYPES:
            raise ConfigError(f"the schema names a column {field.name}; there are {', '.join(_TYPES)}")
        if field.dataType != _TYPES[field.name]:
            wanted, given = _TYPES[field.name].simpleString(), field.dataType.simpleString()
            raise ConfigError(f"the column {field.name} is of type {wanted}, and the schema says {given}")
    return schema


class RowMaker:
    """Makes rows of one partition's records; what is the same in all of them is made once."""

    def __init__(self, at: TopicPartition, schema: StructType) -> None:
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._topic = pa.repeat(pa.scalar(at.topic, pa.string()), ROWS_PER_BATCH)
        self._partition = pa.repeat(pa.scalar(at.partition, pa.int32()), ROWS_PER_BATCH)

    @property
    def names(self) -> list[str]:
        names: list[str] = self._schema.names
        return names

    def rows(self, records: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for first in range(0, records.num_rows, ROWS_PER_BATCH):
            part = records.slice(first, ROWS_PER_BATCH)
            columns = [self._column(name, part) for name in self._schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(self, name: str, records: pa.RecordBatch) -> pa.Array:
        if name == "topic":
            return self._topic.slice(0, records.num_rows)
        if name == "partition":
            return self._partition.slice(0, records.num_rows)
        if name == "headers":
            return self._headers(records.column("headers"))
        if name == "timestampType":
            return records.column("timestamp_type").cast(pa.int32())
        column = records.column(name)
        return column.cast(self._schema.field("timestamp").type) if name == "timestamp" else column

    def _headers(self, headers: pa.ListArray) -> pa.ListArray:
        """Null where there are none, as in the Kafka connector."""
        import pyarrow.compute as pc  # 60 ms that only tasks have to spend, and not the planning of a query

        kind = self._schema.field("headers").type
        pairs = headers.values
        names, values = pairs.field(0), pairs.field(1)
        made = pa.StructArray.from_arrays([names, values], fields=list(kind.value_type))
        starts = pa.Array.from_buffers(
            pa.int32(), len(headers) + 1, [None, headers.buffers()[1]], offset=headers.offset
        )
        is_empty = pc.equal(pc.list_value_length(headers), 0)
        # A list array with a mask must not begin in the middle of its offsets.
        return pa.ListArray.from_arrays(pc.add(starts, 0), made, type=kind, mask=is_empty)
