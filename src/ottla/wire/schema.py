"""Parses declarations: the fields of a struct in one version, their order and wire format."""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, Struct

from ottla.wire.declare import Blob, Fixed, Message, NullableSince, RecordBytes, Since, Tag, Text, Until

_RuleT = TypeVar("_RuleT")


class Array(Struct, frozen=True):
    element: FieldType


class Nested(Struct, frozen=True):
    struct: type[Message]


FieldType: TypeAlias = Fixed | Text | Blob | RecordBytes | Array | Nested
"""The wire format of a value; nullability is separate."""


class Field(Struct, frozen=True):
    name: str
    type: FieldType
    is_nullable: bool
    default: Any
    tag: int | None


class Layout(Struct, frozen=True):
    """A struct in one version: the regular fields, then the tagged ones by number."""

    fields: tuple[Field, ...]
    tagged: tuple[Field, ...]


@cache
def layout(struct: type[Message], version: int) -> Layout:
    names = struct.__struct_fields__
    defaults = (NODEFAULT,) * (len(names) - len(struct.__struct_defaults__)) + struct.__struct_defaults__
    present = [
        field
        for name, default in zip(names, defaults, strict=True)
        if (field := _field(struct, name, default, version)) is not None
    ]
    tagged = sorted((field for field in present if field.tag is not None), key=lambda field: field.tag or 0)
    return Layout(tuple(field for field in present if field.tag is None), tuple(tagged))


def smallest_size(of: FieldType, version: int, *, is_flexible: bool) -> int:
    """The minimum size of a value, which counts are checked against."""
    match of:
        case Fixed():
            return of.size
        case Nested():
            inner = layout(of.struct, version)
            sizes = [
                1
                if field.is_nullable and isinstance(field.type, Nested)
                else smallest_size(field.type, version, is_flexible=is_flexible)
                for field in inner.fields
            ]
            return sum(sizes) + is_flexible
        case Text() if not is_flexible:
            return 2
        case _:
            return 1 if is_flexible else 4


def _field(struct: type[Message], name: str, default: object, version: int) -> Field | None:
    annotation = struct.__annotations__[name]
    if isinstance(annotation, str):
        raise TypeError(f"declare {struct.__name__} in a module without `from __future__ import annotations`")
    kind, is_nullable, rules = _resolve(annotation)
    tag, since, until = _rule(rules, Tag), _rule(rules, Since), _rule(rules, Until)
    if (tag or since or until) and default is NODEFAULT:
        raise TypeError(f"{struct.__name__}.{name} is missing from some versions, so it needs a default")
    first = tag.since if tag else since.version if since else 0
    if version < first or (until and version > until.version):
        return None
    if null_since := _rule(rules, NullableSince):
        is_nullable = version >= null_since.version
    return Field(name, kind, is_nullable, default, tag.number if tag else None)


def _resolve(annotation: object) -> tuple[FieldType, bool, tuple[object, ...]]:
    """Parse an annotation: wire format, nullability, and version rules."""
    rules: tuple[object, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *found = get_args(annotation)
        rules = tuple(found)
    choices = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    is_nullable = NoneType in choices
    for rule in rules:
        if isinstance(rule, Fixed | Text | Blob | RecordBytes):
            return rule, is_nullable, rules
    [inner] = [choice for choice in choices if choice is not NoneType]
    if get_origin(inner) is tuple:
        return Array(_resolve(get_args(inner)[0])[0]), is_nullable, rules
    if isinstance(inner, type) and issubclass(inner, Message):
        return Nested(inner), is_nullable, rules
    raise TypeError(f"{annotation!r} is not a type of the Kafka protocol")


def _rule(rules: tuple[object, ...], kind: type[_RuleT]) -> _RuleT | None:
    return next((rule for rule in rules if isinstance(rule, kind)), None)
