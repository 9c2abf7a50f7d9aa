"""Avro records as rows, in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.spark.pipelines.avro import AvroDecoder
from ottla.spark.pipelines.avro_schema import avro_ddl
from ottla.spark.pipelines.formats.parser import TASK, Parser

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ottla.spark.pipelines.definition import Source

_ERROR: Final = "_error"


class AvroParser(Parser):
    def __init__(self, source: Source, *, is_framed: bool) -> None:
        super().__init__(source)
        self._is_framed = is_framed

    def parse(self, raw: DataFrame) -> DataFrame:
        decoder = AvroDecoder(self.schema, avro_ddl(self.schema), is_framed=self._is_framed)
        return raw.mapInArrow(decoder, decoder.output_ddl(raw)).withColumn(TASK, F.lit(0))

    def fails(self) -> Column:
        return F.col(_ERROR).isNotNull()

    def reason(self) -> Column:
        return F.col(_ERROR)
