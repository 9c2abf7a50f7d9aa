"""Avro keys and values. Needs fastavro."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from ottla.core.errors import ConfigError
from ottla.registry.avro.parsing import parse
from ottla.registry.avro.printing import canonical
from ottla.registry.errors import InvalidSchema
from ottla.registry.model import AVRO, Schema
from ottla.schema.avro_types import avro_schema
from ottla.schema.deserializer import SchemaDeserializer
from ottla.schema.errors import SchemaError
from ottla.schema.serializer import SchemaSerializer
from ottla.schema.typed import from_plain, is_typed, to_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Unpack

    from ottla.registry.schemas import Resolved
    from ottla.schema.registry import Registry
    from ottla.schema.serializer import SerializerOptions

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def fastavro() -> ModuleType:
    try:
        import fastavro as found
    except ImportError:
        raise ConfigError("Avro needs the package fastavro; run: pip install 'ottla[registry]'") from None
    module: ModuleType = found
    return module


class AvroCodec:
    """One schema, with its references."""

    def __init__(self, schema: Schema, resolved: Resolved = ()) -> None:
        parsed, _ = parse(schema.text, [text for _, text in resolved], is_new=False)
        self.name = parsed.kind if parsed.name is None else parsed.name.full
        self.is_union = parsed.kind == "union"
        # Bytes are written without their length, as Confluent's serializers do.
        self._is_bytes = parsed.kind == "bytes"
        library = fastavro()
        self.parsed = library.parse_schema(json.loads(canonical(parsed)))
        self._write, self._read = library.schemaless_writer, library.schemaless_reader

    def encode(self, value: object) -> bytes:
        if self._is_bytes:
            return bytes(cast("bytes", value))
        out = io.BytesIO()
        try:
            self._write(out, self.parsed, value)
        except Exception as wrong:
            raise SchemaError(f"the value does not fit the Avro schema {self.name}: {_reason(wrong)}") from wrong
        return out.getvalue()

    def decode(self, data: bytes, reader: AvroCodec | None = None) -> object:
        if self._is_bytes:
            return data
        source = io.BytesIO(data)
        try:
            value: object = self._read(source, self.parsed, None if reader is None else reader.parsed)
        except Exception as wrong:
            raise SchemaError(f"not Avro of the schema {self.name}: {_reason(wrong)}") from wrong
        if source.tell() != len(data):
            raise SchemaError(f"not Avro of the schema {self.name}: {len(data) - source.tell()} bytes are left over")
        return value


def _reason(wrong: Exception) -> str:
    return str(wrong) or type(wrong).__name__


def given_schema(given: object, namespace: str | None = None) -> Schema | None:
    """The Avro schema of a class, a JSON text, JSON values, or a Schema."""
    if given is None or isinstance(given, Schema):
        return given
    if is_typed(given):
        return Schema(json.dumps(avro_schema(given, namespace)), AVRO)  # type: ignore[arg-type]
    if isinstance(given, str):
        return Schema(given, AVRO)
    if isinstance(given, dict | list):
        return Schema(json.dumps(given), AVRO)
    raise ConfigError(f"expected an Avro schema, or a dataclass, struct or model that gives one, got {given!r}")


class AvroSerializer(SchemaSerializer[T], Generic[T]):
    """`AvroSerializer(registry, Order)`, or with the text of a schema for dictionaries."""

    @overload
    def __init__(
        self,
        registry: Registry | str,
        schema: type[T],
        *,
        namespace: str | None = None,
        **options: Unpack[SerializerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: AvroSerializer[Any],
        registry: Registry | str,
        schema: str | Mapping[str, Any] | Schema | None = None,
        **options: Unpack[SerializerOptions],
    ) -> None: ...

    def __init__(self, registry: Registry | str, schema: object = None, **options: Any) -> None:
        namespace = options.pop("namespace", None)
        super().__init__(registry, **options)
        fastavro()
        self._schema = given_schema(schema, namespace)
        self._name: str | None = None
        if self._schema is not None and not self._schema.references:
            try:
                codec = AvroCodec(self._schema)
            except InvalidSchema as wrong:
                raise SchemaError(f"the Avro schema is not valid: {wrong}") from None
            self._name = None if codec.is_union else codec.name

    @property
    def schema(self) -> Schema | None:
        return self._schema

    @property
    def record_name(self) -> str | None:
        if self._name is None and self._schema is not None:
            codec = AvroCodec(self._schema, self.registry.resolved(self._schema))
            self._name = None if codec.is_union else codec.name
        return self._name

    def encoder(self, schema: Schema, resolved: Resolved) -> tuple[Callable[[Any], bytes], bytes]:
        encode = AvroCodec(schema, resolved).encode
        return lambda value: encode(to_plain(value)), b""


class AvroDeserializer(SchemaDeserializer[T_co], Generic[T_co]):
    """`AvroDeserializer(registry, Order)`, or without a type for dictionaries.

    With a type, records of other versions are read by Avro's schema resolution: fields that the type does not have are
    dropped, and defaults are filled in.
    """

    kinds = (AVRO,)

    @overload
    def __init__(
        self,
        registry: Registry | str,
        type: type[T_co],
        *,
        namespace: str | None = None,  # noqa: A002
    ) -> None: ...

    @overload
    def __init__(
        self: AvroDeserializer[Any],
        registry: Registry | str,
        type: None = None,  # noqa: A002
        *,
        reader_schema: str | Mapping[str, Any] | Schema | None = None,
    ) -> None: ...

    def __init__(
        self,
        registry: Registry | str,
        type: type[Any] | None = None,  # noqa: A002 - as everywhere
        *,
        reader_schema: object = None,
        namespace: str | None = None,
    ) -> None:
        super().__init__(registry)
        fastavro()
        self._convert = from_plain(type)
        self._typed = avro_schema(type, namespace) if is_typed(type) else None  # type: ignore[arg-type]
        given = given_schema(reader_schema)
        self._reader = None if given is None else AvroCodec(given, self.registry.resolved(given))

    def reader(self, schema: Schema, resolved: Resolved) -> Callable[[bytes, bytes | None], Any]:
        codec, reader, convert = AvroCodec(schema, resolved), self._reader, self._convert
        if self._typed is not None:
            # The record name of a type need not match.
            reader = AvroCodec(Schema(json.dumps(self._typed | {"aliases": [codec.name]}), AVRO))
        if convert is None:
            return lambda data, _: codec.decode(data, reader)

        def read(data: bytes, _: bytes | None) -> object:
            value = codec.decode(data, reader)
            try:
                return convert(value)
            except Exception as wrong:
                raise SchemaError(f"{codec.name} does not fit the type: {_reason(wrong)}") from wrong

        return read
