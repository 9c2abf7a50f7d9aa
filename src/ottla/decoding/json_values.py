"""JSON values as Arrow columns, by declared columns.

A field that is missing is null, a field without a column is ignored. A string column takes any JSON: a value that is
not a string becomes its text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import pyarrow as pa

from ottla.columns.arrow_types import arrow_schema, to_arrow
from ottla.columns.types import Array, Map, Struct, decimal_of, shown
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.columns.types import Type

_BITS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_PLAIN: Final = {
    "boolean": bool, "float": float, "double": float, "string": str, "binary": bytes, "date": dt.date,
    "timestamp": dt.datetime, "timestamp_ntz": dt.datetime,
}  # fmt: skip
_MISFIT: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
_WRONG: Final = (msgspec.DecodeError, RecursionError, *_MISFIT)


class JsonDecoder:
    def __init__(self, columns: Struct) -> None:
        self._columns = columns
        self.arrow_type: pa.DataType = pa.struct(list(arrow_schema(columns)))
        self._strict = msgspec.json.Decoder(_python_type(columns, text=str))
        self._lenient = msgspec.json.Decoder(_python_type(columns, text=msgspec.Raw))
        self._build = _builder(columns, _same)
        self._build_any = _builder(columns, _texts)

    def decode(self, values: pa.Array, headers: pa.Array | None = None) -> tuple[pa.Array, pa.Array]:  # noqa: ARG002
        """The rows, and why each value that is not one could not be decoded; both null where a value is null."""
        given = values.to_pylist()
        try:
            decode = self._strict.decode
            rows = [None if each is None else decode(each) for each in given]
            return self._build(rows), pa.nulls(len(rows), pa.string())
        except _WRONG:
            return self._with_errors(given)

    def _with_errors(self, values: Sequence[bytes | None]) -> tuple[pa.Array, pa.Array]:
        found = [self._row(value) for value in values]
        errors = [error for _, error in found]
        try:
            return self._build_any([row for row, _ in found]), pa.array(errors, pa.string())
        except _MISFIT:
            return self._one_by_one([row for row, _ in found], errors)

    def _row(self, value: bytes | None) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        try:
            return self._strict.decode(value), None
        except _WRONG:
            pass
        try:
            return self._lenient.decode(value), None
        except RecursionError:
            return None, "invalid JSON: nested too deeply"
        except msgspec.ValidationError as wrong:
            return None, f"does not fit the columns: {wrong}"
        except _WRONG as wrong:
            return None, f"invalid JSON: {wrong}"

    def _one_by_one(self, rows: list[Any], errors: list[str | None]) -> tuple[pa.Array, pa.Array]:
        """Find the rows that do not fit their columns."""
        built: list[pa.Array] = []
        for at, row in enumerate(rows):
            try:
                built.append(self._build_any([row]))
            except _MISFIT as wrong:
                built.append(pa.nulls(1, self.arrow_type))
                errors[at] = f"does not fit the columns: {wrong}"
        return pa.concat_arrays(built), pa.array(errors, pa.string())


def _python_type(kind: Type, text: type) -> Any:  # noqa: ANN401 - types are values here
    """The type that a value is decoded to."""
    if isinstance(kind, Struct):
        names = {f"f{number}": field.name for number, field in enumerate(kind.fields)}
        fields = [(f"f{number}", _optional(each.type, text), None) for number, each in enumerate(kind.fields)]
        return msgspec.defstruct("Row", fields, rename=names, gc=False)
    if isinstance(kind, Array):
        return list[_optional(kind.element, text)]  # type: ignore[misc]
    if isinstance(kind, Map):
        return dict[_key_type(kind.key), _optional(kind.value, text)]  # type: ignore[misc]
    if decimal_of(kind) is not None:
        return Decimal
    if (bits := _BITS.get(kind)) is not None:
        return int if bits == 64 else Annotated[int, msgspec.Meta(ge=-(1 << (bits - 1)), le=(1 << (bits - 1)) - 1)]
    if kind not in _PLAIN:
        raise ConfigError(f"JSON cannot be decoded to the type {kind}")
    return text if kind == "string" else _PLAIN[kind]


def _optional(kind: Type, text: type) -> object:
    found = _python_type(kind, text)
    return found if found is msgspec.Raw else found | None  # the raw text may be null


def _key_type(kind: Type) -> type:
    if kind in ("string", "int", "bigint"):
        return str if kind == "string" else int
    raise ConfigError(f"a map of JSON has keys of type string, int or bigint, got {shown(kind)}")


# From Python's values to arrays


Texts = Callable[[Sequence[Any]], Sequence[Any]]
Builder = Callable[[Sequence[Any]], pa.Array]


def _builder(kind: Type, texts: Texts) -> Builder:
    if isinstance(kind, Struct):
        return _struct_builder(kind, texts)
    if isinstance(kind, Array):
        return _list_builder(kind, texts)
    if isinstance(kind, Map):
        return _map_builder(kind, texts)
    arrow_type = to_arrow(kind)
    if kind == "string":
        return lambda values: pa.array(texts(values), arrow_type)
    return lambda values: pa.array(values, arrow_type)


def _struct_builder(kind: Struct, texts: Texts) -> Builder:
    fields = list(to_arrow(kind))
    builders = [(f"f{number}", _builder(each.type, texts)) for number, each in enumerate(kind.fields)]

    def build(values: Sequence[Any]) -> pa.Array:
        if None not in values:
            return pa.StructArray.from_arrays(
                [make([getattr(each, name) for each in values]) for name, make in builders], fields=fields
            )
        children = [make([None if each is None else getattr(each, name) for each in values]) for name, make in builders]
        return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array([each is None for each in values]))

    return build


def _list_builder(kind: Array, texts: Texts) -> Builder:
    build_element = _builder(kind.element, texts)
    arrow_type = to_arrow(kind)

    def build(values: Sequence[Any]) -> pa.Array:
        elements = build_element([element for each in values if each is not None for element in each])
        return pa.ListArray.from_arrays(_list_starts(values), elements, type=arrow_type)

    return build


def _map_builder(kind: Map, texts: Texts) -> Builder:
    build_key, build_value = _builder(kind.key, _same), _builder(kind.value, texts)
    arrow_type = to_arrow(kind)

    def build(values: Sequence[Any]) -> pa.Array:
        keys = build_key([key for each in values if each is not None for key in each])
        items = build_value([item for each in values if each is not None for item in each.values()])
        return pa.MapArray.from_arrays(_list_starts(values), keys, items, type=arrow_type)

    return build


def _list_starts(values: Sequence[Any]) -> pa.Array:
    """Where each list begins: null for one that is null."""
    starts: list[int | None] = []
    end = 0
    for each in values:
        starts.append(None if each is None else end)
        end += 0 if each is None else len(each)
    return pa.array([*starts, end], pa.int32())


def _same(values: Sequence[Any]) -> Sequence[Any]:
    return values


def _texts(values: Sequence[Any]) -> Sequence[Any]:
    """The strings of a column some of whose values are raw JSON."""
    return [_text(bytes(each)) if isinstance(each, msgspec.Raw) else each for each in values]


def _text(raw: bytes) -> str | None:
    if raw[:1] == b'"' or raw == b"null":
        decoded: str | None = msgspec.json.decode(raw)
        return decoded
    return raw.decode()
