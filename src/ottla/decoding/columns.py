"""Columns of registered schemas, in Spark's types. Pure rules; descriptors of Protobuf are arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ottla.columns.types import Array, Map, Struct, shown, struct_of
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.descriptor import Descriptor, FieldDescriptor

    from ottla.columns.types import Type
    from ottla.core.json_values import Json, JsonObject
    from ottla.registry.avro.schema import Schema as AvroSchema

VALUE: Final = "value"
"""The only column of a schema that is not a record."""

AVRO_SIMPLE: Final = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "fixed": "binary",
    "enum": "string",
}
AVRO_LOGICAL: Final = {
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    "date": "date",
}
_MOST_DIGITS: Final = 38


def avro_columns(schema: AvroSchema) -> Struct:
    kind = avro_type(schema)
    return kind if isinstance(kind, Struct) else struct_of([(VALUE, kind)])


def avro_type(schema: AvroSchema, inside: tuple[AvroSchema, ...] = ()) -> Type:
    if schema in inside:
        raise ConfigError(f"the Avro type {schema.name.full if schema.name else ''} contains itself: it has no columns")
    inside = (*inside, schema)
    if schema.kind == "union":
        return avro_type(only_branch(schema), inside)
    if schema.kind in ("record", "error"):
        return struct_of((each.name, avro_type(each.type, inside)) for each in schema.fields)
    if schema.kind in ("array", "map") and schema.element is not None:
        element = avro_type(schema.element, inside)
        return Array(element) if schema.kind == "array" else Map("string", element)
    digits = avro_decimal(schema)
    if digits is not None:
        return f"decimal({digits[0]},{digits[1]})"
    return AVRO_LOGICAL.get(str(schema.props.get("logicalType")), AVRO_SIMPLE.get(schema.kind, "string"))


def avro_decimal(schema: AvroSchema) -> tuple[int, int] | None:
    """Precision and scale, if the type is a decimal that Spark has."""
    if schema.props.get("logicalType") != "decimal" or schema.kind not in ("bytes", "fixed"):
        return None
    precision, scale = schema.props.get("precision", 0), schema.props.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 < precision <= _MOST_DIGITS:
        return None
    return precision, scale


def only_branch(schema: AvroSchema) -> AvroSchema:
    """The branch of a union beside null."""
    others = [each for each in schema.branches if each.kind != "null"]
    if len(others) > 1:
        shown = " and ".join(each.name.full if each.name else each.kind for each in others)
        raise ConfigError(f"a union of {shown} has no column type; only null and one other")
    return others[0] if others else schema.branches[0]


# JSON Schema

_JSON: Final = {"integer": "bigint", "number": "double", "boolean": "boolean", "string": "string", "null": "string"}
_JSON_FORMATS: Final = {"date-time": "timestamp", "date": "date"}
_DEPTH: Final = 30


def json_columns(text: str, references: Mapping[str, str]) -> Struct:
    documents = {name: json.loads(each) for name, each in references.items()}
    found = _json_type(json.loads(text), json.loads(text), documents, 0)
    return found if isinstance(found, Struct) else struct_of([(VALUE, found)])


def _json_type(schema: Json, root: Json, documents: Mapping[str, Json], depth: int) -> Type:
    """The column type; string, for the value's JSON, if there is no other."""
    if not isinstance(schema, dict) or depth > _DEPTH:
        return "string"
    if "$ref" in schema:
        return _json_type(*_referenced(str(schema["$ref"]), root, documents), documents, depth + 1)
    schema = _without_null(schema)
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return _json_object(schema, root, documents, depth)
    if kind == "array" and isinstance(schema.get("items"), dict):
        return Array(_json_type(schema["items"], root, documents, depth + 1))
    if kind == "string":
        return _JSON_FORMATS.get(str(schema.get("format")), "string")
    if "$ref" in schema:
        return _json_type(schema, root, documents, depth + 1)
    return _JSON.get(str(kind), "string")


def _json_object(schema: JsonObject, root: Json, documents: Mapping[str, Json], depth: int) -> Type:
    properties = schema.get("properties")
    if properties and isinstance(properties, dict):
        return struct_of((name, _json_type(each, root, documents, depth + 1)) for name, each in properties.items())
    more = schema.get("additionalProperties")
    return Map("string", _json_type(more, root, documents, depth + 1)) if isinstance(more, dict) else "string"


def _without_null(schema: JsonObject) -> JsonObject:
    """The schema of the values that are not null, if there is one."""
    kind = schema.get("type")
    if isinstance(kind, list):
        others = [each for each in kind if each != "null"]
        return {**schema, "type": others[0] if len(others) == 1 else None}
    for word in ("oneOf", "anyOf"):
        given = schema.get(word)
        branches = [each for each in given if each != {"type": "null"}] if isinstance(given, list) else []
        if len(branches) == 1 and isinstance(branches[0], dict):
            return _without_null(branches[0])
    return schema


def _referenced(name: str, root: Json, documents: Mapping[str, Json]) -> tuple[Json, Json]:
    document, _, pointer = name.partition("#")
    root = documents.get(document) if document else root
    found = root
    for step in pointer.strip("/").split("/") if pointer.strip("/") else ():
        found = found.get(step) if isinstance(found, dict) else None
    return found, root


# Protobuf

_WRAPPERS: Final = {
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int64Value": "bigint",
    "google.protobuf.UInt64Value": "decimal(20,0)",
    "google.protobuf.Int32Value": "int",
    "google.protobuf.UInt32Value": "bigint",
    "google.protobuf.BoolValue": "boolean",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "binary",
}
WRAPPERS: Final = frozenset(_WRAPPERS)
TIMESTAMP: Final = "google.protobuf.Timestamp"
AS_JSON: Final = frozenset({"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"})
_PROTOBUF: Final = {
    1: "double", 2: "float", 3: "bigint", 4: "decimal(20,0)", 5: "int", 6: "decimal(20,0)", 7: "bigint", 8: "boolean",
    9: "string", 12: "binary", 13: "bigint", 14: "string", 15: "int", 16: "bigint", 17: "int", 18: "bigint",
}  # fmt: skip
"""By the number of FieldDescriptorProto.Type."""


def protobuf_columns(descriptor: Descriptor, inside: tuple[str, ...] = ()) -> Struct:
    if descriptor.full_name in inside:
        raise ConfigError(f"the Protobuf message {descriptor.full_name} contains itself: it has no columns")
    inside = (*inside, descriptor.full_name)
    return struct_of((each.name, _protobuf_field(each, inside)) for each in descriptor.fields)


def _protobuf_field(field: FieldDescriptor, inside: tuple[str, ...]) -> Type:
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        key, value = (_protobuf_type(message.fields_by_name[name], inside) for name in ("key", "value"))
        return Map(key, value)
    kind = _protobuf_type(field, inside)
    return Array(kind) if field.is_repeated else kind


def _protobuf_type(field: FieldDescriptor, inside: tuple[str, ...]) -> Type:
    message = field.message_type
    if message is None:
        return _PROTOBUF[field.type]
    if message.full_name == TIMESTAMP:
        return "timestamp"
    if message.full_name in AS_JSON:
        return "string"
    return _WRAPPERS.get(message.full_name) or protobuf_columns(message, inside)


def news(before: Type, after: Type, path: str = "") -> list[str]:
    """The fields that only the second type has, or has in another type."""
    if isinstance(before, Struct) and isinstance(after, Struct):
        found = []
        for each in after.fields:
            place = f"{path}.{each.name}" if path else each.name
            known = before.get(each.name)
            found += [place] if known is None else news(known, each.type, place)
        return found
    if isinstance(before, Array) and isinstance(after, Array):
        return news(before.element, after.element, path)
    if isinstance(before, Map) and isinstance(after, Map):
        return news(before.value, after.value, path)
    return [] if before == after else [f"{path} as {shown(after)}"]
