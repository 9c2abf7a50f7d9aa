"""Formats whose records may have the id of a registered schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ottla.columns.ddl import quoted
from ottla.columns.types import shown
from ottla.spark.pipelines.formats.format import SourceFormat

if TYPE_CHECKING:
    from ottla.decoding.schemas import SettledSchema
    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.formats.parser import Parser


class RegisteredFormat(SourceFormat, frozen=True, kw_only=True):
    registry: str = ""
    """URL of a schema registry, with user:password@ if it needs a login: records are read by the id in each."""
    subject: str = ""
    """Its latest version has the columns; by default TOPIC-value."""
    new_fields: Literal["follow", "ignore"] = "follow"
    """A record of a newer version with more fields: follow starts the query again with the new columns."""

    def check(self, source: Source, fields: Fields) -> None:
        if not self.registry:
            for key in ("subject", "new_fields"):
                if fields.has(key):
                    fields.wrong(key, "needs registry")
            return
        if source.schema is not None:
            fields.wrong("schema", "comes from the registry; leave it out")
        if len(source.topics) > 1 and not self.subject:
            fields.wrong("registry", "several topics need subject, whose latest version has the columns")

    @property
    def is_pinned(self) -> bool:
        return not self.registry

    def found_schema(self, source: Source) -> str | None:
        if not self.registry:
            return None
        from ottla.decoding.schemas import settle
        from ottla.schema.registry import Registry

        subject = self.subject or f"{source.topics[0]}-value"
        return settle(Registry(self.registry), subject, self.name.upper()).text()

    def columns(self, schema: str | None) -> dict[str, str] | None:
        if schema is None or not self.registry:
            return super().columns(schema)
        return {each.name: shown(each.type) for each in self.settled(schema).columns.fields}

    def settled(self, schema: str) -> SettledSchema:
        from ottla.decoding.schemas import SettledSchema

        return SettledSchema.parse(schema)

    def ddl(self, schema: str) -> str:
        columns = self.settled(schema).columns.fields
        return ", ".join(f"{quoted(each.name)} {shown(each.type, quoted)}" for each in columns)

    def parser(self, source: Source) -> Parser:
        from ottla.spark.pipelines.formats.registered_parser import RegisteredParser

        return RegisteredParser(source, self)
