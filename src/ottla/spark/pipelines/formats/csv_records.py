"""`format = "csv"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from ottla.spark.pipelines.faults import CsvFault
from ottla.spark.pipelines.formats.format import SourceFormat
from ottla.spark.pipelines.inference import csv_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.formats.parser import Parser


class CsvFormat(SourceFormat, frozen=True, kw_only=True, tag="csv"):
    options: dict[str, str] = msgspec.field(default_factory=dict)
    """Spark's options of CSV, such as sep."""

    summary: ClassVar[str] = "a line of CSV in each record"

    def infer(self, values: Sequence[bytes | None], sample: int) -> str:
        return csv_schema(values, self.options, sample)

    def parsed(self, value: Column, schema: str) -> Column:
        from pyspark.sql import functions as F  # noqa: N812 - the usual name

        from ottla.spark.pipelines.formats.parser import text_options, with_corrupt

        return F.from_csv(value.cast("string"), with_corrupt(schema), text_options(self.options))

    def fault(self, schema: str) -> CsvFault:
        return CsvFault(schema, self.options)

    def parser(self, source: Source) -> Parser:
        from ottla.spark.pipelines.formats.parser import TextParser

        return TextParser(source)
