"""`format = "avro"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.avro_schema import avro_columns
from ottla.spark.pipelines.formats.format import SourceFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.formats.parser import Parser


class AvroFormat(SourceFormat, frozen=True, kw_only=True, tag="avro"):
    framing: Literal["none", "confluent"] = "none"
    """confluent: the five bytes of a schema registry are before each value."""

    summary: ClassVar[str] = "Avro: plain, in the frame of a schema registry, or a container file in each record"

    def columns(self, schema: str | None) -> dict[str, str] | None:
        return None if schema is None else avro_columns(schema)

    def infer(self, values: Sequence[bytes | None], sample: int) -> str:  # noqa: ARG002 - each container has it
        from ottla.spark.pipelines.avro import container_schema

        for value in values:
            if value is not None and (schema := container_schema(value)) is not None:
                return schema
        raise ConfigError("Avro values do not say what they are unless each is a container file; write the schema")

    def parser(self, source: Source) -> Parser:
        from ottla.spark.pipelines.formats.avro_parser import AvroParser

        return AvroParser(source, is_framed=self.framing == "confluent")
