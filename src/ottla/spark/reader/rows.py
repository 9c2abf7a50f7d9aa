"""Rows with the columns of Spark's Kafka connector, made from the columns of the record codec."""

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
"""Spark is fastest with Arrow batches of about this size."""

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
    """Check a user's schema: any of the columns, in any order; other columns are not transferred."""
    for field in schema.fields:
        if field.name not in _TYPES:
            raise ConfigError(f"no column {field.name} in this source; it has {', '.join(_TYPES)}")
        if field.dataType != _TYPES[field.name]:
            wanted, given = _TYPES[field.name].simpleString(), field.dataType.simpleString()
            raise ConfigError(f"the column {field.name} has type {wanted}, but the schema says {given}")
    return schema


class RowMaker:
    """Makes rows of one partition's records; constant columns are made once."""

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
        import pyarrow.compute as pc  # takes 60 ms, which the planning of a query does not need

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
