"""Avro values into columns by the compiled decoder: which nodes read them.

Schemas that it cannot read, or that Avro's rules resolve in ways it does not know, raise Unsupported.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ottla.decoding.columns import avro_decimal
from ottla.spark.registry.avro_arrow import (
    Constant,
    Decimal,
    Ignored,
    Items,
    Node,
    Number,
    Optional,
    Record,
    Text,
    Truth,
    Unsupported,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.decoding.programs import Program
    from ottla.registry.avro.schema import Field, Schema

_NUMBERS: Final = ("int", "long", "float", "double")
_TARGETS: Final = {"int32": "int32", "int64": "int64", "float": "float", "double": "double"}
_NARROWER: Final = {"long": ("int",), "float": ("int", "long"), "double": ("int", "long", "float")}
_MICROS: Final = {"timestamp-millis": 1000, "local-timestamp-millis": 1000}


class CompiledProgram:
    def __init__(
        self, writer: Schema, reader: Schema, arrow_type: pa.DataType, fallback: Program | None = None
    ) -> None:
        """`fallback` reads batches with text that is not UTF-8, and finds it."""
        self._fallback = fallback
        if writer.kind != "record" or reader.kind != "record":
            raise Unsupported("not a record")
        self._root = _node(writer, reader, arrow_type)

    def decode(self, values: pa.Array, begin: int, indexes: bytes | None = None) -> tuple[pa.Array, pa.Array]:  # noqa: ARG002
        try:
            rows, errors = decode(self._root, values, begin)
        except pa.ArrowInvalid:
            if self._fallback is None:
                raise
            return self._fallback.decode(values, begin)
        if errors is None:
            return rows, pa.nulls(len(values), pa.string())
        return rows, pa.array(errors, pa.string())


def _node(writer: Schema, reader: Schema, kind: pa.DataType) -> Node:
    if writer.kind == "union":
        others = [each for each in writer.branches if each.kind != "null"]
        if len(others) != 1:
            raise Unsupported("a union of several types")
        return Optional(_node(others[0], reader, kind), [each.kind == "null" for each in writer.branches])
    if reader.kind == "union":
        others = [each for each in reader.branches if each.kind != "null"]
        if len(others) != 1:
            raise Unsupported("a union of several types")
        reader = others[0]
    if writer.kind != reader.kind and writer.kind not in _NARROWER.get(reader.kind, ()):
        raise Unsupported(f"{writer.kind} as {reader.kind}")
    if writer.props.get("logicalType") != reader.props.get("logicalType"):
        raise Unsupported("another logical type")
    if writer.kind == "record":
        return _record(writer, reader, kind)
    if writer.kind == "array" and writer.element is not None and reader.element is not None:
        return Items(kind, _node(writer.element, reader.element, kind.value_type))
    if writer.kind == "map" and writer.element is not None and reader.element is not None:
        return Items(kind, _node(writer.element, reader.element, kind.item_type), Text(kind.key_type))
    return _scalar(writer, reader, kind)


def _scalar(writer: Schema, reader: Schema, kind: pa.DataType) -> Node:
    size = writer.size if writer.kind == "fixed" else -1
    if avro_decimal(writer) is not None:
        if avro_decimal(writer) != avro_decimal(reader):
            raise Unsupported("another precision")
        return Decimal(kind, size)
    if writer.kind == "boolean":
        return Truth(kind)
    if writer.kind in _NUMBERS:
        logical = str(writer.props.get("logicalType"))
        width = {"timestamp": "int64", "date32": "int32"}.get(str(kind).partition("[")[0]) or _TARGETS[str(kind)]
        return Number(kind, writer.kind, width, _MICROS.get(logical, 1))
    if writer.kind == "enum":
        if set(writer.symbols) - set(reader.symbols):
            raise Unsupported("symbols that the reader lacks")
        return Text(kind, symbols=[each.encode() for each in writer.symbols])
    if writer.kind in ("string", "bytes", "fixed"):
        return Text(kind, size)
    raise Unsupported(writer.kind)


def _record(writer: Schema, reader: Schema, kind: pa.DataType) -> Record:
    wanted = {field.name: field.type for field in kind}
    in_writer = {each.name: each for each in writer.fields}
    from_writer = {_written(each, in_writer): each for each in reader.fields if _written(each, in_writer)}
    columns: dict[str, Node] = {}
    fields: list[Node] = []
    is_read: list[bool] = []
    for each in writer.fields:
        field = from_writer.get(each.name)
        if field is not None and field.name in wanted:
            columns[field.name] = _node(each.type, field.type, wanted[field.name])
            fields.append(columns[field.name])
        else:
            fields.append(_skipped(each.type, ()))
        is_read.append(field is not None and field.name in wanted)
    for each in reader.fields:
        if each.name in wanted and each.name not in columns:
            columns[each.name] = _missing(each, wanted[each.name])
            fields.append(columns[each.name])
            is_read.append(True)
    if columns.keys() != wanted.keys():
        raise Unsupported("columns that the reader's schema lacks")
    return Record(kind, fields, is_read, [columns[name] for name in wanted])


def _written(field: Field, in_writer: dict[str, Field]) -> str | None:
    """The writer's name of a field, which may be an alias of the reader's."""
    return next((name for name in (field.name, *field.aliases) if name in in_writer), None)


def _skipped(schema: Schema, inside: tuple[Schema, ...]) -> Node:
    if schema in inside:
        raise Unsupported("a type that contains itself")
    inside = (*inside, schema)
    if schema.kind == "union":
        others = [each for each in schema.branches if each.kind != "null"]
        if len(others) > 1:
            raise Unsupported("a union of several types")
        other = _skipped(others[0], inside) if others else Ignored(pa.null())
        return Optional(other, [each.kind == "null" for each in schema.branches])
    if schema.kind == "record":
        fields = [_skipped(each.type, inside) for each in schema.fields]
        return Record(pa.null(), fields, [False] * len(fields), [])
    if schema.kind in ("array", "map") and schema.element is not None:
        keys = Text(pa.string()) if schema.kind == "map" else None
        return Items(pa.null(), _skipped(schema.element, inside), keys)
    if schema.kind in _NUMBERS:
        return Number(pa.null(), schema.kind, "int64" if schema.kind in ("int", "long") else "double")
    if schema.kind == "boolean":
        return Truth(pa.null())
    return Ignored(pa.null()) if schema.kind == "null" else _scalar(schema, schema, pa.binary())


def _missing(field: Field, kind: pa.DataType) -> Node:
    """A field that the writer does not have."""
    if not field.has_default:
        raise Unsupported(f"no default of {field.name}")
    schema = field.type
    if schema.kind == "union":
        schema = next((each for each in schema.branches if each.kind != "null"), schema)
    node = _node(schema, schema, kind)
    return Constant(node, None if field.default is None else _encoded(field.default, schema))


def _encoded(value: object, schema: Schema) -> bytes:
    if schema.kind in _ENCODERS:
        return _ENCODERS[schema.kind](value)
    if schema.kind == "enum":
        return _varint(schema.symbols.index(str(value)))
    if schema.kind in ("array", "map") and not value:
        return b"\0"
    raise Unsupported(f"a default of {schema.kind}")


def _encoded_text(value: object) -> bytes:
    text = str(value).encode()
    return _varint(len(text)) + text


def _varint(number: int) -> bytes:
    left = (number << 1) ^ (number >> 63)
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


_ENCODERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "string": _encoded_text,
    "boolean": lambda value: bytes([bool(value)]),
    "int": _varint,
    "long": _varint,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
}
"""Encoders of a field's default, by the field's type."""
