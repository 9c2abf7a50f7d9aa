"""Records of `format("ottla")` as rows of a table, by the decoder of `ottla lake`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ottla.columns.arrow_types import with_schema
from ottla.core.errors import OttlaError
from ottla.lake import system_columns as names
from ottla.lake.names import VALUES
from ottla.lake.rows import decoded
from ottla.lake.values import ValueSettings, decoder_for
from ottla.spark.registry.spark_types import struct_type
from ottla.spark.tables.columns import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

_RECORD = ("partition", "offset", "timestamp", "key", "coalesce(headers, array()) AS headers", "value")


def value_settings(properties: Mapping[str, str], columns: list[str]) -> ValueSettings:
    """How the values of a table are decoded."""
    if (text := properties.get(VALUES)) is not None:
        return ValueSettings.parse(text)
    if set(columns) <= {*names.SYSTEM_COLUMNS, names.VALUE}:
        return ValueSettings()
    raise OttlaError(
        f"the table does not say how its values are decoded (property {VALUES}); run `ottla lake run` once to set it"
    )


def rows_of_records(records: DataFrame, settings: ValueSettings, topic: str) -> DataFrame:
    """Without the records that cannot be decoded: these are dead letters."""
    schema = StructType([*SYSTEM, *struct_type(decoder_for(settings, topic).columns).fields])
    return records.selectExpr(*_RECORD).mapInArrow(_Decoding(settings, topic, schema), schema)


class _Decoding:
    """In tasks, which build the decoder again: it cannot be pickled."""

    def __init__(self, settings: ValueSettings, topic: str, schema: StructType) -> None:
        self._settings = settings
        self._topic = topic
        self._schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = decoder_for(self._settings, self._topic)
        schema = to_arrow_schema(self._schema, timezone="UTC")
        for batch in batches:
            yield with_schema(decoded(batch, decoder, ()).rows, schema)
