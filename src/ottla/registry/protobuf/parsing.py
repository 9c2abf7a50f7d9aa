"""Parses the text of a .proto file to nodes: proto2, proto3 and editions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.registry.errors import InvalidSchema
from ottla.registry.protobuf.lexing import Token, tokens
from ottla.registry.protobuf.nodes import (
    LARGEST_TAG,
    SCALARS,
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
)
from ottla.registry.protobuf.option_values import option_value

if TYPE_CHECKING:
    from collections.abc import Callable

_SPECIAL: Final = {"default": 1, "json_name": 2}
_LABELS: Final = ("optional", "required", "repeated")
_RESERVED_TAGS: Final = range(19_000, 20_000)
_LARGEST_NUMBER: Final = (1 << 31) - 1


def parse(source: str) -> ProtoFile:
    try:
        return _Parser(list(tokens(source))).file()
    except RecursionError:
        raise InvalidSchema("nested too deeply") from None


class Tokens:
    """A list of tokens, read from the front."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def take(self) -> Token:
        token = self.next
        if token.kind != "end":
            self._at += 1
        return token

    def takes(self, text: str) -> bool:
        """Take the token if it is this one."""
        if self.next.text != text or self.next.kind == "text":
            return False
        self.take()
        return True

    def expect(self, text: str) -> None:
        if not self.takes(text):
            raise self.unexpected(repr(text))

    def word(self) -> str:
        if self.next.kind != "word" or not (self.next.text[0].isalpha() or self.next.text[0] == "_"):
            raise self.unexpected("a name")
        return self.take().text

    def text(self) -> str:
        if self.next.kind != "text":
            raise self.unexpected("a string")
        parts = [self.take().text]
        while self.next.kind == "text":
            parts.append(self.take().text)
        return "".join(parts)

    def number(self) -> int:
        sign = -1 if self.takes("-") else 1
        token = self.take()
        try:
            digits = token.text
            base = 16 if digits[:2] in ("0x", "0X") else 8 if digits.startswith("0") and digits != "0" else 10
            return sign * int(digits, base)
        except ValueError:
            raise InvalidSchema(f"line {token.line}: expected an integer, got {token.text!r}") from None

    def name(self) -> str:
        """A name with dots; one that starts with a dot is absolute."""
        text = "." if self.takes(".") else ""
        text += self.word()
        while self.takes("."):
            text += "." + self.word()
        return text

    def unexpected(self, expected: str) -> InvalidSchema:
        return InvalidSchema(f"line {self.next.line}: expected {expected}, got {self.next.text!r}")


class _Parser(Tokens):
    def file(self) -> ProtoFile:
        file = ProtoFile()
        if self.takes("syntax"):
            self.expect("=")
            file.syntax = self.text()
            if file.syntax not in ("proto2", "proto3"):
                raise InvalidSchema(f"syntax must be proto2 or proto3, got {file.syntax!r}")
            self.expect(";")
        elif self.takes("edition"):
            self.expect("=")
            file.edition = self.text()
            self.expect(";")
        while self.next.kind != "end":
            self._declaration(file)
        return file

    def _declaration(self, file: ProtoFile) -> None:
        if self.takes(";"):
            return
        keyword = self.next.text
        if keyword in ("message", "enum"):
            file.types.append(self._type())
        elif self.takes("package"):
            file.package = self.name()
            self.expect(";")
        elif self.takes("import"):
            self._import(file)
        elif self.takes("option"):
            file.options.append(self._option())
            self.expect(";")
        elif self.takes("extend"):
            file.extends.append(self._extend())
        elif self.takes("service"):
            file.services.append(self._service())
        else:
            raise self.unexpected("a declaration")

    def _import(self, file: ProtoFile) -> None:
        kind = self.take().text if self.next.text in ("public", "weak") and self.next.kind == "word" else ""
        listed = {"": file.imports, "public": file.public_imports, "weak": file.weak_imports}[kind]
        listed.append(self.text())
        self.expect(";")

    def _type(self) -> Message | Enum:
        return self._message() if self.take().text == "message" else self._enum()

    # Messages

    def _message(self) -> Message:
        message = Message(self.word())
        self._body(message)
        return message

    def _body(self, message: Message) -> None:
        self.expect("{")
        by_keyword: dict[str, Callable[[], None]] = {
            "option": lambda: message.options.append(self._ended_option()),
            "oneof": lambda: message.oneofs.append(self._oneof(message)),
            "extend": lambda: message.extends.append(self._extend()),
            "reserved": lambda: message.reserved.append(self._reserved()),
            "extensions": lambda: message.extensions.append(self._extensions()),
        }
        while not self.takes("}"):
            keyword = self.next.text
            if self.takes(";"):
                continue
            if keyword in ("message", "enum") and self._declares_type():
                message.types.append(self._type())
            elif keyword in by_keyword and self._is_statement(keyword):
                self.take()
                by_keyword[keyword]()
            else:
                message.fields.append(self._field())
        _check_tags(message)

    def _declares_type(self) -> bool:
        """Whether this is `message X {`, and not a field of a type named `message`."""
        return self._tokens[self._at + 1].kind == "word" and self._tokens[self._at + 2].text == "{"

    def _is_statement(self, keyword: str) -> bool:
        """Whether a keyword starts a statement, and is not the type of a field."""
        following = self._tokens[self._at + 1], self._tokens[self._at + 2]
        if keyword in ("option", "oneof", "extend"):
            return following[1].text != "=" or following[0].text == "(" or keyword == "option"
        return following[1].text != "="

    def _field(self) -> Field:
        label = self.take().text if self.next.text in _LABELS and self.next.kind == "word" else ""
        if self.next.text == "group" and self._tokens[self._at + 1].kind == "word":
            self.take()
            return self._group(label)
        field = Field(label, self._field_type(), self.word(), 0)
        self.expect("=")
        field.tag = self._tag()
        options = self._options()
        # These two have the syntax of options without being options, and are stored last.
        field.options = sorted(options, key=lambda each: _SPECIAL.get(each.name, 0))
        self.expect(";")
        return field

    def _group(self, label: str) -> Field:
        name = self.word()
        self.expect("=")
        tag = self._tag()
        options = self._options()
        group = Message(name)
        self._body(group)
        return Field(label, name, name.lower(), tag, options, group)

    def _field_type(self) -> str:
        if self.next.text != "map" or self._tokens[self._at + 1].text != "<":
            return self.name()
        self.take()
        self.expect("<")
        key = self.name()
        self.expect(",")
        value = self.name()
        self.expect(">")
        if key not in SCALARS - {"double", "float", "bytes"}:
            raise InvalidSchema(f"map keys cannot be of type {key}")
        return f"map<{key}, {value}>"

    def _tag(self) -> int:
        line = self.next.line
        tag = self.number()
        if not 1 <= tag <= LARGEST_TAG or tag in _RESERVED_TAGS:
            raise InvalidSchema(f"line {line}: invalid field number {tag}")
        return tag

    def _oneof(self, message: Message) -> OneOf:
        oneof = OneOf(self.word())
        self.expect("{")
        while not self.takes("}"):
            if self.takes(";"):
                continue
            if self.next.text == "option" and self._is_statement("option"):
                self.take()
                oneof.options.append(self._ended_option())
                continue
            field = self._field()
            if field.label:
                raise InvalidSchema(f"{message.name}.{field.name}: fields of a oneof have no label")
            oneof.fields.append(field)
        return oneof

    def _extend(self) -> Extend:
        extend = Extend(self.name())
        self.expect("{")
        while not self.takes("}"):
            if not self.takes(";"):
                extend.fields.append(self._field())
        return extend

    def _reserved(self) -> tuple[Span | str, ...]:
        found: list[Span | str] = []
        while True:
            if self.next.kind == "text":
                found.append(self.text())
            elif self.next.kind == "word" and not self.next.text[0].isdecimal():
                found.append(self.word())
            else:
                found.append(self._span())
            if not self.takes(","):
                break
        self.expect(";")
        return tuple(found)

    def _span(self) -> Span:
        first = self.number()
        if not self.takes("to"):
            return Span(first, first)
        return Span(first, LARGEST_TAG if self.takes("max") else self.number(), is_range=True)

    def _extensions(self) -> Extensions:
        spans = [self._span()]
        while self.takes(","):
            spans.append(self._span())
        options = self._options()
        self.expect(";")
        return Extensions(tuple(spans), options)

    # Enums

    def _enum(self) -> Enum:
        enum = Enum(self.word())
        self.expect("{")
        while not self.takes("}"):
            if self.takes(";"):
                continue
            if self.next.text == "option" and self._tokens[self._at + 1].text != "=":
                self.take()
                enum.options.append(self._ended_option())
            elif self.next.text == "reserved" and self._tokens[self._at + 1].text != "=":
                self.take()
                enum.reserved.append(self._reserved())
            else:
                enum.values.append(self._enum_value())
        return enum

    def _enum_value(self) -> EnumValue:
        value = EnumValue(self.word(), 0)
        self.expect("=")
        value.number = self.number()
        if abs(value.number) > _LARGEST_NUMBER + (value.number < 0):
            raise InvalidSchema(f"enum value {value.name} is out of range: {value.number}")
        value.options = self._options()
        self.expect(";")
        return value

    # Services

    def _service(self) -> Service:
        service = Service(self.word())
        self.expect("{")
        while not self.takes("}"):
            if self.takes(";"):
                continue
            if self.takes("option"):
                service.options.append(self._ended_option())
            else:
                self.expect("rpc")
                service.rpcs.append(self._rpc())
        return service

    def _rpc(self) -> Rpc:
        rpc = Rpc(self.word(), "", "")
        rpc.streams_request, rpc.request = self._rpc_type()
        self.expect("returns")
        rpc.streams_response, rpc.response = self._rpc_type()
        if self.takes("{"):
            while not self.takes("}"):
                if not self.takes(";"):
                    self.expect("option")
                    rpc.options.append(self._ended_option())
            self.takes(";")
        else:
            self.expect(";")
        return rpc

    def _rpc_type(self) -> tuple[bool, str]:
        self.expect("(")
        streams = self.next.text == "stream" and self._tokens[self._at + 1].text not in (".", ")")
        if streams:
            self.take()
        name = self.name()
        self.expect(")")
        return streams, name

    # Options

    def _ended_option(self) -> Option:
        option = self._option()
        self.expect(";")
        return option

    def _options(self) -> list[Option]:
        if not self.takes("["):
            return []
        found = [self._option()]
        while self.takes(","):
            found.append(self._option())
        self.expect("]")
        return found

    def _option(self) -> Option:
        parts = [self._option_part()]
        while self.takes("."):
            parts.append(self._option_part())
        self.expect("=")
        return Option(".".join(parts), option_value(self))

    def _option_part(self) -> str:
        if not self.takes("("):
            return self.word()
        name = self.name()
        self.expect(")")
        return f"({name})"


def _check_tags(message: Message) -> None:
    tags: dict[int, str] = {}
    names: set[str] = set()
    for field in message.all_fields():
        if field.tag in tags:
            raise InvalidSchema(f"{message.name}: {tags[field.tag]} and {field.name} have the number {field.tag}")
        if field.name in names:
            raise InvalidSchema(f"{message.name}: duplicate field {field.name}")
        tags[field.tag] = field.name
        names.add(field.name)
