"""Converts JSON values to Avro values: reverts `msgspec.json.encode` of times, decimals and bytes. Pure rules."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from ottla.schema.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.core.json_values import Json
    from ottla.schema.avro_types import AvroSchema

_LOGICAL: Final[dict[str, Callable[[str], Any]]] = {
    "date": dt.date.fromisoformat,
    "time-millis": dt.time.fromisoformat,
    "time-micros": dt.time.fromisoformat,
    "decimal": Decimal,
    **{
        f"{kind}-{unit}": dt.datetime.fromisoformat
        for kind in ("timestamp", "local-timestamp")
        for unit in ("millis", "micros")
    },
}
_SCALARS: Final[dict[str, Any]] = {
    "null": type(None),
    "boolean": bool,
    "int": int,
    "long": int,
    "float": (int, float),
    "double": (int, float),
    "string": str,
    "bytes": str,
}


def avro_value(schema: AvroSchema, value: Json, named: Mapping[str, AvroSchema]) -> object:
    """The value to pass to fastavro for this JSON. `named` has the named types of the schema."""
    if isinstance(schema, list):
        return _branch(schema, value, named)
    if isinstance(schema, str):
        if schema in named:
            return avro_value(named[schema], value, named)
        return _bytes(value) if schema == "bytes" and isinstance(value, str) else value
    logical = _LOGICAL.get(schema.get("logicalType", ""))
    if logical is not None and isinstance(value, str):
        try:
            return logical(value)
        except (ValueError, ArithmeticError):
            raise SchemaError(f"{value!r} is not a {schema['logicalType']}") from None
    return _inside(schema, value, named)


def _inside(schema: dict[str, Any], value: Json, named: Mapping[str, AvroSchema]) -> object:
    kind = schema["type"]
    if kind == "array" and isinstance(value, list):
        return [avro_value(schema["items"], each, named) for each in value]
    if kind == "map" and isinstance(value, dict):
        return {key: avro_value(schema["values"], each, named) for key, each in value.items()}
    if kind in ("record", "error") and isinstance(value, dict):
        types = {each["name"]: each["type"] for each in schema["fields"]}
        if unknown := value.keys() - types.keys():
            raise SchemaError(f"no field {min(unknown)!r} in {schema['name']} (it has {', '.join(types)})")
        return {key: avro_value(types[key], each, named) for key, each in value.items()}
    if kind in ("bytes", "fixed") and isinstance(value, str):
        return _bytes(value)
    return value


def _branch(branches: list[AvroSchema], value: Json, named: Mapping[str, AvroSchema]) -> object:
    """The first branch of a union that accepts the value; if there is none, fastavro reports why."""
    for each in branches:
        resolved = named.get(each, each) if isinstance(each, str) else each
        kind = resolved["type"] if isinstance(resolved, dict) else str(resolved)
        if not _fits(resolved, kind, value):
            continue
        try:
            return avro_value(resolved, value, named)
        except SchemaError:
            continue
    return value


def _fits(schema: AvroSchema, kind: str, value: Json) -> bool:
    if isinstance(value, bool) or value is None:
        return bool(kind == ("boolean" if isinstance(value, bool) else "null"))
    if kind in ("array", "map", "record", "error"):
        return isinstance(value, list if kind == "array" else dict)
    is_logical = isinstance(schema, dict) and schema.get("logicalType") in _LOGICAL
    return isinstance(value, str if is_logical and isinstance(value, str) else _SCALARS.get(kind, str))


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise SchemaError(f"{text[:40]!r} is not base64, in which bytes are written") from None
