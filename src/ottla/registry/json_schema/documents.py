"""The documents of a schema and its references, and resolution of `$ref`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urljoin

from ottla.registry.errors import InvalidSchema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ottla.core.json_values import Json, JsonObject

_MODERN: Final = ("2019-09", "2020-12")
_META: Final = ("http://json-schema.org/", "https://json-schema.org/")
_MAPS_OF_SCHEMAS: Final = frozenset({"properties", "patternProperties", "definitions", "$defs", "dependentSchemas"})
_VALUES: Final = frozenset({"enum", "const", "default", "examples"})

Pointer = tuple[str, ...]


@dataclass(eq=False, slots=True)
class Document:
    content: Json
    uri: str = ""
    bases: dict[Pointer, str] = field(default_factory=dict)
    """The base URI of subschemas that have an id."""
    places: dict[str, Pointer] = field(default_factory=dict)
    """Subschemas by their URI, anchors by `#name`."""

    @property
    def is_modern(self) -> bool:
        dialect = self.content.get("$schema", "") if isinstance(self.content, dict) else ""
        return isinstance(dialect, str) and any(each in dialect for each in _MODERN)

    @property
    def id_keyword(self) -> str:
        dialect = self.content.get("$schema", "") if isinstance(self.content, dict) else ""
        return "id" if isinstance(dialect, str) and "draft-04" in dialect else "$id"

    def base(self, pointer: Pointer) -> str:
        for length in range(len(pointer), -1, -1):
            if (found := self.bases.get(pointer[:length])) is not None:
                return found
        return self.uri

    def at(self, pointer: Pointer) -> Json:
        value = self.content
        for step in pointer:
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                raise KeyError(step)
        return value


class Documents:
    """The schema and its references, by name."""

    def __init__(self, root: Json, references: Mapping[str, Json]) -> None:
        self.root = _indexed(root, "")
        self._by_uri: dict[str, Document] = {}
        for name, content in references.items():
            document = _indexed(content, urljoin(self.root.uri, name))
            for uri in (name, f"./{name}", urljoin(self.root.uri, name), document.uri):
                self._by_uri.setdefault(uri, document)

    def find(self, document: Document, pointer: Pointer, reference: str) -> tuple[Document, Pointer] | None:
        """The target of a `$ref` at a place; None for a meta-schema."""
        base = document.base(pointer)
        target, _, fragment = urljoin(base, reference).partition("#")
        raw = reference.partition("#")[0]
        if not raw or target == document.uri:
            found, start = document, document.places.get(base, ()) if not raw else ()
        elif target in document.places:
            found, start = document, document.places[target]
        elif (other := self._by_uri.get(target) or self._by_uri.get(raw)) is not None:
            found, start = other, ()
        elif target.startswith(_META):
            return None
        else:
            raise InvalidSchema(f"unresolved $ref {reference!r}")
        return found, self._fragment(found, start, fragment, reference)

    def _fragment(self, document: Document, start: Pointer, fragment: str, reference: str) -> Pointer:
        if fragment and not fragment.startswith("/"):
            anchor = document.places.get(f"#{fragment}")
            if anchor is None:
                raise InvalidSchema(f"unresolved $ref {reference!r}")
            return anchor
        steps = tuple(unquote(step).replace("~1", "/").replace("~0", "~") for step in fragment.split("/")[1:])
        for place in (start + steps, start + _other_bucket(steps), steps):
            try:
                document.at(place)
            except KeyError:
                continue
            return place
        raise InvalidSchema(f"unresolved $ref {reference!r}")


def _other_bucket(steps: Pointer) -> Pointer:
    """A schema under `definitions` is also found under `$defs`."""
    return ("definitions", *steps[1:]) if steps[:1] == ("$defs",) else steps


def _indexed(content: Json, uri: str) -> Document:
    document = Document(content, uri)
    keyword = document.id_keyword
    if isinstance(content, dict) and isinstance(given := content.get(keyword), str):
        document.uri = urljoin(uri, given).partition("#")[0]
    for pointer, schema in _subschemas(content):
        given = schema.get(keyword)
        if isinstance(given, str):
            full, _, anchor = urljoin(document.base(pointer), given).partition("#")
            document.bases[pointer] = full
            document.places.setdefault(f"#{anchor}" if anchor else full, pointer)
        for name in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(name), str):
                document.places.setdefault(f"#{schema[name]}", pointer)
    return document


def _subschemas(content: Json) -> Iterator[tuple[Pointer, JsonObject]]:
    """Every object that may be a schema, parents first."""
    pending: list[tuple[Pointer, Json, bool]] = [((), content, True)]
    while pending:
        pointer, value, is_schema = pending.pop()
        if isinstance(value, dict):
            if is_schema:
                yield pointer, value
            for key, each in value.items():
                if not (is_schema and key in _VALUES):
                    pending.append(((*pointer, key), each, not (is_schema and key in _MAPS_OF_SCHEMAS)))
        elif isinstance(value, list):
            pending += (((*pointer, str(at)), each, True) for at, each in enumerate(value))
