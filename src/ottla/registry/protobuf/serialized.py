"""Serialized descriptors (base64 of a FileDescriptorProto), which some clients register and request.

The only part of the registry that needs the `protobuf` package.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.registry.errors import InvalidSchema
from ottla.registry.protobuf.nodes import SCALARS, Enum, Field, Literal, Message, Option, Text, Word

if TYPE_CHECKING:
    from types import ModuleType

    from google.protobuf import descriptor_pb2 as pb
    from google.protobuf.internal.containers import RepeatedCompositeContainer

    from ottla.registry.protobuf.types import Scope, Types

    Described: TypeAlias = (
        pb.FileDescriptorProto
        | pb.DescriptorProto
        | pb.FieldDescriptorProto
        | pb.OneofDescriptorProto
        | pb.EnumDescriptorProto
        | pb.EnumValueDescriptorProto
        | pb.ServiceDescriptorProto
        | pb.MethodDescriptorProto
    )
    """A descriptor with options."""


def serialized(types: Types, name: str = "default") -> str:
    return base64.b64encode(_Writer(types, name).file().SerializeToString(deterministic=True)).decode()


def decode(text: str) -> pb.FileDescriptorProto | None:
    """The descriptor in a base64 text; None if there is none."""
    try:
        content = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    if not content:
        return None
    pb = _library()
    from google.protobuf.message import DecodeError

    try:
        return pb.FileDescriptorProto.FromString(content)
    except DecodeError:
        return None


def _library() -> ModuleType:
    try:
        from google.protobuf import descriptor_pb2
    except ModuleNotFoundError:
        raise InvalidSchema(
            "serialized Protobuf descriptors need the protobuf package; run: pip install 'ottla[registry]'"
        ) from None
    module: ModuleType = descriptor_pb2
    return module


class _Writer:
    def __init__(self, types: Types, name: str) -> None:
        self._types = types
        self._file = types.file
        self._name = name
        self._pb = _library()

    def file(self) -> pb.FileDescriptorProto:
        file = self._file
        scope = tuple(file.package.split(".")) if file.package else ()
        written = self._pb.FileDescriptorProto(name=self._name, package=file.package, dependency=file.all_imports())
        if file.syntax == "proto3":
            written.syntax = "proto3"
        first = len(file.imports)
        written.public_dependency.extend(range(first, first + len(file.public_imports)))
        _set_options(written, file.options)
        for each in file.types:
            self._type(written.message_type, written.enum_type, each, scope)
        for extend in file.extends:
            for field in extend.fields:
                self._field(written.extension.add(extendee=self._full(extend.name, scope)), field, scope)
        for service in file.services:
            into = written.service.add(name=service.name)
            _set_options(into, service.options)
            for rpc in service.rpcs:
                method = into.method.add(name=rpc.name)
                method.input_type, method.output_type = self._full(rpc.request, scope), self._full(rpc.response, scope)
                method.client_streaming, method.server_streaming = rpc.streams_request, rpc.streams_response
        return written

    def _type(
        self,
        messages: RepeatedCompositeContainer,
        enums: RepeatedCompositeContainer,
        declared: Message | Enum,
        scope: Scope,
    ) -> None:
        if isinstance(declared, Message):
            self._message(messages.add(name=declared.name), declared, (*scope, declared.name))
        else:
            _write_enum(enums.add(name=declared.name), declared)

    def _message(self, into: pb.DescriptorProto, message: Message, scope: Scope) -> None:
        _set_options(into, message.options)
        for each in message.types:
            self._type(into.nested_type, into.enum_type, each, scope)
        index_of = {id(field): at for at, oneof in enumerate(message.oneofs) for field in oneof.fields}
        for oneof in message.oneofs:
            _set_options(into.oneof_decl.add(name=oneof.name), oneof.options)
        for field in message.all_fields():
            written = into.field.add()
            self._field(written, field, scope, into)
            if id(field) in index_of:
                written.oneof_index = index_of[id(field)]
        self._synthetic_oneofs(into, message)
        for extend in message.extends:
            for field in extend.fields:
                self._field(into.extension.add(extendee=self._full(extend.name, scope)), field, scope)
        _write_ranges(into, message)

    def _synthetic_oneofs(self, into: pb.DescriptorProto, message: Message) -> None:
        """Add the synthetic oneofs: `optional` in proto3 is a oneof of one field, after all others."""
        if self._file.syntax == "proto3":
            by_name = {field.name: field for field in into.field}
            for field in message.fields:
                if field.label == "optional":
                    by_name[field.name].proto3_optional = True
                    by_name[field.name].oneof_index = len(into.oneof_decl)
                    into.oneof_decl.add(name=f"_{field.name}")

    def _field(
        self, into: pb.FieldDescriptorProto, field: Field, scope: Scope, holder: pb.DescriptorProto | None = None
    ) -> None:
        label = "repeated" if field.map_types else field.label or "optional"
        into.name, into.number = field.name, field.tag
        into.label = getattr(self._pb.FieldDescriptorProto, f"LABEL_{label.upper()}")
        for option in field.options:
            if option.name == "default" and not isinstance(option.value, Literal):
                into.default_value = _plain(option)
            elif option.name == "json_name":
                into.json_name = _plain(option)
        if not into.json_name:
            into.json_name = json_name(field.name)
        _set_options(into, [each for each in field.options if each.name not in ("default", "json_name")])
        if field.map_types is not None and holder is not None:
            self._map(into, field.map_types, scope, holder)
        elif field.group is not None and holder is not None:
            self._message(holder.nested_type.add(name=field.group.name), field.group, (*scope, field.group.name))
            into.type, into.type_name = self._pb.FieldDescriptorProto.TYPE_GROUP, f".{'.'.join((*scope, field.type))}"
        else:
            self._set_type(into, field.type, scope)

    def _map(
        self, into: pb.FieldDescriptorProto, types: tuple[str, str], scope: Scope, holder: pb.DescriptorProto
    ) -> None:
        entry = holder.nested_type.add(name=_camel(into.name) + "Entry")
        entry.options.map_entry = True
        for number, (name, kind) in enumerate(zip(("key", "value"), types, strict=True), 1):
            part = entry.field.add(name=name, number=number, json_name=name)
            part.label = self._pb.FieldDescriptorProto.LABEL_OPTIONAL
            self._set_type(part, kind, scope)
        into.type = self._pb.FieldDescriptorProto.TYPE_MESSAGE
        into.type_name = f".{'.'.join((*scope, entry.name))}"

    def _set_type(self, into: pb.FieldDescriptorProto, name: str, scope: Scope) -> None:
        kinds = self._pb.FieldDescriptorProto
        if name in SCALARS:
            into.type = getattr(kinds, f"TYPE_{name.upper()}")
            return
        full = self._full(name, scope)
        declared = self._types.get(full[1:])
        into.type = kinds.TYPE_ENUM if declared is not None and declared.is_enum else kinds.TYPE_MESSAGE
        into.type_name = full

    def _full(self, name: str, scope: Scope) -> str:
        resolved = self._types.resolve(name, scope)
        if resolved is None:
            raise InvalidSchema(f"unknown type {name}")
        return f".{resolved}"


def _write_ranges(into: pb.DescriptorProto, message: Message) -> None:
    for span in (span for extensions in message.extensions for span in extensions.spans):
        into.extension_range.add(start=span.first, end=span.last + 1)
    for reserved in (each for line in message.reserved for each in line):
        if isinstance(reserved, str):
            into.reserved_name.append(reserved)
        else:
            into.reserved_range.add(start=reserved.first, end=reserved.last + 1)


def _write_enum(into: pb.EnumDescriptorProto, enum: Enum) -> None:
    _set_options(into, enum.options)
    for value in enum.values:
        _set_options(into.value.add(name=value.name, number=value.number), value.options)
    for reserved in (each for line in enum.reserved for each in line):
        if isinstance(reserved, str):
            into.reserved_name.append(reserved)
        else:
            into.reserved_range.add(start=reserved.first, end=reserved.last)


def _set_options(into: Described, options: list[Option]) -> None:
    """Set standard options; custom options need their definitions to be part of a descriptor."""
    for option in options:
        field = into.options.DESCRIPTOR.fields_by_name.get(option.name)
        if field is None or field.message_type is not None or field.is_repeated:
            continue
        text = _plain(option)
        value: Any = text
        if field.cpp_type == field.CPPTYPE_BOOL:
            value = text == "true"
        elif field.cpp_type == field.CPPTYPE_ENUM:
            known = field.enum_type.values_by_name.get(text)
            if known is None:
                continue
            value = known.number
        setattr(into.options, option.name, value)


def _plain(option: Option) -> str:
    return option.value.text if isinstance(option.value, Text | Word) else ""


def json_name(name: str) -> str:
    camel = _camel(name)
    return camel[:1].lower() + camel[1:] if name[:1] != "_" else camel


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
