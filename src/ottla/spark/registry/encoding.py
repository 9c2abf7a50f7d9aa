"""Rows as values with a schema id, in Spark's workers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ottla.columns.types import Array, Map, Struct, decimal_of, shown
from ottla.core.errors import ConfigError
from ottla.registry.model import Schema
from ottla.spark.registry.json_texts import json_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.columns.types import Type
    from ottla.schema.avro_types import AvroSchema
    from ottla.schema.registry import Registry

Format = Literal["avro", "json", "protobuf"]

_AVRO: Final[dict[str, AvroSchema]] = {
    "boolean": "boolean",
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "binary": "bytes",
    "string": "string",
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
    "date": {"type": "int", "logicalType": "date"},
}
_JSON: Final[dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    "float": {"type": "number"},
    "double": {"type": "number"},
    "timestamp": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    **{each: {"type": "integer"} for each in ("tinyint", "smallint", "int", "bigint")},
}


def avro_schema(columns: Struct, name: str) -> dict[str, Any]:
    """Every field is optional, so that a schema with one more column can read older rows."""
    fields = [
        {"name": each.name, "type": ["null", _avro_type(each.type, f"{name}_{each.name}")], "default": None}
        for each in columns.fields
    ]
    return {"type": "record", "name": name, "fields": fields}


def _avro_type(kind: Type, name: str) -> AvroSchema:
    if isinstance(kind, Struct):
        return avro_schema(kind, name)
    if isinstance(kind, Array):
        return {"type": "array", "items": ["null", _avro_type(kind.element, name)]}
    if isinstance(kind, Map):
        if kind.key != "string":
            raise ConfigError(f"Avro has no map with keys of {shown(kind.key)}; cast them to string")
        return {"type": "map", "values": ["null", _avro_type(kind.value, name)]}
    if (digits := decimal_of(kind)) is not None:
        return {"type": "bytes", "logicalType": "decimal", "precision": digits[0], "scale": digits[1]}
    if kind not in _AVRO:
        raise ConfigError(f"Avro has no type for {kind}; cast the column to string")
    return _AVRO[kind]


def json_schema(columns: Struct, name: str) -> dict[str, Any]:
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": name, **_json_type(columns)}


def _json_type(kind: Type) -> dict[str, Any]:
    if isinstance(kind, Struct):
        properties = {each.name: _nullable(_json_type(each.type)) for each in kind.fields}
        return {"type": "object", "properties": properties}
    if isinstance(kind, Array):
        return {"type": "array", "items": _nullable(_json_type(kind.element))}
    if isinstance(kind, Map):
        return {"type": "object", "additionalProperties": _nullable(_json_type(kind.value))}
    if decimal_of(kind) is not None:
        return {"type": "number"}
    return dict(_JSON.get(kind, {"type": "string"}))


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, schema]}


@dataclass(frozen=True)
class RowEncoder:
    """Structs, or their JSON, as values with an id. Goes to workers by pickle; the first row registers the schema."""

    registry: Registry
    format: Format
    subject: str
    columns: Struct
    register: bool = True
    """The schema of the columns; otherwise rows are written with the latest version of the subject."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def schema(self) -> Schema | None:
        """Of the columns; None if it is the subject's latest."""
        subject = self.subject.removesuffix("-value")
        name = "".join(part.title() for part in subject.replace("-", "_").split("_"))
        name = "".join(each for each in name if each.isalnum() and each.isascii()) or "Row"
        if not self.register:
            return None
        if self.format == "avro":
            return Schema(json.dumps(avro_schema(self.columns, name)), "AVRO")
        if self.format == "json":
            return Schema(json.dumps(json_schema(self.columns, name)), "JSON")
        raise ConfigError("columns have no Protobuf field numbers; register a schema, and set register = false")

    @cached_property
    def _writing(self) -> tuple[bytes, Callable[[Any], bytes]]:
        from ottla.schema.avro import AvroSerializer
        from ottla.schema.json_schema import JsonSchemaSerializer
        from ottla.schema.protobuf import ProtobufSerializer

        kinds: dict[str, Any] = {"avro": AvroSerializer, "json": JsonSchemaSerializer, "protobuf": ProtobufSerializer}
        serializer = kinds[self.format](
            self.registry,
            self.schema(),
            use=None if self.register else "latest",
            subjects=lambda _topic, _part, _record: self.subject,
        )
        frame, encode = serializer.writing(None, "value")
        return frame, encode

    def encode(self, rows: pa.Array) -> pa.Array:
        frame, encode = self._writing
        if self.format == "json" and pa.types.is_struct(rows.type):
            rows = json_texts(rows)
        if self.format == "json":
            # Spark has made the JSON, or json_texts.
            return pc.binary_join_element_wise(pa.scalar(frame), rows.cast(pa.binary()), pa.scalar(b""))
        values = rows.to_pylist(maps_as_pydicts="strict")
        return pa.array([None if each is None else frame + encode(each) for each in values], pa.binary())
