"""Prints an Avro schema like Avro's own `toString`: a named type is printed in full at its first occurrence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.registry.avro.schema import PRIMITIVES, Name
from ottla.registry.json_text import compact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.registry.avro.schema import Field, Schema


def canonical(schema: Schema, known: Iterable[Schema] = ()) -> str:
    """The canonical text. Types of `known` schemas are printed as names."""
    return compact(_Printer(_named_in(known), is_normalized=False).shown(schema, None))


def normalized(schema: Schema, known: Iterable[Schema] = ()) -> str:
    """The normalized text, which is the same for schemas that differ only in the order of properties and aliases."""
    return compact(_Printer(_named_in(known), is_normalized=True).shown(schema, None))


def _named_in(schemas: Iterable[Schema]) -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    pending = list(schemas)
    while pending:
        schema = pending.pop()
        if schema.name is not None:
            if schema.name.full in found:
                continue
            found[schema.name.full] = schema
        pending += (field.type for field in schema.fields)
        pending += schema.branches
        if schema.element is not None:
            pending.append(schema.element)
    return found


class _Printer:
    def __init__(self, seen: dict[str, Schema], *, is_normalized: bool) -> None:
        self._seen = seen
        self._is_normalized = is_normalized

    def shown(self, schema: Schema, space: str | None) -> object:
        if schema.kind == "union":
            return [self.shown(branch, space) for branch in schema.branches]
        if schema.name is not None:
            return self._named(schema, schema.name, space)
        props = self._props(schema.props)
        if schema.element is not None:
            keyword = "items" if schema.kind == "array" else "values"
            return {"type": schema.kind, keyword: self.shown(schema.element, space), **props}
        return {"type": schema.kind, **props} if props else schema.kind

    def _named(self, schema: Schema, name: Name, space: str | None) -> object:
        if self._seen.get(name.full) is schema:
            return name.name if name.namespace == space and name.name not in PRIMITIVES else name.full
        self._seen[name.full] = schema
        shown: dict[str, Any] = {"type": "error" if schema.is_error else schema.kind, "name": name.name}
        if name.namespace is not None:
            if name.namespace != space:
                shown["namespace"] = name.namespace
        elif space is not None:
            shown["namespace"] = ""
        if schema.doc is not None and not (self._is_normalized and not schema.doc):
            shown["doc"] = schema.doc
        shown |= self._content(schema, name)
        shown |= self._props(schema.props)
        if schema.aliases:
            aliases = [_relative(alias, name.namespace) for alias in schema.aliases]
            shown["aliases"] = sorted(aliases) if self._is_normalized else aliases
        return shown

    def _content(self, schema: Schema, name: Name) -> dict[str, Any]:
        if schema.kind == "record":
            return {"fields": [self._field(field, name.namespace) for field in schema.fields]}
        if schema.kind == "fixed":
            return {"size": schema.size}
        default = {} if schema.enum_default is None else {"default": schema.enum_default}
        return {"symbols": list(schema.symbols), **default}

    def _field(self, field: Field, space: str | None) -> dict[str, Any]:
        shown: dict[str, Any] = {"name": field.name, "type": self.shown(field.type, space)}
        if field.doc is not None:
            shown["doc"] = field.doc
        if field.has_default:
            shown["default"] = field.default
        if field.order != "ascending":
            shown["order"] = field.order
        if field.aliases:
            shown["aliases"] = sorted(field.aliases) if self._is_normalized else list(field.aliases)
        return shown | self._props(field.props)

    def _props(self, props: dict[str, Any]) -> dict[str, Any]:
        if not self._is_normalized:
            return props
        first = [key for key in ("logicalType", "precision", "scale") if key in props and "logicalType" in props]
        return {key: props[key] for key in (*first, *sorted(props.keys() - set(first)))}


def _relative(alias: Name, space: str | None) -> str:
    return alias.name if alias.namespace == space else alias.full
