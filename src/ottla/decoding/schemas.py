"""A registered schema and its columns: what a stream is read with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.columns.types import Struct, as_json, columns_of
from ottla.core.errors import ConfigError, OttlaError
from ottla.decoding.columns import avro_columns, json_columns, protobuf_columns
from ottla.registry.errors import InvalidSchema
from ottla.registry.model import AVRO, JSON, PROTOBUF

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from ottla.registry.model import Schema
    from ottla.schema.registry import Registry


@dataclass(frozen=True, slots=True)
class SettledSchema:
    """The schema whose columns a stream has. Written down as JSON."""

    id: int
    kind: str
    """AVRO, JSON or PROTOBUF."""
    columns: Struct

    def text(self) -> str:
        return json.dumps({"schema_id": self.id, "type": self.kind, "columns": as_json(self.columns)})

    @classmethod
    def parse(cls, text: str) -> SettledSchema:
        given = json.loads(text)
        return cls(given["schema_id"], given["type"], columns_of(given["columns"]))


def settle(registry: Registry, subject: str, kind: str | None = None) -> SettledSchema:
    """The latest version of a subject, and its columns."""
    try:
        latest = registry.latest(subject)
        columns = columns_in(registry, latest.schema)
    except ConfigError:
        raise
    except (OttlaError, InvalidSchema) as refused:
        raise ConfigError(f"{refused} (subject {subject} of the registry at {registry.url})") from None
    if kind is not None and latest.schema.type != kind:
        raise ConfigError(f"the schema of {subject} is {latest.schema.type}, not {kind}")
    return SettledSchema(latest.id, latest.schema.type, columns)


def columns_in(registry: Registry, schema: Schema, message: Descriptor | None = None) -> Struct:
    """The columns of a schema; of the first message of a .proto file, or the given one."""
    resolved = registry.resolved(schema)
    if schema.type == AVRO:
        from ottla.registry.avro.parsing import parse

        return avro_columns(parse(schema.text, [text for _, text in resolved], is_new=False)[0])
    if schema.type == JSON:
        return json_columns(schema.text, {reference.name: text for reference, text in resolved})
    if schema.type != PROTOBUF:
        raise ConfigError(f"unknown schema type {schema.type}")
    from ottla.schema.protobuf import Messages

    return protobuf_columns(message or Messages(schema, resolved).at((0,)).DESCRIPTOR)
