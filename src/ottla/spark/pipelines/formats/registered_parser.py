"""Records with schema ids as rows, in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StringType, StructField, StructType

from ottla.decoding.decoder import ColumnDecoder, RegistryDecoder
from ottla.schema.registry import Registry
from ottla.spark.pipelines.formats.parser import PARSED, TASK, Parser
from ottla.spark.registry.spark_types import struct_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.formats.registered import RegisteredFormat

_ERROR: Final = "_error"


class RegisteredParser(Parser):
    def __init__(self, source: Source, given: RegisteredFormat) -> None:
        super().__init__(source)
        self._settled = given.settled(self.schema)
        self._decoder = ColumnDecoder(Registry(given.registry), self._settled, given.new_fields)

    def parse(self, raw: DataFrame) -> DataFrame:
        parsed = StructField(PARSED, struct_type(self._settled.columns))
        made = StructType([*raw.schema.fields, parsed, StructField(_ERROR, StringType())])
        return raw.mapInArrow(RegistryDecoder(self._decoder), made).withColumn(TASK, F.lit(0))

    def fails(self) -> Column:
        return F.col(_ERROR).isNotNull()

    def reason(self) -> Column:
        return F.col(_ERROR)
