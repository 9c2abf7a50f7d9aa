"""A loaded JSON Schema: one node per kind of constraint.

Compatibility is defined by these kinds, as Confluent's registry distinguishes them: a schema with keywords of several
kinds becomes a generated `allOf` of one node for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

Number = int | Decimal


@dataclass(eq=False, slots=True, kw_only=True)
class Node:
    """Compared by identity: a pair of nodes is compared once, regardless of the number of paths to it."""

    source: str = ""
    """Equal for nodes with equal constraints."""
    id: str | None = None
    title: str | None = None
    description: str | None = None
    default: Any = None
    connect_type: str | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class Empty(Node):
    """Matches everything: `{}` or `true`."""


@dataclass(eq=False, slots=True, kw_only=True)
class Nothing(Node):
    """Matches nothing: `false`."""


@dataclass(eq=False, slots=True, kw_only=True)
class Boolean(Node):
    pass


@dataclass(eq=False, slots=True, kw_only=True)
class Null(Node):
    pass


@dataclass(eq=False, slots=True, kw_only=True)
class String(Node):
    max_length: int | None = None
    min_length: int | None = None
    pattern: str | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class Numeric(Node):
    maximum: Number | None = None
    minimum: Number | None = None
    exclusive_maximum: Number | None = None
    exclusive_minimum: Number | None = None
    multiple_of: Number | None = None
    is_integer: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class Object(Node):
    properties: dict[str, Node] = field(default_factory=dict)
    pattern_properties: dict[str, Node] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    takes_additional: bool = True
    additional: Node | None = None
    unevaluated: Node | None = None
    max_properties: int | None = None
    min_properties: int | None = None
    property_dependencies: dict[str, frozenset[str]] = field(default_factory=dict)
    schema_dependencies: dict[str, Node] = field(default_factory=dict)


@dataclass(eq=False, slots=True, kw_only=True)
class Array(Node):
    all_items: Node | None = None
    items: tuple[Node, ...] = ()
    takes_additional: bool = True
    additional: Node | None = None
    unevaluated: Node | None = None
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool = False
    max_contains: int | None = None
    min_contains: int | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class Enum(Node):
    values: frozenset[str] = frozenset()
    """The values as canonical JSON."""


@dataclass(eq=False, slots=True, kw_only=True)
class Const(Node):
    value: str = ""
    """The value as canonical JSON."""


@dataclass(eq=False, slots=True, kw_only=True)
class Combined(Node):
    criterion: str = "allOf"
    members: tuple[Node, ...] = ()


@dataclass(eq=False, slots=True, kw_only=True)
class Not(Node):
    member: Node


@dataclass(eq=False, slots=True, kw_only=True)
class Conditional(Node):
    pass


@dataclass(eq=False, slots=True, kw_only=True)
class Reference(Node):
    target: Node | None = None


_EVERYTHING: Final = Empty()


def resolved(node: Node) -> Node:
    """The target of a chain of references; an endless chain matches everything."""
    seen: set[int] = set()
    while isinstance(node, Reference):
        if node.target is None or id(node) in seen:
            return _EVERYTHING
        seen.add(id(node))
        node = node.target
    return node
