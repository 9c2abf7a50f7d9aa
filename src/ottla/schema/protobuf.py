"""Protobuf keys and values. Needs protobuf."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from ottla.core.errors import ConfigError
from ottla.registry.model import PROTOBUF, Reference, Schema
from ottla.registry.protobuf.known import KNOWN_IMPORTS
from ottla.schema.deserializer import SchemaDeserializer
from ottla.schema.errors import SchemaError
from ottla.schema.frames import index_bytes, read_indexes
from ottla.schema.serializer import SchemaSerializer
from ottla.schema.typed import to_json_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from ottla.registry.schemas import Resolved
    from ottla.schema.registry import Registry
    from ottla.schema.serializer import SerializerOptions

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def _required() -> None:
    try:
        import google.protobuf  # noqa: F401
    except ImportError:
        raise ConfigError("Protobuf needs the package protobuf; run: pip install 'ottla[registry]'") from None


class ProtobufSerializer(SchemaSerializer[T], Generic[T]):
    """`ProtobufSerializer(registry, shop_pb2.Order)`: a message class that protoc generated gives the schema.

    Or with the text of a .proto file, for dictionaries: `message` names the message, by default the first one.
    """

    @overload
    def __init__(self, registry: Registry | str, schema: type[T], **options: Unpack[SerializerOptions]) -> None: ...

    @overload
    def __init__(
        self: ProtobufSerializer[Any],
        registry: Registry | str,
        schema: str | Schema | None = None,
        *,
        message: str | None = None,
        **options: Unpack[SerializerOptions],
    ) -> None: ...

    def __init__(self, registry: Registry | str, schema: object = None, **options: Any) -> None:
        self._message: str | None = options.pop("message", None)
        super().__init__(registry, **options)
        _required()
        self._class: Any = schema if isinstance(schema, type) else None
        self._schema: Schema | None
        if self._class is not None:
            if not hasattr(self._class, "DESCRIPTOR"):
                raise ConfigError(f"expected a message class that protoc generated, got {self._class.__qualname__}")
            self._schema = Schema(_text(self._class.DESCRIPTOR.file), PROTOBUF)
            self._message = self._class.DESCRIPTOR.full_name
        elif isinstance(schema, str):
            self._schema = Schema(schema, PROTOBUF)
        elif schema is None or isinstance(schema, Schema):
            self._schema = schema
        else:
            raise ConfigError(f"expected a message class, or the text of a .proto file, got {schema!r}")

    @property
    def schema(self) -> Schema | None:
        return self._schema

    @property
    def record_name(self) -> str | None:
        if self._message is None and self._schema is not None:
            self._message = _chosen(self._schema, self.registry.resolved(self._schema), None).DESCRIPTOR.full_name
        return self._message

    def with_references(self, schema: Schema) -> Schema:
        if self._class is None:
            return schema
        return replace(schema, references=self._registered(self._class.DESCRIPTOR.file))

    def _registered(self, file: Any) -> tuple[Reference, ...]:  # noqa: ANN401 - a FileDescriptor
        """The imports of a file, each under its name as subject."""
        found = []
        for each in file.dependencies:
            if each.name.startswith(KNOWN_IMPORTS):
                continue
            schema = Schema(_text(each), PROTOBUF, self._registered(each))
            find = self.registry.register if self.settings.register else self.registry.lookup
            version = find(each.name, schema, normalize=self.settings.normalize).version
            found.append(Reference(each.name, each.name, version))
        return tuple(found)

    def encoder(self, schema: Schema, resolved: Resolved) -> tuple[Callable[[Any], bytes], bytes]:
        kind: Any = self._class
        if kind is not None:

            def encode(value: Any) -> bytes:  # noqa: ANN401
                if not isinstance(value, kind):
                    raise SchemaError(f"expected a {kind.DESCRIPTOR.full_name}, got {type(value).__name__}")
                return value.SerializeToString()  # type: ignore[no-any-return]

            return encode, index_bytes(indexes_of(kind.DESCRIPTOR))
        from google.protobuf import json_format

        made = _chosen(schema, resolved, self._message)

        def encode_plain(value: Any) -> bytes:  # noqa: ANN401
            try:
                message = json_format.ParseDict(to_json_values(value), made())
            except json_format.ParseError as wrong:
                raise SchemaError(f"the value does not fit {made.DESCRIPTOR.full_name}: {wrong}") from None
            return message.SerializeToString()  # type: ignore[no-any-return]

        return encode_plain, index_bytes(indexes_of(made.DESCRIPTOR))


class ProtobufDeserializer(SchemaDeserializer[T_co], Generic[T_co]):
    """`ProtobufDeserializer(registry, shop_pb2.Order)`, or without a class for messages of the schema's types."""

    kinds = (PROTOBUF,)

    @overload
    def __init__(self, registry: Registry | str, type: type[T_co]) -> None: ...  # noqa: A002

    @overload
    def __init__(self: ProtobufDeserializer[Any], registry: Registry | str, type: None = None) -> None: ...  # noqa: A002

    def __init__(self, registry: Registry | str, type: type[Any] | None = None) -> None:  # noqa: A002 - as everywhere
        super().__init__(registry)
        _required()
        self._class = type

    def reader(self, schema: Schema, resolved: Resolved) -> Callable[[bytes, bytes | None], Any]:
        known: dict[tuple[int, ...], Any] = {}
        if self._class is None:
            messages = Messages(schema, resolved)

        def read(data: bytes, in_header: bytes | None) -> Any:  # noqa: ANN401
            if in_header is None:
                indexes, begin = read_indexes(data)
            else:
                indexes, begin = read_indexes(in_header)[0], 0
            kind = self._class or known.get(indexes)
            if kind is None:
                kind = known[indexes] = messages.at(indexes)
            return parsed(kind, data[begin:])

        return read


def parsed(kind: Any, data: bytes) -> Any:  # noqa: ANN401 - a message class and its message
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(data)
    except DecodeError as wrong:
        raise SchemaError(f"not a Protobuf {kind.DESCRIPTOR.full_name}: {wrong}") from None


def dictionaries(schema: Schema, resolved: Resolved) -> Callable[[bytes, bytes | None], Any]:
    """A reader whose messages are dictionaries, with the names of the .proto file."""
    _required()
    from google.protobuf import json_format

    messages = Messages(schema, resolved)

    def read(data: bytes, in_header: bytes | None) -> Any:  # noqa: ANN401
        indexes, begin = read_indexes(data) if in_header is None else (read_indexes(in_header)[0], 0)
        return json_format.MessageToDict(parsed(messages.at(indexes), data[begin:]), preserving_proto_field_name=True)

    return read


class Messages:
    """The message classes of a .proto file."""

    def __init__(self, schema: Schema, resolved: Resolved) -> None:
        from ottla.schema.descriptors import file_descriptor

        self._file = file_descriptor(schema.text, {reference.name: text for reference, text in resolved})

    def at(self, indexes: tuple[int, ...]) -> Any:  # noqa: ANN401 - a class
        from google.protobuf.message_factory import GetMessageClass

        found: Any = None
        among = list(self._file.message_types_by_name.values())
        for index in indexes:
            if not 0 <= index < len(among):
                raise SchemaError(f"no message at {list(indexes)} in the Protobuf schema")
            found = among[index]
            among = list(found.nested_types)
        return GetMessageClass(found)

    def named(self, name: str | None) -> Any:  # noqa: ANN401 - a class
        from google.protobuf.message_factory import GetMessageClass

        if name is None:
            return self.at((0,))
        try:
            return GetMessageClass(self._file.pool.FindMessageTypeByName(name))
        except KeyError:
            known = ", ".join(each.full_name for each in self._file.message_types_by_name.values())
            raise SchemaError(f"no message {name} in the Protobuf schema (it has {known})") from None


def _chosen(schema: Schema, resolved: Resolved, name: str | None) -> Any:  # noqa: ANN401 - a class
    return Messages(schema, resolved).named(name)


def indexes_of(descriptor: Any) -> tuple[int, ...]:  # noqa: ANN401
    """The path of a message within its file."""
    found: list[int] = []
    while descriptor.containing_type is not None:
        parent = descriptor.containing_type
        found.append([each.full_name for each in parent.nested_types].index(descriptor.full_name))
        descriptor = parent
    found.append(list(descriptor.file.message_types_by_name).index(descriptor.name))
    return tuple(reversed(found))


def _text(file: Any) -> str:  # noqa: ANN401 - a FileDescriptor
    """As a registry stores it, so that it is the same schema for all clients."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    from ottla.registry.protobuf.from_descriptor import proto_file
    from ottla.registry.protobuf.printing import canonical

    described = FileDescriptorProto()
    file.CopyToProto(described)
    return canonical(proto_file(described))
