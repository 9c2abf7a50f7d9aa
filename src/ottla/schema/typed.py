"""Conversion between Python objects and plain values: dataclasses, msgspec structs, pydantic models."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import uuid
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self, TypeGuard

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


class Model(Protocol):
    """The methods of pydantic models that are used here."""

    model_fields: ClassVar[dict[str, Any]]

    def model_dump(self, *, mode: str = "python", by_alias: bool) -> object: ...

    @classmethod
    def model_validate(cls, value: object) -> Self: ...

    @classmethod
    def model_json_schema(cls, *, by_alias: bool, mode: str) -> dict[str, Any]: ...


def is_model(kind: object) -> TypeGuard[type[Model]]:
    """Whether this is a pydantic model; pydantic need not be installed."""
    return isinstance(kind, type) and hasattr(kind, "model_fields") and hasattr(kind, "model_validate")


def is_typed(kind: object) -> bool:
    """Whether a schema can be derived from this class."""
    if not isinstance(kind, type):
        return False
    return dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct) or is_model(kind)


def to_plain(value: object) -> object:
    """Convert to dictionaries, lists and scalars; times, decimals and UUIDs are kept. Plain values are returned
    unchanged.
    """
    if type(value) is dict:
        return value
    if is_model(type(value)):
        value = cast("Model", value).model_dump(by_alias=True)
    return msgspec.to_builtins(value, builtin_types=_KEPT)


def to_json_values(value: object) -> object:
    if is_model(type(value)):
        return cast("Model", value).model_dump(mode="json", by_alias=True)
    return msgspec.to_builtins(value)


def from_plain(kind: type[Any] | None, kept: tuple[type, ...] = _KEPT) -> Callable[[Any], Any] | None:
    """A function that converts plain values to objects of this type; None without a type. JSON has only its own
    types.
    """
    if kind is None:
        return None
    if is_model(kind):
        return kind.model_validate
    return lambda value: msgspec.convert(value, kind, builtin_types=kept, str_keys=True)
