"""A parsed Avro schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class _Missing:
    """The marker for no default, since None is a valid default."""


MISSING: Final = _Missing()


class Name(NamedTuple):
    name: str
    namespace: str | None

    @property
    def full(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


@dataclass(eq=False, slots=True)
class Field:
    name: str
    type: Schema
    doc: str | None = None
    default: Any = MISSING
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    props: dict[str, Any] = field(default_factory=dict)

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING


@dataclass(eq=False, slots=True)
class Schema:
    """Compared by identity: a named type may contain itself."""

    kind: str
    name: Name | None = None
    doc: str | None = None
    aliases: tuple[Name, ...] = ()
    props: dict[str, Any] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    symbols: tuple[str, ...] = ()
    enum_default: str | None = None
    size: int = 0
    element: Schema | None = None
    """The items of an array, or the values of a map."""
    branches: tuple[Schema, ...] = ()
    is_error: bool = False

    def field(self, name: str) -> Field | None:
        return next((each for each in self.fields if each.name == name), None)

    @property
    def type_name(self) -> str:
        return self.kind.upper()
