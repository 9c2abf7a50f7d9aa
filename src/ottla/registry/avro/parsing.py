"""Parses JSON to an Avro schema, with the checks of Avro's own parser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ottla.registry.avro.defaults import is_valid_default
from ottla.registry.avro.schema import MISSING, PRIMITIVES, Field, Name, Schema
from ottla.registry.errors import InvalidSchema
from ottla.registry.json_text import compact, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED: Final = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
_FIELD_RESERVED: Final = frozenset(("default", "doc", "name", "order", "type", "aliases"))
_ORDERS: Final = ("ascending", "descending", "ignore")
_LARGEST_SIZE: Final = (1 << 31) - 1


def parse(text: str, references: Iterable[str] = (), *, is_new: bool = True) -> tuple[Schema, list[Schema]]:
    """Parse a schema and its references; a new schema must have valid defaults."""
    try:
        parser = _Parser(checks_defaults=is_new)
        referenced = [parser.parse_text(each) for each in references]
        return parser.parse_text(text), referenced
    except RecursionError:
        raise InvalidSchema("nested too deeply") from None


class _Parser:
    def __init__(self, *, checks_defaults: bool) -> None:
        self._names: dict[str, Schema] = {}
        self._checks_defaults = checks_defaults
        self._defaults: list[tuple[str, Field]] = []

    def parse_text(self, text: str) -> Schema:
        stripped = text.strip()
        given = stripped if stripped in PRIMITIVES else parse_json(text)
        schema = self._parse(given, None)
        for where, field in self._defaults:
            if not is_valid_default(field.type, field.default):
                raise InvalidSchema(f"invalid default for field {where}: {compact(field.default)[:100]}")
        self._defaults.clear()
        return schema

    def _parse(self, given: object, space: str | None) -> Schema:
        if isinstance(given, str):
            return self._named(given, space)
        if isinstance(given, list):
            return self._union(given, space)
        if not isinstance(given, dict):
            raise InvalidSchema(f"expected a type, got {compact(given)[:60]}")
        kind = given.get("type")
        if kind is None:
            raise InvalidSchema(f"no type: {compact(given)[:100]}")
        if not isinstance(kind, str):
            return self._nested(given, kind, space)
        if kind in PRIMITIVES:
            return Schema(kind, props=_props(given, _RESERVED))
        if kind in ("record", "error", "enum", "fixed"):
            return self._new_name(given, kind, space)
        if kind == "array":
            return self._container(given, kind, "items", space)
        if kind == "map":
            return self._container(given, kind, "values", space)
        return self._named(kind, space)

    def _nested(self, given: dict[str, Any], kind: object, space: str | None) -> Schema:
        """`{"type": {...}}` is the inner type."""
        if "name" in given and not isinstance(kind, dict | list):
            raise InvalidSchema(f"invalid type: {compact(kind)[:60]}")
        return self._parse(kind, space)

    def _named(self, text: str, space: str | None) -> Schema:
        if text in PRIMITIVES:
            return Schema(text)
        name = _name_of(text, None, space)
        found = self._names.get(name.full) or self._names.get(text)
        if found is None:
            raise InvalidSchema(f"undefined name: {text!r}")
        return found

    def _union(self, given: list[Any], space: str | None) -> Schema:
        branches = tuple(self._parse(each, space) for each in given)
        seen: set[str] = set()
        for branch in branches:
            if branch.kind == "union":
                raise InvalidSchema(f"nested union: {compact(given)[:100]}")
            label = branch.kind if branch.name is None else branch.name.full
            if label in seen:
                raise InvalidSchema(f"duplicate in union: {label}")
            seen.add(label)
        return Schema("union", branches=branches)

    def _container(self, given: dict[str, Any], kind: str, keyword: str, space: str | None) -> Schema:
        if keyword not in given:
            raise InvalidSchema(f"{kind} has no {keyword}: {compact(given)[:100]}")
        return Schema(kind, element=self._parse(given[keyword], space), props=_props(given, _RESERVED))

    def _new_name(self, given: dict[str, Any], kind: str, space: str | None) -> Schema:
        text = given.get("name")
        if not isinstance(text, str):
            raise InvalidSchema(f"{kind} has no name: {compact(given)[:100]}")
        name = _name_of(text, given.get("namespace"), space)
        _check_name(name)
        if name.full in self._names:
            raise InvalidSchema(f"cannot redefine {name.full}")
        schema = Schema("record" if kind == "error" else kind, name, _doc(given), is_error=kind == "error")
        self._names[name.full] = schema
        schema.aliases = tuple(_name_of(each, None, name.namespace) for each in _strings(given, "aliases"))
        schema.props = _props(given, _RESERVED | {"default"} if kind == "enum" else _RESERVED)
        if kind == "enum":
            _fill_enum(schema, given)
        elif kind == "fixed":
            schema.size = _size(given)
        else:
            schema.fields = self._fields(given, name)
        return schema

    def _fields(self, given: dict[str, Any], name: Name) -> tuple[Field, ...]:
        listed = given.get("fields")
        if not isinstance(listed, list):
            raise InvalidSchema(f"record {name.full} has no fields")
        fields: dict[str, Field] = {}
        for each in listed:
            field = self._field(each, name)
            if field.name in fields:
                raise InvalidSchema(f"duplicate field {field.name} in record {name.full}")
            fields[field.name] = field
        return tuple(fields.values())

    def _field(self, given: object, name: Name) -> Field:
        if not isinstance(given, dict) or not isinstance(given.get("name"), str):
            raise InvalidSchema(f"field without a name in record {name.full}: {compact(given)[:100]}")
        if "type" not in given:
            raise InvalidSchema(f"no type for field {given['name']} in record {name.full}")
        if not _NAME.match(given["name"]):
            raise InvalidSchema(f"illegal character in {given['name']!r}")
        order = given.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise InvalidSchema(
                f"field {given['name']}: order must be one of {', '.join(_ORDERS)}, got {compact(order)}"
            )
        field = Field(
            name=given["name"],
            type=self._parse(given["type"], name.namespace),
            doc=_doc(given),
            default=given.get("default", MISSING),
            order=order.lower(),
            aliases=_strings(given, "aliases"),
            props=_props(given, _FIELD_RESERVED),
        )
        if self._checks_defaults and field.has_default:
            self._defaults.append((f"{name.full}.{field.name}", field))
        return field


def _fill_enum(schema: Schema, given: dict[str, Any]) -> None:
    symbols = _strings(given, "symbols")
    if "symbols" not in given:
        raise InvalidSchema(f"enum has no symbols: {compact(given)[:100]}")
    for symbol in symbols:
        if not _NAME.match(symbol):
            raise InvalidSchema(f"illegal enum symbol {symbol!r}")
    if len(set(symbols)) != len(symbols):
        raise InvalidSchema(f"duplicate enum symbol in {compact(symbols)[:100]}")
    default = given.get("default")
    if default is not None and default not in symbols:
        raise InvalidSchema(f"the enum default {compact(default)} is not one of its symbols")
    schema.symbols = symbols
    schema.enum_default = default


def _size(given: dict[str, Any]) -> int:
    size = given.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _LARGEST_SIZE:
        raise InvalidSchema(f"invalid or no size: {compact(given)[:100]}")
    return size


def _name_of(text: str, namespace: object, space: str | None) -> Name:
    """The full name. A name with dots is already full; others get the given namespace, or the enclosing one."""
    before, dot, last = text.rpartition(".")
    if dot:
        return Name(last, before or None)
    if isinstance(namespace, str):
        return Name(text, namespace or None)
    return Name(text, space)


def _check_name(name: Name) -> None:
    for part in (name.name, *(name.namespace or "_").split(".")):
        if not _NAME.match(part):
            raise InvalidSchema(f"illegal name {name.full!r}")


def _doc(given: dict[str, Any]) -> str | None:
    doc = given.get("doc")
    return doc if isinstance(doc, str) else None


def _strings(given: dict[str, Any], keyword: str) -> tuple[str, ...]:
    listed = given.get(keyword, [])
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise InvalidSchema(f"{keyword} must be an array of strings, got {compact(listed)[:60]}")
    return tuple(dict.fromkeys(listed)) if keyword == "aliases" else tuple(listed)


def _props(given: dict[str, Any], reserved: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key not in reserved}
