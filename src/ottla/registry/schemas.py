"""Schemas of all types behind one interface: canonical form, normalized form, compatibility."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from ottla.registry.errors import InvalidSchema
from ottla.registry.model import AVRO, JSON, PROTOBUF, Reference, Schema

if TYPE_CHECKING:
    from collections.abc import Callable

_CACHED: Final = 1000


class Parsed(Protocol):
    """A parsed schema; `previous` arguments are of the same type."""

    def __hash__(self) -> int: ...

    def canonical(self) -> str: ...

    def normalized(self) -> str: ...

    def formatted(self, wanted: str) -> str:
        """The text in a named format; an unknown format returns the canonical form."""

    def incompatibilities(self, previous: Parsed, *, is_lenient: bool) -> list[str]:
        """Why this schema cannot read data of a previous one; empty if it can."""

    def has_field(self, name: str) -> bool:
        """Whether it has a top-level field."""

    def record_names(self) -> list[str]:
        """The record names for RecordNameStrategy."""


Resolved = tuple[tuple[Reference, str], ...]
"""References and their texts, dependencies first."""


def parse(schema: Schema, resolved: Resolved, *, is_new: bool = False) -> Parsed:
    """Parse a schema; raises InvalidSchema if it is malformed. A new schema is validated more strictly."""
    return _parse(schema.type, schema.text, resolved, is_new)


@lru_cache(maxsize=_CACHED)
def _parse(kind: str, text: str, resolved: Resolved, is_new: bool) -> Parsed:  # noqa: FBT001 - a cache's key
    if kind == AVRO:
        from ottla.registry.types.avro import AvroSchema

        return AvroSchema(text, resolved, is_new=is_new)
    if kind == JSON:
        from ottla.registry.types.json import JsonSchema

        return JsonSchema(text, resolved)
    if kind == PROTOBUF:
        from ottla.registry.types.protobuf import ProtobufSchema

        return ProtobufSchema(text, resolved)
    raise InvalidSchema(f"unknown schema type {kind!r} (AVRO, JSON or PROTOBUF)")


def canonicalized(schema: Schema, parsed: Parsed, *, normalize: bool) -> Schema:
    if not normalize:
        return replace(schema, text=parsed.canonical())
    references = tuple(sorted(set(schema.references)))
    return replace(schema, text=parsed.normalized(), references=references)


def incompatibilities(level: str, new: Parsed, previous: list[Parsed], *, is_lenient: bool = False) -> list[str]:
    """The messages of the first incompatible version; `previous` has the oldest version first."""
    if level == "NONE":
        return []
    checked = reversed(previous if level.endswith("_TRANSITIVE") else previous[-1:])
    check = _CHECKS[level.removesuffix("_TRANSITIVE")]
    for each in checked:
        if type(each) is not type(new):
            return ["the schema type differs from that of an earlier version"]
        found = check(new, each, is_lenient)
        if found:
            return found
    return []


@lru_cache(maxsize=_CACHED)
def _checked(reader: Parsed, writer: Parsed, is_lenient: bool) -> tuple[str, ...] | InvalidSchema:  # noqa: FBT001 - a cache's key
    try:
        return tuple(reader.incompatibilities(writer, is_lenient=is_lenient))
    except InvalidSchema as wrong:
        return wrong


def _messages(reader: Parsed, writer: Parsed, is_lenient: bool) -> tuple[str, ...]:  # noqa: FBT001 - as checked
    found = _checked(reader, writer, is_lenient)
    if isinstance(found, InvalidSchema):
        raise InvalidSchema(*found.args)
    return found


def _backward(new: Parsed, old: Parsed, is_lenient: bool) -> list[str]:  # noqa: FBT001 - one of a table
    return [_named(each, "new", "old") for each in _messages(new, old, is_lenient)]


def _forward(new: Parsed, old: Parsed, is_lenient: bool) -> list[str]:  # noqa: FBT001 - one of a table
    return [_named(each, "old", "new") for each in _messages(old, new, is_lenient)]


def _full(new: Parsed, old: Parsed, is_lenient: bool) -> list[str]:  # noqa: FBT001 - one of a table
    return [*_backward(new, old, is_lenient), *_forward(new, old, is_lenient)]


def _named(message: str, reader: str, writer: str) -> str:
    return message.replace("%s", reader, 1).replace("%s", writer, 1)


_CHECKS: Final[dict[str, Callable[[Parsed, Parsed, bool], list[str]]]] = {
    "BACKWARD": _backward,
    "FORWARD": _forward,
    "FULL": _full,
}
