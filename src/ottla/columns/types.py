"""Column types as values, in Spark's names. Pure rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[Field, ...]

    def get(self, name: str) -> Type | None:
        return next((field.type for field in self.fields if field.name == name), None)

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]


@dataclass(frozen=True, slots=True)
class Array:
    element: Type


@dataclass(frozen=True, slots=True)
class Map:
    key: Type
    value: Type


Type: TypeAlias = "str | Struct | Array | Map"
SparkJson: TypeAlias = str | dict[str, Any]
"""A type in the JSON form of Spark and Delta (`DataType.jsonValue()`)."""

_SPARK_WORDS: Final = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


def struct_of(pairs: Iterable[tuple[str, Type]]) -> Struct:
    return Struct(tuple(Field(name, kind) for name, kind in pairs))


def from_spark(given: SparkJson) -> Type:
    """A type in the JSON form of Spark and Delta (`DataType.jsonValue()`)."""
    if isinstance(given, str):
        return _SPARK_WORDS.get(given, given)
    if given["type"] == "struct":
        return struct_of((field["name"], from_spark(field["type"])) for field in given["fields"])
    if given["type"] == "array":
        return Array(from_spark(given["elementType"]))
    if given["type"] == "map":
        return Map(from_spark(given["keyType"]), from_spark(given["valueType"]))
    return from_spark(given["sqlType"])  # a user-defined type


def columns_of(given: SparkJson) -> Struct:
    """The columns of a schema in Spark's JSON form."""
    found = from_spark(given)
    if not isinstance(found, Struct):
        raise TypeError(f"a schema is a struct, got {shown(found)}")
    return found


def as_json(kind: Type) -> SparkJson:
    """The JSON form that `from_spark` reads."""
    if isinstance(kind, Struct):
        return {"type": "struct", "fields": [{"name": each.name, "type": as_json(each.type)} for each in kind.fields]}
    if isinstance(kind, Array):
        return {"type": "array", "elementType": as_json(kind.element)}
    if isinstance(kind, Map):
        return {"type": "map", "keyType": as_json(kind.key), "valueType": as_json(kind.value)}
    return kind


def decimal_of(kind: Type) -> tuple[int, int] | None:
    """Precision and scale."""
    match = _DECIMAL.fullmatch(kind) if isinstance(kind, str) else None
    return None if match is None else (int(match[1]), int(match[2]))


def shown(kind: Type, name: Callable[[str], str] = str) -> str:
    """As Spark's DDL writes it; `name` may quote the names of fields."""
    if isinstance(kind, Struct):
        return "struct<" + ",".join(f"{name(each.name)}:{shown(each.type, name)}" for each in kind.fields) + ">"
    if isinstance(kind, Array):
        return f"array<{shown(kind.element, name)}>"
    if isinstance(kind, Map):
        return f"map<{shown(kind.key, name)},{shown(kind.value, name)}>"
    return kind
