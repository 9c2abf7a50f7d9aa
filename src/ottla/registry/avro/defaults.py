"""Whether a JSON value is a valid default of a type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.registry.avro.schema import MISSING

if TYPE_CHECKING:
    from ottla.registry.avro.schema import Schema


def is_valid_default(schema: Schema, value: object) -> bool:
    kind = schema.kind
    if kind == "union":
        return any(is_valid_default(branch, value) for branch in schema.branches)
    if kind in ("string", "bytes", "enum", "fixed"):
        return isinstance(value, str)
    if kind in ("int", "long"):
        bits = 31 if kind == "int" else 63
        return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits) <= value < 1 << bits
    if kind in ("float", "double"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "null":
        return value is None
    return _is_valid_container(schema, value)


def _is_valid_container(schema: Schema, value: object) -> bool:
    if schema.kind == "array":
        return isinstance(value, list) and all(is_valid_default(_element(schema), each) for each in value)
    if not isinstance(value, dict):
        return False
    if schema.kind == "map":
        return all(is_valid_default(_element(schema), each) for each in value.values())
    for field in schema.fields:
        given = value.get(field.name, field.default)
        if given is MISSING or not is_valid_default(field.type, given):
            return False
    return True


def _element(schema: Schema) -> Schema:
    if schema.element is None:
        raise TypeError(f"{schema.kind} without an element")
    return schema.element
