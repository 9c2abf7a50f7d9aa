"""Converts values of JSON or TOML to Python values of a Spark type, so that they can be compared."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import SupportsFloat

Type = Any
"""Spark's types as JSON: a name, or a table with `type` and what is in it."""


def typed(value: object, kind: Type) -> object:
    """A value of another type is returned unchanged, and is then unequal."""
    if value is None:
        return None
    if isinstance(kind, dict):
        return _nested(value, kind)
    name = str(kind).partition("(")[0]
    try:
        return value if name not in _READERS else _READERS[name](value)
    except (ValueError, TypeError, InvalidOperation):
        return value


def _nested(value: object, kind: dict[str, Any]) -> object:
    if kind["type"] == "struct" and isinstance(value, dict):
        types = {field["name"]: field["type"] for field in kind["fields"]}
        return {name: typed(value.get(name), types[name]) for name in types} | {
            name: each for name, each in value.items() if name not in types
        }
    if kind["type"] == "array" and isinstance(value, list):
        return [typed(each, kind["elementType"]) for each in value]
    if kind["type"] == "map" and isinstance(value, dict):
        return {name: typed(each, kind["valueType"]) for name, each in value.items()}
    return value


def _timestamp(value: object) -> datetime:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _naive_timestamp(value: object) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))


def _date(value: object) -> date:
    return value if isinstance(value, date) else date.fromisoformat(str(value))


def _decimal(value: object) -> Decimal:
    return Decimal(str(value))


def _binary(value: object) -> bytes:
    return value if isinstance(value, bytes) else base64.b64decode(str(value))


def _float(value: SupportsFloat | str) -> float:
    if isinstance(value, bool):
        raise TypeError(value)
    return float(value)


def _whole(value: float | Decimal) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise TypeError(value)
    return int(value)


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "timestamp": _timestamp,
    "timestamp_ntz": _naive_timestamp,
    "date": _date,
    "decimal": _decimal,
    "binary": _binary,
    **dict.fromkeys(("float", "double"), _float),
    **dict.fromkeys(("byte", "short", "integer", "long"), _whole),
}
