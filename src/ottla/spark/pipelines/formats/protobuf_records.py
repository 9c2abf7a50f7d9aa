"""`format = "protobuf"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ottla.spark.pipelines.formats.registered import RegisteredFormat

if TYPE_CHECKING:
    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.fields import Fields


class ProtobufFormat(RegisteredFormat, frozen=True, kw_only=True, tag="protobuf"):
    summary: ClassVar[str] = "Protobuf, by the ids of a schema registry"

    def check(self, source: Source, fields: Fields) -> None:
        super().check(source, fields)
        if not self.registry:
            fields.wrong("registry", 'is needed by format = "protobuf": the registry has the .proto files')
