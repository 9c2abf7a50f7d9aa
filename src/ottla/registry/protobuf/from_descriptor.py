"""Converts a FileDescriptorProto to the nodes of a .proto file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.registry.protobuf.nodes import (
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    Message,
    OneOf,
    Option,
    ProtoFile,
    Rpc,
    Service,
    Span,
    Text,
    Word,
)
from ottla.registry.protobuf.serialized import json_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf import descriptor_pb2 as pb

    from ottla.registry.protobuf.serialized import Described

_LABELS = {1: "optional", 2: "required", 3: "repeated"}


def proto_file(descriptor: pb.FileDescriptorProto) -> ProtoFile:
    file = ProtoFile(syntax=descriptor.syntax or "proto2", package=descriptor.package)
    public = set(descriptor.public_dependency)
    for at, name in enumerate(descriptor.dependency):
        (file.public_imports if at in public else file.imports).append(name)
    file.options = _options(descriptor)
    reader = _Reader(is_proto3=descriptor.syntax == "proto3")
    file.types = [
        *(reader.message(each) for each in descriptor.message_type),
        *(_enum(each) for each in descriptor.enum_type),
    ]
    file.extends = reader.extends(descriptor.extension)
    file.services = [_service(each) for each in descriptor.service]
    return file


class _Reader:
    def __init__(self, *, is_proto3: bool) -> None:
        self._is_proto3 = is_proto3

    def message(self, given: pb.DescriptorProto) -> Message:
        message = Message(given.name, options=_options(given))
        entries = {each.name: each for each in given.nested_type if each.options.map_entry}
        message.types = [
            *(self.message(each) for each in given.nested_type if each.name not in entries),
            *(_enum(each) for each in given.enum_type),
        ]
        oneofs = [OneOf(each.name, options=_options(each)) for each in given.oneof_decl]
        for each in given.field:
            field = self._field(each, entries)
            if each.HasField("oneof_index") and not each.proto3_optional:
                field.label = ""
                oneofs[each.oneof_index].fields.append(field)
            else:
                message.fields.append(field)
        message.oneofs = [each for each in oneofs if each.fields]
        message.extends = self.extends(given.extension)
        message.extensions = [Extensions((Span(each.start, each.end - 1),)) for each in given.extension_range]
        spans = [Span(each.start, each.end - 1) for each in given.reserved_range]
        message.reserved = [(each,) for each in (*spans, *given.reserved_name)]
        return message

    def _field(self, given: pb.FieldDescriptorProto, entries: dict[str, Any]) -> Field:
        entry = entries.get(given.type_name.rpartition(".")[2]) if given.type_name else None
        label = _LABELS[given.label or 1]
        if entry is not None:
            key, value = sorted(entry.field, key=lambda each: each.number)
            return Field("", f"map<{_type(key)}, {_type(value)}>", given.name, given.number, _options(given))
        if self._is_proto3 and label == "optional" and not given.proto3_optional:
            label = ""
        options = _options(given)
        if given.HasField("default_value"):
            is_text = given.type in (given.TYPE_STRING, given.TYPE_BYTES)
            options.append(Option("default", Text(given.default_value) if is_text else Word(given.default_value)))
        if given.HasField("json_name") and given.json_name != json_name(given.name):
            options.append(Option("json_name", Text(given.json_name)))
        return Field(label, _type(given), given.name, given.number, options)

    def extends(self, fields: Iterable[pb.FieldDescriptorProto]) -> list[Extend]:
        by_name: dict[str, Extend] = {}
        for each in fields:
            extend = by_name.setdefault(each.extendee, Extend(each.extendee))
            extend.fields.append(self._field(each, {}))
        return list(by_name.values())


def _type(given: pb.FieldDescriptorProto) -> str:
    if given.type_name:
        return str(given.type_name)
    return given.Type.Name(given.type).removeprefix("TYPE_").lower()  # type: ignore[no-any-return]


def _enum(given: pb.EnumDescriptorProto) -> Enum:
    values = [EnumValue(each.name, each.number, _options(each)) for each in given.value]
    spans = [Span(each.start, each.end) for each in given.reserved_range]
    reserved: list[tuple[Span | str, ...]] = [(each,) for each in (*spans, *given.reserved_name)]
    return Enum(given.name, values, _options(given), reserved)


def _service(given: pb.ServiceDescriptorProto) -> Service:
    rpcs = [
        Rpc(each.name, each.input_type, each.output_type, each.client_streaming, each.server_streaming, _options(each))
        for each in given.method
    ]
    return Service(given.name, rpcs, _options(given))


def _options(given: Described) -> list[Option]:
    found: list[Option] = []
    for field, value in given.options.ListFields():
        if field.is_extension or field.message_type is not None or field.is_repeated or field.name == "map_entry":
            continue
        if field.cpp_type == field.CPPTYPE_STRING:
            found.append(Option(field.name, Text(value)))
        elif field.cpp_type == field.CPPTYPE_BOOL:
            found.append(Option(field.name, Word("true" if value else "false")))
        elif field.cpp_type == field.CPPTYPE_ENUM:
            found.append(Option(field.name, Word(field.enum_type.values_by_number[value].name)))
        else:
            found.append(Option(field.name, Word(str(value))))
    return found
