"""`format = "avro"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.avro_schema import avro_columns
from ottla.spark.pipelines.formats.registered import RegisteredFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.formats.parser import Parser


class AvroFormat(RegisteredFormat, frozen=True, kw_only=True, tag="avro"):
    framing: Literal["none", "confluent"] = "none"
    """confluent: skip the five bytes of a schema registry before each value. `registry` reads by the id in them."""

    summary: ClassVar[str] = "Avro: by the ids of a schema registry, plain, or a container file in each record"

    def check(self, source: Source, fields: Fields) -> None:
        super().check(source, fields)
        if self.registry and fields.has("framing"):
            fields.wrong("framing", "is not needed with registry, which reads by the id in each record")

    def columns(self, schema: str | None) -> dict[str, str] | None:
        if schema is None or self.registry:
            return super().columns(schema)
        return avro_columns(schema)

    def infer(self, values: Sequence[bytes | None], sample: int) -> str:  # noqa: ARG002 - each container has it
        from ottla.spark.pipelines.avro import container_schema

        for value in values:
            if value is not None and (schema := container_schema(value)) is not None:
                return schema
        raise ConfigError(
            "Avro values do not say what they are unless each is a container file; "
            "write the schema, or the registry that has it"
        )

    def parser(self, source: Source) -> Parser:
        if self.registry:
            return super().parser(source)
        from ottla.spark.pipelines.formats.avro_parser import AvroParser

        return AvroParser(source, is_framed=self.framing == "confluent")
