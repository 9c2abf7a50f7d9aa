"""An Avro schema as columns of Spark. Pure rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ottla.columns.ddl import quoted
from ottla.core.errors import ConfigError
from ottla.decoding.columns import AVRO_LOGICAL, AVRO_SIMPLE

if TYPE_CHECKING:
    from ottla.schema.avro_types import AvroSchema

_LOGICAL: Final = {**AVRO_LOGICAL, "uuid": "string"}


def parse_avro(text: str) -> dict[str, Any]:
    try:
        schema = json.loads(text)
    except ValueError as wrong:
        raise ConfigError(f"the Avro schema is not valid JSON: {wrong}") from None
    if not isinstance(schema, dict) or schema.get("type") != "record" or not isinstance(schema.get("fields"), list):
        raise ConfigError('an Avro schema must be a record: {"type": "record", "name": "…", "fields": […]}')
    return schema


def avro_columns(text: str) -> dict[str, str]:
    """The fields of a record and their types."""
    named: dict[str, Any] = {}
    try:
        return {each["name"]: _type(each["type"], named) for each in parse_avro(text)["fields"]}
    except (KeyError, TypeError) as wrong:
        raise ConfigError(f"the Avro schema is incomplete: {wrong} is missing or invalid") from None


def avro_ddl(text: str) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in avro_columns(text).items())


def _type(schema: AvroSchema, named: dict[str, Any]) -> str:
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        if len(others) != 1:
            raise ConfigError(
                f"a union of {' and '.join(map(str, others))} has no column type; only null and one other type"
            )
        return _type(others[0], named)
    if isinstance(schema, str):
        if schema in named:
            return _type(named[schema], named)
        if schema not in AVRO_SIMPLE:
            raise ConfigError(f"no such Avro type: {schema}")
        return AVRO_SIMPLE[schema]
    if "name" in schema:
        named[schema["name"]] = schema
    return _complex(schema, named)


def _complex(schema: dict[str, Any], named: dict[str, Any]) -> str:
    kind = schema["type"]
    logical = schema.get("logicalType")
    if logical == "decimal":
        return f"decimal({schema['precision']},{schema.get('scale', 0)})"
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if kind == "array":
        return f"array<{_type(schema['items'], named)}>"
    if kind == "map":
        return f"map<string,{_type(schema['values'], named)}>"
    if kind == "record":
        inner = ",".join(f"{quoted(each['name'])}:{_type(each['type'], named)}" for each in schema["fields"])
        return f"struct<{inner}>"
    return _type(kind, named)
