"""`format = "debezium"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from ottla.spark.pipelines.changes.debezium import CHANGE_COLUMNS, DebeziumFault, rows_in
from ottla.spark.pipelines.formats.format import Nulls, SourceFormat
from ottla.spark.pipelines.inference import json_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.formats.parser import Parser


class DebeziumFormat(SourceFormat, frozen=True, kw_only=True, tag="debezium"):
    flattened: bool = False
    """Records are flat rows, as produced by the transformation ExtractNewRecordState."""
    options: dict[str, str] = msgspec.field(default_factory=dict)
    """Spark's options of JSON."""

    summary: ClassVar[str] = "change events of Debezium in JSON"
    has_deletes: ClassVar[bool] = True
    extra_columns: ClassVar[tuple[str, ...]] = CHANGE_COLUMNS
    # A record without a value follows the delete of its row, and may be all that compaction left of it.
    default_nulls: ClassVar[Nulls] = "delete"

    def check(self, source: Source, fields: Fields) -> None:
        if source.nulls not in ("delete", "skip"):
            fields.wrong("nulls", "is delete or skip for records of Debezium")

    def infer(self, values: Sequence[bytes | None], sample: int) -> str:
        return json_schema(rows_in(values, is_flattened=self.flattened), sample)

    def fault(self, schema: str) -> DebeziumFault:
        return DebeziumFault(schema, is_flattened=self.flattened)

    def parser(self, source: Source) -> Parser:
        from ottla.spark.pipelines.changes.debezium_rows import DebeziumParser

        return DebeziumParser(source, self)
