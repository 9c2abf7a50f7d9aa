"""`format("ottla")`: the implementation of Spark's data source API."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource

from ottla.spark.errors import SinkError
from ottla.spark.kafka_settings import truth
from ottla.spark.reader.decoded import decoded_schema, decoding
from ottla.spark.reader.options import parse_source
from ottla.spark.reader.rows import check_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

_PUSHES_FILTERS: Final = "data_source_pushdown_filters.py"


class OttlaDataSource(DataSource):
    """Topics of Ottla or of any Kafka broker, with the columns and options of Spark's Kafka connector."""

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> StructType:
        records = spark_schema(with_headers=truth("includeHeaders", self.options.get("includeheaders", "false")))
        return decoded_schema(records, self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from ottla.spark.reader.batch_reader import BatchReader, FilteringBatchReader

        options = parse_source(self.options, is_stream=False)
        # Spark refuses readers that take filters where it pushes none, so only who pushes them gets such a one.
        is_pushing = sys._getframe(1).f_code.co_filename.endswith(_PUSHES_FILTERS)  # noqa: SLF001
        reader = FilteringBatchReader if options.push_filters and is_pushing else BatchReader
        records, decode = decoding(schema, self.options)
        made = reader(options, check_schema(records))
        made.decode = decode
        return made

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from ottla.spark.reader.stream_reader import StreamReader

        records, decode = decoding(schema, self.options)
        made = StreamReader(parse_source(self.options, is_stream=True), check_schema(records))
        made.decode = decode
        return made

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's signature
        from ottla.spark.writer.options import parse_sink
        from ottla.spark.writer.writers import BatchWriter, NamedBatchWriter

        if overwrite:
            raise SinkError("a topic cannot be overwritten; use mode append")
        options = parse_sink(self.options, schema)
        return BatchWriter(options) if options.write_id is None else NamedBatchWriter(options, options.write_id)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: ARG002, FBT001, N802
        from ottla.spark.writer.options import parse_sink
        from ottla.spark.writer.writers import StreamWriter

        options = parse_sink(self.options, schema)
        if options.write_id is not None:
            raise SinkError("writeId is for batch writes; a stream continues from its checkpoint")
        return StreamWriter(options)
