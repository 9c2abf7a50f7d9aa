"""How values of one schema become rows."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ottla.decoding.columns import AS_JSON, AVRO_LOGICAL, TIMESTAMP, VALUE, WRAPPERS
from ottla.decoding.json_values import JsonDecoder
from ottla.registry.avro.parsing import parse
from ottla.registry.avro.printing import canonical
from ottla.registry.model import AVRO
from ottla.schema.errors import SchemaError
from ottla.schema.frames import read_indexes

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.internal.containers import RepeatedScalarContainer, ScalarMap
    from google.protobuf.message import Message

    from ottla.columns.types import Struct
    from ottla.registry.model import Schema
    from ottla.schema.registry import Registry


_LONGEST: Final = (1 << 31) - 1


class Program(Protocol):
    def decode(self, values: pa.Array, begin: int, indexes: bytes | None = None) -> tuple[pa.Array, pa.Array]:
        """The rows of values whose data begin at this byte, and why each that is not one could not be read."""


def program(registry: Registry, schema: Schema, latest: Schema, arrow_type: pa.DataType) -> Program:
    """For values of a schema, into the columns of the latest one."""
    if schema.type == AVRO:
        return _avro(registry, schema, latest, arrow_type)
    return RowProgram(_protobuf_reader(registry, schema), arrow_type)


class RowProgram:
    """Rows one by one, in the compiled readers of fastavro and protobuf."""

    def __init__(self, read: Callable[[bytes, bytes | None], Any], arrow_type: pa.DataType) -> None:
        self._read = read
        self._type = arrow_type

    def decode(self, values: pa.Array, begin: int, indexes: bytes | None = None) -> tuple[pa.Array, pa.Array]:
        rows: list[Any] = []
        errors: list[str | None] = []
        for value in values.to_pylist():
            row, error = self._row(value, begin, indexes)
            rows.append(row)
            errors.append(error)
        try:
            return pa.array(rows, self._type), pa.array(errors, pa.string())
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return self._one_by_one(rows, errors)

    def _row(self, value: bytes | None, begin: int, indexes: bytes | None) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        try:
            return self._read(value[begin:], indexes), None
        except Exception as wrong:  # noqa: BLE001 - whatever bytes make of it must not stop the job
            return None, f"not of its schema: {str(wrong) or type(wrong).__name__}"

    def _one_by_one(self, rows: list[Any], errors: list[str | None]) -> tuple[pa.Array, pa.Array]:
        """Find the rows that do not fit the columns."""
        kept = []
        for at, row in enumerate(rows):
            try:
                kept.append(pa.array([row], self._type))
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as wrong:
                kept.append(pa.nulls(1, self._type))
                errors[at] = f"does not fit the columns: {wrong}"
        return pa.concat_arrays(kept), pa.array(errors, pa.string())


class JsonProgram:
    """JSON of any schema: a field is found by its name."""

    def __init__(self, columns: Struct) -> None:
        self._decoder = JsonDecoder(columns)

    def decode(self, values: pa.Array, begin: int, indexes: bytes | None = None) -> tuple[pa.Array, pa.Array]:  # noqa: ARG002
        # Without an end, pyarrow 26 fails for several short values: "Negative buffer resize".
        return self._decoder.decode(pc.binary_slice(values, begin, _LONGEST) if begin else values)


# Avro


def _avro(registry: Registry, schema: Schema, latest: Schema, arrow_type: pa.DataType) -> Program:
    """The compiled decoder, if it is there and can read this schema; otherwise fastavro."""
    slow = RowProgram(_avro_reader(registry, schema, latest), arrow_type)
    try:
        from ottla.spark.registry.avro_arrow import Unsupported
        from ottla.spark.registry.avro_program import CompiledProgram
    except ImportError:
        return slow
    writer, reader = (
        parse(each.text, [text for _, text in registry.resolved(each)], is_new=False)[0] for each in (schema, latest)
    )
    try:
        return CompiledProgram(writer, reader, arrow_type, slow)
    except Unsupported:
        return slow


def _avro_reader(registry: Registry, schema: Schema, latest: Schema) -> Callable[[bytes, bytes | None], Any]:
    """Values of other schemas than the latest are resolved by Avro's rules: defaults, aliases, wider types."""
    from ottla.schema.avro import fastavro

    library = fastavro()
    writer, is_record = _for_columns(library, registry, schema)
    reader = None if schema == latest else _for_columns(library, registry, latest)[0]
    read_one = library.schemaless_reader
    is_bytes = writer == "bytes" or (isinstance(writer, dict) and writer.get("type") == "bytes")

    def read(data: bytes, _: bytes | None) -> dict[str, Any]:
        if is_bytes:
            return {VALUE: data}
        source = io.BytesIO(data)
        row = read_one(source, writer, reader)
        if source.tell() != len(data):
            raise SchemaError(f"{len(data) - source.tell()} bytes are left over")
        return row if is_record else {VALUE: row}

    return read


def _for_columns(library: ModuleType, registry: Registry, schema: Schema) -> tuple[Any, bool]:
    parsed, _ = parse(schema.text, [text for _, text in registry.resolved(schema)], is_new=False)
    return library.parse_schema(_plain(json.loads(canonical(parsed)))), parsed.kind in ("record", "error")


_KEPT: Final = (*AVRO_LOGICAL, "decimal")


def _plain(schema: object) -> object:
    """Without the logical types that columns do not have."""
    if isinstance(schema, dict):
        return {key: _plain(each) for key, each in schema.items() if key != "logicalType" or each in _KEPT}
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema


# Protobuf


def _protobuf_reader(registry: Registry, schema: Schema) -> Callable[[bytes, bytes | None], Any]:
    from ottla.schema.protobuf import Messages, parsed

    messages = Messages(schema, registry.resolved(schema))
    known: dict[tuple[int, ...], Any] = {}

    def read(data: bytes, in_header: bytes | None) -> dict[str, Any]:
        indexes, begin = read_indexes(data) if in_header is None else (read_indexes(in_header)[0], 0)
        kind = known.get(indexes)
        if kind is None:
            kind = known[indexes] = messages.at(indexes)
        return _message_row(parsed(kind, data[begin:]))

    return read


def _message_row(message: Message) -> dict[str, Any]:
    row: dict[str, object] = {}
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated:
            row[field.name] = _repeated(field, getattr(message, field.name))
        elif not field.has_presence or message.HasField(field.name):
            row[field.name] = _protobuf_value(field, getattr(message, field.name))
    return row


def _repeated(field: FieldDescriptor, values: RepeatedScalarContainer | ScalarMap) -> list[Any]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        return [(key, _protobuf_value(value, each)) for key, each in values.items()]
    return [_protobuf_value(field, each) for each in values]


def _protobuf_value(field: FieldDescriptor, value: object) -> object:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    if field.message_type is None:
        return value
    message: Any = value  # its class is generated
    name = field.message_type.full_name
    if name == TIMESTAMP:
        import datetime as dt

        return message.ToDatetime(dt.UTC)
    if name in WRAPPERS:
        return message.value
    if name in AS_JSON:
        from google.protobuf import json_format

        return json_format.MessageToJson(message, indent=None)
    return _message_row(message)
