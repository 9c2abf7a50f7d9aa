"""The Avro schema of a dataclass, msgspec struct or pydantic model: pure rules."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import types
import typing
import uuid
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias, cast

import msgspec

from ottla.schema.errors import SchemaError
from ottla.schema.typed import is_model, is_typed

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIMPLE: Final[dict[object, AvroSchema]] = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    bytearray: "bytes",
    type(None): "null",
    dt.datetime: {"type": "long", "logicalType": "timestamp-micros"},
    dt.date: {"type": "int", "logicalType": "date"},
    dt.time: {"type": "long", "logicalType": "time-micros"},
    uuid.UUID: {"type": "string", "logicalType": "uuid"},
}
_LISTS: Final = (list, tuple, set, frozenset, Sequence, Set)
_MAPS: Final = (dict, Mapping)
_EMPTY: Final[dict[Any, Any]] = {list: [], tuple: [], set: [], frozenset: [], dict: {}}
_NONE: Final = object()


AvroSchema: TypeAlias = str | list[Any] | dict[str, Any]
"""The JSON of an Avro schema."""


class AvroType:
    """`Annotated[int, AvroType("int")]`: overrides the Avro type of a field."""

    def __init__(self, schema: AvroSchema) -> None:
        self.schema = schema


class _Field(NamedTuple):
    name: str
    hint: object
    default: object
    """The default value; _NONE if there is none."""


def avro_schema(kind: type[Any], namespace: str | None = None) -> dict[str, Any]:
    """The record schema of a class. Field defaults become defaults in the schema, so that readers of older data can use
    them.
    """
    found = cast("dict[str, Any]", _Builder().record(kind))
    return {"type": "record", "namespace": namespace, **found} if namespace else found


class _Builder:
    def __init__(self) -> None:
        self._named: set[type[Any]] = set()

    def record(self, kind: type[Any]) -> AvroSchema:
        if kind in self._named:
            return kind.__name__
        self._named.add(kind)
        fields = [self._field(each, f"{kind.__name__}.{each.name}") for each in _fields(kind)]
        return {"type": "record", "name": kind.__name__, "fields": fields}

    def _field(self, field: _Field, where: str) -> dict[str, Any]:
        kind = self._of(field.hint, where)
        default = _json_default(field.default)
        if isinstance(kind, list) and default is not _NONE and default is not None and kind[0] == "null":
            kind = [*kind[1:], "null"]  # the default must be of the first type
        found: dict[str, Any] = {"name": field.name, "type": kind}
        return found if default is _NONE else {**found, "default": default}

    def _of(self, hint: object, where: str) -> AvroSchema:
        while isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        origin = typing.get_origin(hint)
        if origin is Annotated:
            inner, *notes = typing.get_args(hint)
            given = next((each.schema for each in notes if isinstance(each, AvroType)), None)
            return self._of(inner, where) if given is None else given
        if hint in _SIMPLE:
            return _SIMPLE[hint]
        if origin in (typing.Union, types.UnionType):
            return self._union(typing.get_args(hint), where)
        if origin is typing.Literal:
            return _symbols(where.rpartition(".")[2].title().replace("_", ""), typing.get_args(hint), where)
        return self._container(origin or hint, typing.get_args(hint), where)

    def _union(self, hints: tuple[object, ...], where: str) -> AvroSchema:
        branches = [self._of(each, where) for each in hints]
        if "null" in branches:
            branches = ["null", *(each for each in branches if each != "null")]
        return branches

    def _container(self, kind: object, inner: tuple[object, ...], where: str) -> AvroSchema:
        if kind in _LISTS and inner:
            return {"type": "array", "items": self._of(inner[0], where)}
        if kind in _MAPS and inner:
            if inner[0] is not str:
                raise SchemaError(f"{where}: keys of an Avro map are text; use dict[str, …]")
            return {"type": "map", "values": self._of(inner[1], where)}
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return self._enum(kind, where)
        if is_typed(kind):
            return self.record(cast("type[Any]", kind))
        if kind is decimal.Decimal:
            raise SchemaError(
                f"{where}: a decimal needs a precision: Annotated[Decimal, AvroType("
                '{"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2})]'
            )
        raise SchemaError(f"{where}: {getattr(kind, '__name__', kind)} has no Avro type; name one with AvroType(…)")

    def _enum(self, kind: type[enum.Enum], where: str) -> AvroSchema:
        values = [each.value for each in kind]
        if all(isinstance(each, int) for each in values):
            return "long"
        if kind in self._named:
            return kind.__name__
        self._named.add(kind)
        return _symbols(kind.__name__, tuple(values), where)


def _symbols(name: str, values: tuple[Any, ...], where: str) -> dict[str, Any]:
    for each in values:
        if not isinstance(each, str) or not each.isidentifier() or not each.isascii():
            raise SchemaError(f"{where}: {each!r} is not a symbol of an Avro enum (letters, digits and _)")
    return {"type": "enum", "name": name, "symbols": list(values)}


def _json_default(default: object) -> object:
    if isinstance(default, enum.Enum):
        default = default.value
    if default is _NONE or default is None or isinstance(default, bool | int | float | str):
        return default
    return default if default in ([], {}) and isinstance(default, list | dict) else _NONE


def _fields(kind: type[Any]) -> Iterator[_Field]:
    if issubclass(kind, msgspec.Struct):
        for each in msgspec.structs.fields(kind):
            default = _NONE if each.default is msgspec.NODEFAULT else each.default
            if each.default_factory is not msgspec.NODEFAULT:
                default = _EMPTY.get(each.default_factory, _NONE)
            yield _Field(each.encode_name, each.type, default)
        return
    hints = typing.get_type_hints(kind, include_extras=True)
    if is_model(kind):
        for name, field in kind.model_fields.items():
            default = _EMPTY.get(field.default_factory, _NONE) if field.default_factory else field.default
            yield _Field(field.alias or name, hints[name], _NONE if field.is_required() else default)
        return
    for one in dataclasses.fields(kind):
        default = _NONE if one.default is dataclasses.MISSING else one.default
        if one.default_factory is not dataclasses.MISSING:
            default = _EMPTY.get(one.default_factory, _NONE)
        yield _Field(one.name, hints[one.name], default)
