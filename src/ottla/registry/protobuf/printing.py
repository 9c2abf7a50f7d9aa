"""Prints a .proto file in the layout that Confluent's registry stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ottla.registry.protobuf.nodes import LARGEST_TAG, Enum, Listed, Literal, Message, Option, Span, Text, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ottla.registry.protobuf.nodes import EnumValue, Extend, Extensions, Field, OneOf, ProtoFile, Rpc, Service

T = TypeVar("T")


def canonical(file: ProtoFile) -> str:
    return "".join(_file(file))


def _file(file: ProtoFile) -> Iterable[str]:
    if file.syntax:
        yield f'syntax = "{file.syntax}";\n'
    if file.edition:
        yield f'edition = "{file.edition}";\n'
    if file.package:
        yield f"package {file.package};\n"
    if file.all_imports():
        yield "\n"
        yield from (f'import "{each}";\n' for each in file.imports)
        yield from (f'import public "{each}";\n' for each in file.public_imports)
        yield from (f'import weak "{each}";\n' for each in file.weak_imports)
    yield from _section(file.options, _option_statement)
    if file.types:
        yield "\n"
        yield from _types(file.types)
    yield from _section(file.extends, _extend)
    yield from _section(file.services, _service)


def _section(items: Sequence[T], shown: Callable[[T], str]) -> Iterable[str]:
    if items:
        yield "\n"
        yield from map(shown, items)


def _types(types: Sequence[Message | Enum]) -> Iterable[str]:
    """Messages come first: their order determines message indexes."""
    yield from (_message(each) for each in types if isinstance(each, Message))
    yield from (_enum(each) for each in types if isinstance(each, Enum))


def _block(head: str, parts: Iterable[str]) -> str:
    """Indent the parts, but not the empty lines between them."""
    inner = "".join(part if part == "\n" else _indented(part) for part in parts)
    return f"{head} {{{inner}}}\n"


def _indented(text: str) -> str:
    return "".join(f"  {line}" for line in text.splitlines(keepends=True))


def _message(message: Message) -> str:
    return _block(f"message {message.name}", _body(message))


def _body(message: Message) -> Iterable[str]:
    yield from _section(message.reserved, _reserved)
    yield from _section(message.options, _option_statement)
    yield from _section([each for each in message.fields if each.group is None], _field)
    yield from _section(message.oneofs, _oneof)
    yield from _section([each for each in message.fields if each.group is not None], _field)
    yield from _section(message.extensions, _extensions)
    yield from _section(message.extends, _extend)
    if message.types:
        yield "\n"
        yield from _types(message.types)


def _enum(enum: Enum) -> str:
    parts = [*map(_reserved, enum.reserved), *map(_option_statement, enum.options), *map(_enum_value, enum.values)]
    return _block(f"enum {enum.name}", ["\n", *parts] if parts else [])


def _enum_value(value: EnumValue) -> str:
    return f"{value.name} = {value.number}{_options(value.options)};\n"


def _field(field: Field) -> str:
    label = f"{field.label} " if field.label else ""
    if field.group is not None:
        return _block(f"{label}group {field.group.name} = {field.tag}", _body(field.group))
    return f"{label}{field.type} {field.name} = {field.tag}{_options(field.options)};\n"


def _oneof(oneof: OneOf) -> str:
    parts = [*_section(oneof.options, _option_statement), *_section(oneof.fields, _field)]
    return _block(f"oneof {oneof.name}", parts)


def _extend(extend: Extend) -> str:
    return _block(f"extend {extend.name}", _section(extend.fields, _field))


def _extensions(extensions: Extensions) -> str:
    return f"extensions {', '.join(map(_span, extensions.spans))}{_options(extensions.options)};\n"


def _reserved(reserved: tuple[Span | str, ...]) -> str:
    shown = (f'"{each}"' if isinstance(each, str) else _span(each) for each in reserved)
    return f"reserved {', '.join(shown)};\n"


def _span(span: Span) -> str:
    if span.first == span.last and not span.is_range:
        return str(span.first)
    return f"{span.first} to {'max' if span.last >= LARGEST_TAG else span.last}"


def _service(service: Service) -> str:
    parts = [*_section(service.options, _option_statement), *_section(service.rpcs, _rpc)]
    return _block(f"service {service.name}", parts)


def _rpc(rpc: Rpc) -> str:
    request, response = (
        ("stream " * rpc.streams_request) + rpc.request,
        ("stream " * rpc.streams_response) + rpc.response,
    )
    head = f"rpc {rpc.name} ({request}) returns ({response})"
    if not rpc.options:
        return f"{head};\n"
    inner = _indented("".join(map(_option_statement, rpc.options)))
    return f"{head} {{\n{inner}}};\n"


# Options


def _option_statement(option: Option) -> str:
    return f"option {_option(option)};\n"


def _options(options: Sequence[Option]) -> str:
    if not options:
        return ""
    if len(options) == 1:
        return f" [{_option(options[0])}]"
    inner = _indented(",\n".join(map(_option, options)))
    return f" [\n{inner}\n]"


def _option(option: Option) -> str:
    value = option.value
    if isinstance(value, Listed) and len(value.values) == 1:
        return f"{option.name} = [{_value(value.values[0])}]"
    return f"{option.name} = {_value(value)}"


def _value(value: Value) -> str:
    if isinstance(value, Text):
        return f'"{_escaped(value.text)}"'
    if isinstance(value, Literal):
        inner = ",\n".join(f"{name}: {_value(each)}" for name, each in value.entries)
        return f"{{\n{_indented(inner)}\n}}"
    if isinstance(value, Listed):
        if not value.values:
            return "[\n]"
        inner = _indented(",\n".join(map(_value, value.values)))
        return f"[\n{inner}\n]"
    return value.text


def _escaped(text: str) -> str:
    found = []
    for letter in text:
        if letter in '"\\':
            found.append("\\" + letter)
        elif letter in "\n\r\t":
            found.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[letter])
        elif ord(letter) < 0x20 or ord(letter) == 0x7F:
            found.append(f"\\{ord(letter):03o}")
        else:
            found.append(letter)
    return "".join(found)
