"""Converts JSON to nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.registry.errors import InvalidSchema
from ottla.registry.json_schema import nodes
from ottla.registry.json_schema.documents import Document, Documents, Pointer
from ottla.registry.json_text import compact, exact_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.core.json_values import Json, JsonObject
    from ottla.registry.json_schema.nodes import Node

_STRING: Final = ("maxLength", "minLength", "pattern", "format")
_NUMBER: Final = ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf")
_OBJECT: Final = (
    "properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties",
    "additionalProperties", "propertyNames",
)  # fmt: skip
_OBJECT_MODERN: Final = ("dependentRequired", "dependentSchemas", "unevaluatedProperties")
_ARRAY: Final = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains")
_ARRAY_MODERN: Final = ("prefixItems", "unevaluatedItems", "minContains", "maxContains")
_TYPES: Final = ("string", "number", "integer", "boolean", "null", "object", "array")
_CONDITIONAL: Final = ("if", "then", "else")


def load(root: Json, references: Mapping[str, Json]) -> Node:
    """The node of a schema; raises InvalidSchema if a keyword is malformed, or a `$ref` cannot be resolved."""
    try:
        return _Loader(Documents(root, references)).load()
    except RecursionError:
        raise InvalidSchema("nested too deeply") from None


class _Loader:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._loaded: dict[tuple[int, Pointer], Node] = {}
        self._unresolved: list[tuple[nodes.Reference, Document, Pointer, str]] = []

    def load(self) -> Node:
        node = self._node(self._documents.root, ())
        while self._unresolved:
            reference, document, pointer, text = self._unresolved.pop()
            found = self._documents.find(document, pointer, text)
            reference.target = nodes.Empty() if found is None else self._node(*found)
        return node

    def _node(self, document: Document, pointer: Pointer) -> Node:
        key = (id(document), pointer)
        if key not in self._loaded:
            self._loaded[key] = self._new_node(document, pointer)
        return self._loaded[key]

    def _new_node(self, document: Document, pointer: Pointer) -> Node:
        schema = document.at(pointer)
        if schema is True:
            return nodes.Empty(source="true")
        if schema is False:
            return nodes.Nothing(source="false")
        if not isinstance(schema, dict):
            raise InvalidSchema(f"{_shown(pointer)}: expected an object or a boolean, got {compact(schema)[:60]}")
        node = _Parts(self, document, pointer, schema).node()
        _describe(node, schema, document.id_keyword)
        return node

    def reference(self, document: Document, pointer: Pointer, text: str) -> Node:
        node = nodes.Reference(source=compact({"$ref": text}))
        self._unresolved.append((node, document, pointer, text))
        return node

    child = _node


def _describe(node: Node, schema: JsonObject, id_keyword: str) -> None:
    node.id = _text(schema, id_keyword)
    node.title = _text(schema, "title")
    node.description = _text(schema, "description")
    node.default = schema.get("default")
    node.connect_type = _text(schema, "connect.type")


class _Parts:
    """The nodes of one schema object."""

    def __init__(self, loader: _Loader, document: Document, pointer: Pointer, schema: JsonObject) -> None:
        self._loader = loader
        self._document = document
        self._pointer = pointer
        self._schema = schema
        self._is_modern = document.is_modern

    def node(self) -> Node:
        schema = self._schema
        if "$ref" in schema and not self._is_modern:
            return self._reference(schema["$ref"])
        found = [*self._values(), *self._combined(), *self._other(), *self._by_type()]
        if not found:
            return nodes.Empty(source="true")
        if len(found) == 1:
            return found[0]
        # Nested combinations come first, as Confluent's registry orders them.
        found.sort(key=lambda node: not isinstance(node, nodes.Combined))
        return nodes.Combined(source=compact(schema, sort_keys=True), criterion="allOf", members=tuple(found))

    def _reference(self, text: object) -> Node:
        if not isinstance(text, str):
            raise self._wrong("$ref", "a string")
        return self._loader.reference(self._document, self._pointer, text)

    def _values(self) -> list[Node]:
        found: list[Node] = []
        schema = self._schema
        if "enum" in schema:
            if not isinstance(schema["enum"], list):
                raise self._wrong("enum", "an array")
            values = frozenset(compact(value, sort_keys=True) for value in schema["enum"])
            found.append(nodes.Enum(source=self._source(("enum",)), values=values))
        if "const" in schema:
            found.append(nodes.Const(source=self._source(("const",)), value=compact(schema["const"], sort_keys=True)))
        return found

    def _combined(self) -> list[Node]:
        found: list[Node] = []
        for criterion in ("allOf", "anyOf", "oneOf"):
            if criterion in self._schema:
                members = self._many(criterion)
                source = self._source((criterion,))
                found.append(nodes.Combined(source=source, criterion=criterion, members=members))
        return found

    def _other(self) -> list[Node]:
        schema = self._schema
        found: list[Node] = []
        if "$ref" in schema:
            found.append(self._reference(schema["$ref"]))
        if "$dynamicRef" in schema and self._is_modern:
            found.append(self._reference(schema["$dynamicRef"]))
        if "not" in schema:
            found.append(nodes.Not(source=self._source(("not",)), member=self._child("not")))
        if "if" in schema:
            for keyword in _CONDITIONAL:
                if keyword in schema:
                    self._child(keyword)
            found.append(nodes.Conditional(source=self._source(_CONDITIONAL)))
        return found

    def _by_type(self) -> list[Node]:
        wanted = self._schema.get("type")
        if isinstance(wanted, str):
            return [self._typed(wanted)]
        if isinstance(wanted, list):
            members = tuple(self._typed(each) for each in wanted)
            return [nodes.Combined(source=self._source(tuple(self._schema)), criterion="anyOf", members=members)]
        if "type" in self._schema:
            raise self._wrong("type", "a string or an array of strings")
        return self._sniffed()

    def _sniffed(self) -> list[Node]:
        """The types implied by keywords: they constrain values of their type, even if no type is given."""
        by_keywords: tuple[tuple[tuple[str, ...], Callable[[], Node]], ...] = (
            ((*_ARRAY, *(_ARRAY_MODERN if self._is_modern else ())), self._array),
            ((*_OBJECT, *(_OBJECT_MODERN if self._is_modern else ())), self._object),
            (_NUMBER, self._numeric),
            (_STRING[:3] if self._is_modern else _STRING, self._string),
        )
        return [build() for keywords, build in by_keywords if any(each in self._schema for each in keywords)]

    def _typed(self, name: object) -> Node:
        if name not in _TYPES:
            raise InvalidSchema(f"{_shown(self._pointer)}: unknown type {compact(name)}")
        if name == "boolean":
            return nodes.Boolean(source='"boolean"')
        if name == "null":
            return nodes.Null(source='"null"')
        if name == "string":
            return self._string()
        if name in ("number", "integer"):
            return self._numeric(is_integer=name == "integer")
        return self._object() if name == "object" else self._array()

    def _string(self) -> Node:
        pattern = self._schema.get("pattern")
        if pattern is not None and not isinstance(pattern, str):
            raise self._wrong("pattern", "a string")
        return nodes.String(
            source=self._source(_STRING, "string"),
            max_length=self._count("maxLength"),
            min_length=self._count("minLength"),
            pattern=pattern,
        )

    def _numeric(self, *, is_integer: bool = False) -> Node:
        return nodes.Numeric(
            source=self._source(_NUMBER, "integer" if is_integer else "number"),
            maximum=self._number("maximum"),
            minimum=self._number("minimum"),
            exclusive_maximum=self._number("exclusiveMaximum", takes_boolean=True),
            exclusive_minimum=self._number("exclusiveMinimum", takes_boolean=True),
            multiple_of=self._number("multipleOf"),
            is_integer=is_integer,
        )

    def _object(self) -> Node:
        schema = self._schema
        node = nodes.Object(
            source=self._source((*_OBJECT, *_OBJECT_MODERN), "object"),
            properties=self._named("properties"),
            pattern_properties=self._named("patternProperties"),
            required=self._names("required"),
            takes_additional=schema.get("additionalProperties") is not False,
            max_properties=self._count("maxProperties"),
            min_properties=self._count("minProperties"),
        )
        if "propertyNames" in schema:
            self._child("propertyNames")
        if not isinstance(schema.get("additionalProperties", True), bool):
            node.additional = self._child("additionalProperties")
        self._dependencies(node)
        if self._is_modern and "unevaluatedProperties" in schema:
            node.unevaluated = self._child("unevaluatedProperties")
        return node

    def _dependencies(self, node: nodes.Object) -> None:
        for keyword in ("dependentRequired", "dependentSchemas") if self._is_modern else ("dependencies",):
            given = self._schema.get(keyword, {})
            if not isinstance(given, dict):
                raise self._wrong(keyword, "an object")
            for name, value in given.items():
                if isinstance(value, list):
                    node.property_dependencies[name] = frozenset(map(str, value))
                else:
                    node.schema_dependencies[name] = self._child(keyword, name)

    def _array(self) -> Node:
        schema = self._schema
        unique = schema.get("uniqueItems", False)
        if not isinstance(unique, bool):
            raise self._wrong("uniqueItems", "a boolean")
        node = nodes.Array(
            source=self._source((*_ARRAY, *_ARRAY_MODERN), "array"),
            max_items=self._count("maxItems"),
            min_items=self._count("minItems"),
            unique_items=unique,
        )
        if "contains" in schema:
            self._child("contains")
        if self._is_modern:
            self._modern_items(node)
        else:
            self._items(node)
        return node

    def _items(self, node: nodes.Array) -> None:
        schema = self._schema
        if isinstance(schema.get("items"), list):
            node.items = self._many("items")
        elif "items" in schema:
            node.all_items = self._child("items")
        if "additionalItems" in schema:
            node.takes_additional = schema["additionalItems"] is not False
            if not isinstance(schema["additionalItems"], bool):
                node.additional = self._child("additionalItems")

    def _modern_items(self, node: nodes.Array) -> None:
        schema = self._schema
        given = schema.get("items")
        if "prefixItems" in schema:
            node.items = self._many("prefixItems")
        if isinstance(given, list):
            node.items = self._many("items")
        elif given is False:
            node.takes_additional = False
        elif isinstance(given, dict) and "prefixItems" in schema:
            node.additional = self._child("items")
        elif given is not None and given is not True:
            node.all_items = self._child("items")
        if "unevaluatedItems" in schema:
            node.unevaluated = self._child("unevaluatedItems")
        if "contains" in schema:
            least = self._count("minContains")
            node.min_contains = 1 if least is None else least
            node.max_contains = self._count("maxContains")

    # Keywords

    def _child(self, *steps: str) -> Node:
        return self._loader.child(self._document, (*self._pointer, *steps))

    def _many(self, keyword: str) -> tuple[Node, ...]:
        given = self._schema[keyword]
        if not isinstance(given, list):
            raise self._wrong(keyword, "an array")
        return tuple(self._child(keyword, str(at)) for at in range(len(given)))

    def _named(self, keyword: str) -> dict[str, Node]:
        given = self._schema.get(keyword, {})
        if not isinstance(given, dict):
            raise self._wrong(keyword, "an object")
        return {name: self._child(keyword, name) for name in given}

    def _names(self, keyword: str) -> frozenset[str]:
        given = self._schema.get(keyword, [])
        if not isinstance(given, list):
            raise self._wrong(keyword, "an array of strings")
        names = [each for each in given if isinstance(each, str)]
        if len(names) < len(given):
            raise self._wrong(keyword, "an array of strings")
        return frozenset(names)

    def _count(self, keyword: str) -> int | None:
        number = self._number(keyword)
        if number is None:
            return None
        if number < 0 or number != int(number):
            raise self._wrong(keyword, "a non-negative integer")
        return int(number)

    def _number(self, keyword: str, *, takes_boolean: bool = False) -> nodes.Number | None:
        given = self._schema.get(keyword)
        if given is None or (takes_boolean and isinstance(given, bool)):
            return None
        number = exact_number(given)
        if number is None:
            raise self._wrong(keyword, "a number")
        return number

    def _source(self, keywords: tuple[str, ...], kind: str = "") -> str:
        return kind + compact({key: self._schema[key] for key in keywords if key in self._schema}, sort_keys=True)

    def _wrong(self, keyword: str, expected: str) -> InvalidSchema:
        given = compact(self._schema.get(keyword))[:60]
        return InvalidSchema(f"{_shown(self._pointer)}: {keyword} must be {expected}, got {given}")


def _text(schema: JsonObject, keyword: str) -> str | None:
    given = schema.get(keyword)
    return given if isinstance(given, str) else None


def _shown(pointer: Pointer) -> str:
    return "#/" + "/".join(pointer)
