"""A parsed .proto file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

LARGEST_TAG: Final = (1 << 29) - 1
SCALARS: Final = frozenset(
    [
        "double",
        "float",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "sint32",
        "sint64",
        "fixed32",
        "fixed64",
        "sfixed32",
        "sfixed64",
        "bool",
        "string",
        "bytes",
    ]
)


class Text(NamedTuple):
    """A string literal, decoded."""

    text: str


class Word(NamedTuple):
    """A number, or an identifier."""

    text: str


class Entry(NamedTuple):
    name: str
    value: Value


class Literal(NamedTuple):
    """A message in text format."""

    entries: tuple[Entry, ...]


class Listed(NamedTuple):
    values: tuple[Value, ...]


Value = Text | Word | Literal | Listed


class Option(NamedTuple):
    name: str
    """The name as written: `deprecated`, `(my.ext).field`."""
    value: Value


class Span(NamedTuple):
    """A range of tags or enum numbers, both ends included."""

    first: int
    last: int
    is_range: bool = False
    """Whether a single number is written as a range."""


@dataclass(eq=False, slots=True)
class Field:
    label: str
    """`optional`, `required`, `repeated` or empty."""
    type: str
    """A scalar, a name, or `map<K, V>`."""
    name: str
    tag: int
    options: list[Option] = field(default_factory=list)
    group: Message | None = None

    @property
    def map_types(self) -> tuple[str, str] | None:
        if not self.type.startswith("map<"):
            return None
        key, _, value = self.type[4:-1].partition(", ")
        return key, value


@dataclass(eq=False, slots=True)
class OneOf:
    name: str
    fields: list[Field] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class EnumValue:
    name: str
    number: int
    options: list[Option] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Enum:
    name: str
    values: list[EnumValue] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[tuple[Span | str, ...]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Extensions:
    spans: tuple[Span, ...]
    options: list[Option] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Extend:
    name: str
    fields: list[Field] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Message:
    name: str
    fields: list[Field] = field(default_factory=list)
    oneofs: list[OneOf] = field(default_factory=list)
    types: list[Message | Enum] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[tuple[Span | str, ...]] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)

    def all_fields(self) -> list[Field]:
        return [*self.fields, *(each for oneof in self.oneofs for each in oneof.fields)]


@dataclass(eq=False, slots=True)
class Rpc:
    name: str
    request: str
    response: str
    streams_request: bool = False
    streams_response: bool = False
    options: list[Option] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Service:
    name: str
    rpcs: list[Rpc] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class ProtoFile:
    syntax: str = ""
    """`proto2`, `proto3`, or empty, which is proto2."""
    edition: str = ""
    package: str = ""
    imports: list[str] = field(default_factory=list)
    public_imports: list[str] = field(default_factory=list)
    weak_imports: list[str] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    types: list[Message | Enum] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)

    def all_imports(self) -> list[str]:
        return [*self.imports, *self.public_imports, *self.weak_imports]
