"""JSON with schema ids as rows, in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.schema.registry import Registry
from ottla.spark.pipelines.formats.parser import PARSED, TextParser
from ottla.spark.registry.new_fields import FieldGuard, has_known_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.formats.registered import RegisteredFormat


class FollowingJsonParser(TextParser):
    """Stops at a record of a newer schema with more fields."""

    def __init__(self, source: Source, given: RegisteredFormat) -> None:
        super().__init__(source)
        self._guard = FieldGuard(Registry(given.registry), given.settled(self.schema))

    def parse(self, raw: DataFrame) -> DataFrame:
        headers = F.col("headers") if "headers" in raw.columns else None
        is_known = has_known_fields(self._guard, F.col("value"), headers)
        return super().parse(raw).withColumn(PARSED, F.when(is_known, F.col(PARSED)))
