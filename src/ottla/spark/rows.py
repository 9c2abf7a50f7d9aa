"""Rows with the columns of Spark's Kafka connector, out of the columns of our codec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
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


def spark_schema(*, with_headers: bool) -> StructType:
    return StructType([*_COLUMNS, _HEADERS] if with_headers else list(_COLUMNS))


class RowMaker:
    """Makes rows of one partition's records; what is the same in all of them is made once."""

    def __init__(self, at: TopicPartition, *, with_headers: bool) -> None:
        self._schema = to_arrow_schema(spark_schema(with_headers=with_headers), timezone="UTC")
        self._with_headers = with_headers
        self._topic = pa.repeat(pa.scalar(at.topic, pa.string()), ROWS_PER_BATCH)
        self._partition = pa.repeat(pa.scalar(at.partition, pa.int32()), ROWS_PER_BATCH)

    def rows(self, records: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for first in range(0, records.num_rows, ROWS_PER_BATCH):
            yield self._convert(records.slice(first, ROWS_PER_BATCH))

    def _convert(self, records: pa.RecordBatch) -> pa.RecordBatch:
        count = records.num_rows
        columns = [
            records.column("key"),
            records.column("value"),
            self._topic.slice(0, count),
            self._partition.slice(0, count),
            records.column("offset"),
            records.column("timestamp").cast(self._schema.field("timestamp").type),
            records.column("timestamp_type").cast(pa.int32()),
        ]
        if self._with_headers:
            columns.append(self._headers(records.column("headers")))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _headers(self, headers: pa.ListArray) -> pa.ListArray:
        """Null where there are none, as in the Kafka connector."""
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
