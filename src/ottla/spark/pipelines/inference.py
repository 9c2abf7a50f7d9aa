"""Infers a schema from a few values. Pure rules."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Final, TypeAlias

from ottla.columns.ddl import quoted
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.core.json_values import Json

_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_LARGE: Final = "decimal(20,0)"
"""Integers beyond signed 64 bits, for example unsigned 64-bit ones."""
_WIDER: Final = {
    frozenset(("bigint", "double")): "double",
    frozenset(("bigint", _LARGE)): _LARGE,
    frozenset((_LARGE, "double")): "double",
    frozenset(("date", "timestamp")): "timestamp",
}
_MOST_FIELDS: Final = 500

_Kind: TypeAlias = "str | list[_Kind] | dict[str, _Kind] | None"
"""The type of a column: unknown, a scalar type, an array of one type, or a struct."""


def json_schema(values: Iterable[bytes | None], sample: int = 1000) -> str:
    """Spark's DDL for JSON objects; other values are skipped."""
    fields: dict[str, _Kind] = {}
    seen = 0
    for value in values:
        try:
            content = json.loads(value or b"")
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict):
            seen += 1
            for name, each in content.items():
                fields[name] = _common(fields.get(name), _type_of(each))
        if seen >= sample:
            break
    return _ddl(fields, seen, "a JSON object")


def csv_schema(values: Iterable[bytes | None], options: Mapping[str, str], sample: int = 1000) -> str:
    """Spark's DDL for lines of CSV; columns are named c0, c1."""
    separator = (options.get("sep") or options.get("delimiter") or ",")[:1]
    fields: dict[str, _Kind] = {}
    seen = 0
    for value in values:
        try:
            row = next(csv.reader([(value or b"").decode()], delimiter=separator), [])
        except (UnicodeDecodeError, csv.Error):
            continue
        if row:
            seen += 1
            for number, field in enumerate(row):
                fields[f"c{number}"] = _common(fields.get(f"c{number}"), _text_type(field))
        if seen >= sample:
            break
    return _ddl(fields, seen, "a line of CSV")


def _ddl(fields: Mapping[str, _Kind], seen: int, what: str) -> str:
    if not fields:
        raise ConfigError(
            f"no schema can be inferred: none of the first records is {what}; set schema, or wait for such records"
        )
    if len(fields) > _MOST_FIELDS:
        raise ConfigError(f"no schema can be inferred: {seen} records have {len(fields)} different fields; set schema")
    return ", ".join(f"{quoted(name)} {_text(kind)}" for name, kind in _without_twins(fields).items())


def _without_twins(fields: Mapping[str, _Kind]) -> dict[str, _Kind]:
    """Without names that differ from an earlier one only in case, which Spark does not distinguish."""
    kept: dict[str, tuple[str, _Kind]] = {}
    for name, kind in fields.items():
        kept.setdefault(name.lower(), (name, kind))
    return dict(kept.values())


def _type_of(value: Json) -> _Kind:
    if value is None:
        return None
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "bigint" if -(1 << 63) <= value < 1 << 63 else _LARGE if abs(value) < 10**20 else "double"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "timestamp" if _TIMESTAMP.fullmatch(value) else "date" if _DATE.fullmatch(value) else "string"
    if isinstance(value, dict):
        return {name: _type_of(each) for name, each in value.items()}
    inner: _Kind = None
    for each in value:
        inner = _common(inner, _type_of(each))
    return [inner]


def _text_type(text: str) -> str | None:
    if not text:
        return None
    if re.fullmatch(r"-?\d{1,18}", text):
        return "bigint"
    if re.fullmatch(r"-?\d*\.?\d+([eE][+-]?\d+)?", text):
        return "double"
    if text.lower() in ("true", "false"):
        return "boolean"
    return str(_type_of(text))


def _common(one: _Kind, other: _Kind) -> _Kind:
    """The common supertype."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _common(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list):
        return [_common(one[0], other[0])]
    if isinstance(one, str) and isinstance(other, str):
        return _WIDER.get(frozenset((one, other)), "string")
    return "string"


def _text(kind: _Kind) -> str:
    if isinstance(kind, list):
        return f"array<{_text(kind[0])}>"
    if isinstance(kind, dict):
        if not kind:
            return "map<string,string>"
        return (
            "struct<" + ",".join(f"{quoted(name)}:{_text(each)}" for name, each in _without_twins(kind).items()) + ">"
        )
    return kind or "string"
