"""`format = "raw"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ottla.spark.pipelines.formats.format import SourceFormat

if TYPE_CHECKING:
    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.fields import Fields


class RawFormat(SourceFormat, frozen=True, kw_only=True, tag="raw"):
    summary: ClassVar[str] = "records as they are: the columns `key`, `value` and `headers`"
    has_schema: ClassVar[bool] = False

    def check(self, source: Source, fields: Fields) -> None:
        if source.schema is not None:
            fields.wrong("schema", "raw records have the columns key, value and headers, and no schema")
        if source.nulls == "delete":
            fields.wrong("nulls", "raw records are not parsed; use value IS NULL in a step")

    def columns(self, schema: str | None) -> dict[str, str] | None:  # noqa: ARG002 - always the same
        return {"key": "binary", "value": "binary", "headers": "array<struct<key:string,value:binary>>"}
