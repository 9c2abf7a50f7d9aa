"""Conversion between Python objects and plain values: dataclasses, msgspec structs, pydantic models."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import uuid
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT: Final = (
    bytes,
    bytearray,
    dt.datetime,
    dt.date,
    dt.time,
    decimal.Decimal,
    uuid.UUID,
)
"""Types that Avro supports directly."""


def is_model(kind: object) -> bool:
    """Whether this is a pydantic model; pydantic need not be installed."""
    return isinstance(kind, type) and hasattr(kind, "model_fields") and hasattr(kind, "model_validate")


def is_typed(kind: object) -> bool:
    """Whether a schema can be derived from this class."""
    if not isinstance(kind, type):
        return False
    return dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct) or is_model(kind)


def to_plain(value: Any) -> Any:  # noqa: ANN401
    """Convert to dictionaries, lists and scalars; times, decimals and UUIDs are kept. Plain values are returned
    unchanged.
    """
    if type(value) is dict:
        return value
    if is_model(type(value)):
        value = value.model_dump(by_alias=True)
    return msgspec.to_builtins(value, builtin_types=_KEPT)


def to_json_values(value: Any) -> Any:  # noqa: ANN401
    if is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True)
    return msgspec.to_builtins(value)


def from_plain(kind: type[Any] | None, kept: tuple[type, ...] = _KEPT) -> Callable[[Any], Any] | None:
    """A function that converts plain values to objects of this type; None without a type. JSON has only its own
    types.
    """
    if kind is None:
        return None
    if is_model(kind):
        validate: Callable[[Any], Any] = kind.model_validate
        return validate
    return lambda value: msgspec.convert(value, kind, builtin_types=kept, str_keys=True)
