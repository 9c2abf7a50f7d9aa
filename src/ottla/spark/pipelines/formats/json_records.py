"""`format = "json"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from ottla.spark.pipelines.faults import FramedFault, JsonFault
from ottla.spark.pipelines.formats.registered import RegisteredFormat
from ottla.spark.pipelines.inference import json_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.formats.parser import Parser


class JsonFormat(RegisteredFormat, frozen=True, kw_only=True, tag="json"):
    options: dict[str, str] = msgspec.field(default_factory=dict)
    """Spark's options of JSON."""

    summary: ClassVar[str] = "a JSON object in each record, also after the id of a schema registry"

    def infer(self, values: Sequence[bytes | None], sample: int) -> str:
        return json_schema(values, sample)

    def parsed(self, value: Column, schema: str) -> Column:
        from pyspark.sql import functions as F  # noqa: N812 - the usual name

        from ottla.spark.pipelines.formats.parser import text_options, with_corrupt

        if self.registry:
            from ottla.spark.registry.spark_types import without_id

            value, schema = without_id(value), self.ddl(schema)
        return F.from_json(value.cast("string"), with_corrupt(schema), text_options(self.options))

    def fault(self, schema: str) -> JsonFault | FramedFault:
        return FramedFault(JsonFault(self.ddl(schema))) if self.registry else JsonFault(schema)

    def parser(self, source: Source) -> Parser:
        if self.registry and self.new_fields == "follow":
            from ottla.spark.pipelines.formats.registered_json import FollowingJsonParser

            return FollowingJsonParser(source, self)
        from ottla.spark.pipelines.formats.parser import TextParser

        return TextParser(source)
