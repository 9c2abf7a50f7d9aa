"""Compatibility of JSON Schemas, by rule: the differences between two schemas, and whether they are compatible."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.registry.errors import InvalidSchema
from ottla.registry.json_schema import comparing
from ottla.registry.json_schema.differences import COMPATIBLE_LENIENT, COMPATIBLE_STRICT
from ottla.registry.json_schema.loading import load
from ottla.registry.json_schema.rules import compare
from ottla.registry.json_text import compact, parse_json

MODERN = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
STR = {"type": "string"}
INT = {"type": "integer"}
NUM = {"type": "number"}
OBJ = {"type": "object"}
NOTHING = False
Case = tuple[str, Any, Any, list[str]]


def differences(original: Any, update: Any) -> list[str]:
    before, after = (load(parse_json(compact(each)), {}) for each in (original, update))
    return sorted(f"{kind} {path}" for kind, path in compare(before, after))


def limit_cases() -> list[Case]:
    """Each limit added, removed, raised and lowered."""
    kinds = {
        "string": ("maxLength", "minLength"),
        "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"),
        "object": ("maxProperties", "minProperties"),
        "array": ("maxItems", "minItems"),
    }
    found: list[Case] = []
    for kind, keywords in kinds.items():
        for keyword in keywords:
            plain, low, high = {"type": kind}, {"type": kind, keyword: 1}, {"type": kind, keyword: 2}
            name = "".join(f"_{c}" if c.isupper() else c for c in keyword).upper()
            for how, before, after in (
                ("ADDED", plain, low),
                ("REMOVED", low, plain),
                ("INCREASED", low, high),
                ("DECREASED", high, low),
            ):
                found.append((f"{name}_{how}", before, after, [f"{name}_{how} #/{keyword}"]))
    for keyword in ("maxContains", "minContains"):
        base = MODERN | {"type": "array", "contains": {"type": "string"}}
        name = "".join(f"_{c}" if c.isupper() else c for c in keyword).upper()
        low, high = base | {keyword: 2}, base | {keyword: 3}
        found.append((f"{name}_INCREASED", low, high, [f"{name}_INCREASED #/{keyword}"]))
        found.append((f"{name}_DECREASED", high, low, [f"{name}_DECREASED #/{keyword}"]))
    return found


def obj(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def arr(*items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": list(items), **more}


CASES: list[Case] = [
    # Annotations
    ("same schema", STR, STR, []),
    ("TITLE_CHANGED", STR | {"title": "a"}, STR | {"title": "b"}, ["TITLE_CHANGED #/"]),
    ("DESCRIPTION_CHANGED", STR, STR | {"description": "b"}, ["DESCRIPTION_CHANGED #/"]),
    ("DEFAULT_CHANGED", STR | {"default": "a"}, STR | {"default": "b"}, ["DEFAULT_CHANGED #/"]),
    ("ID_CHANGED", STR | {"$id": "http://a/b"}, STR | {"$id": "http://a/c"}, ["ID_CHANGED #/"]),
    (
        "annotations below a property",
        obj({"a": STR}),
        obj({"a": STR | {"title": "t"}}),
        ["TITLE_CHANGED #/properties/a"],
    ),
    ("unknown keyword", STR, STR | {"x-mine": 1}, []),
    ("format is no constraint", STR, STR | {"format": "date"}, []),
    # Types
    ("TYPE_CHANGED string to number", STR, NUM, ["TYPE_CHANGED #/"]),
    ("TYPE_CHANGED object to array", OBJ, {"type": "array"}, ["TYPE_CHANGED #/"]),
    ("TYPE_CHANGED boolean to null", {"type": "boolean"}, {"type": "null"}, ["TYPE_CHANGED #/"]),
    ("TYPE_CHANGED of a property", obj({"a": STR}), obj({"a": INT}), ["TYPE_CHANGED #/properties/a"]),
    (
        "TYPE_CHANGED of items",
        {"type": "array", "items": STR},
        {"type": "array", "items": INT},
        ["TYPE_CHANGED #/items"],
    ),
    ("TYPE_CHANGED from anything", {}, STR, ["TYPE_CHANGED #/"]),
    ("to anything", STR, {}, []),
    ("to true", obj({"a": STR}), obj({"a": True}), []),
    ("from false", obj({"a": False}), obj({"a": STR}), []),
    ("TYPE_EXTENDED integer to number", INT, NUM, ["TYPE_EXTENDED #/"]),
    ("TYPE_NARROWED number to integer", NUM, INT, ["TYPE_NARROWED #/"]),
    ("bytes of Kafka Connect", STR | {"connect.type": "bytes"}, NUM | {"connect.type": "bytes"}, []),
    ("union of types extended", STR, {"type": ["string", "null"]}, ["SUM_TYPE_EXTENDED #/"]),
    ("union of types narrowed", {"type": ["string", "null"]}, STR, ["TYPE_CHANGED #/"]),
    ("union of types in another order", {"type": ["string", "null"]}, {"type": ["null", "string"]}, []),
    (
        "union of types grows",
        {"type": ["string", "null"]},
        {"type": ["string", "null", "integer"]},
        ["SUM_TYPE_EXTENDED #/"],
    ),
    (
        "union of types shrinks",
        {"type": ["string", "null", "integer"]},
        {"type": ["string", "null"]},
        ["SUM_TYPE_NARROWED #/"],
    ),
    # Strings
    ("PATTERN_ADDED", STR, STR | {"pattern": "a"}, ["PATTERN_ADDED #/pattern"]),
    ("PATTERN_REMOVED", STR | {"pattern": "a"}, STR, ["PATTERN_REMOVED #/pattern"]),
    ("PATTERN_CHANGED", STR | {"pattern": "a"}, STR | {"pattern": "b"}, ["PATTERN_CHANGED #/pattern"]),
    # Numbers
    ("MULTIPLE_OF_ADDED", NUM, NUM | {"multipleOf": 2}, ["MULTIPLE_OF_ADDED #/multipleOf"]),
    ("MULTIPLE_OF_REMOVED", NUM | {"multipleOf": 2}, NUM, ["MULTIPLE_OF_REMOVED #/multipleOf"]),
    ("MULTIPLE_OF_EXPANDED", NUM | {"multipleOf": 2}, NUM | {"multipleOf": 10}, ["MULTIPLE_OF_EXPANDED #/multipleOf"]),
    ("MULTIPLE_OF_REDUCED", NUM | {"multipleOf": 10}, NUM | {"multipleOf": 5}, ["MULTIPLE_OF_REDUCED #/multipleOf"]),
    ("MULTIPLE_OF_CHANGED", NUM | {"multipleOf": 10}, NUM | {"multipleOf": 3}, ["MULTIPLE_OF_CHANGED #/multipleOf"]),
    (
        "MULTIPLE_OF_EXPANDED fraction",
        NUM | {"multipleOf": 0.1},
        NUM | {"multipleOf": 0.5},
        ["MULTIPLE_OF_EXPANDED #/multipleOf"],
    ),
    ("limits are numbers, not texts", NUM | {"maximum": 5}, NUM | {"maximum": 5.0}, []),
    # Enums and constants
    ("ENUM_ARRAY_EXTENDED", {"enum": ["a"]}, {"enum": ["a", "b"]}, ["ENUM_ARRAY_EXTENDED #/enum"]),
    ("ENUM_ARRAY_NARROWED", {"enum": ["a", "b"]}, {"enum": ["a"]}, ["ENUM_ARRAY_NARROWED #/enum"]),
    ("ENUM_ARRAY_CHANGED", {"enum": ["a", "b"]}, {"enum": ["a", "c"]}, ["ENUM_ARRAY_CHANGED #/enum"]),
    ("enum in another order", {"enum": ["a", "b"]}, {"enum": ["b", "a"]}, []),
    ("enum of mixed values", {"enum": [1, "1", None]}, {"enum": [None, "1", 1]}, []),
    ("const changed", {"const": 1}, {"const": 2}, ["ENUM_ARRAY_CHANGED #/const"]),
    ("const kept", {"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}, []),
    ("enum with a type", STR | {"enum": ["a"]}, STR | {"enum": ["a", "b"]}, ["ENUM_ARRAY_EXTENDED #/allOf/0/enum"]),
    # Required properties
    (
        "REQUIRED_ATTRIBUTE_ADDED",
        obj({"a": STR}),
        obj({"a": STR}, required=["a"]),
        ["REQUIRED_ATTRIBUTE_ADDED #/required/a"],
    ),
    (
        "REQUIRED_ATTRIBUTE_REMOVED",
        obj({"a": STR}, required=["a"]),
        obj({"a": STR}),
        ["REQUIRED_ATTRIBUTE_REMOVED #/required/a"],
    ),
    (
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
        obj({"a": STR | {"default": "x"}}),
        obj({"a": STR | {"default": "x"}}, required=["a"]),
        ["REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED #/required/a"],
    ),
    ("required of no listed property", OBJ, OBJ | {"required": ["a"]}, []),
    # Open content models
    (
        "open: optional property added",
        obj({}),
        obj({"a": STR}),
        ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        "open: required property added",
        obj({}),
        obj({"a": STR}, required=["a"]),
        ["REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        "open: required property with default added",
        obj({}),
        obj({"a": STR | {"default": "x"}}, required=["a"]),
        ["REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        "open: property with empty schema added",
        obj({}),
        obj({"a": {}}),
        ["PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    ("open: property removed", obj({"a": STR}), obj({}), ["PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a"]),
    ("open: explicitly true", obj({}, additionalProperties=True), obj({}), []),
    # Closed content models
    (
        "closed: optional property added",
        obj({}, additionalProperties=False),
        obj({"a": STR}, additionalProperties=False),
        ["OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        "closed: required property added",
        obj({}, additionalProperties=False),
        obj({"a": STR}, required=["a"], additionalProperties=False),
        ["REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        "closed: required property with default added",
        obj({}, additionalProperties=False),
        obj({"a": STR | {"default": "x"}}, required=["a"], additionalProperties=False),
        ["REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        "closed: property removed",
        obj({"a": STR}, additionalProperties=False),
        obj({}, additionalProperties=False),
        ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"],
    ),
    (
        "closed: property that matched nothing removed",
        obj({"a": False}, additionalProperties=False),
        obj({}, additionalProperties=False),
        ["PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"],
    ),
    # Partially open content models
    (
        "partially open: added property is covered",
        obj({}, additionalProperties=STR),
        obj({"a": STR}, additionalProperties=STR),
        [
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        "partially open: added property is not covered",
        obj({}, additionalProperties=STR),
        obj({"a": INT}, additionalProperties=STR),
        [
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "TYPE_CHANGED #/properties/a",
        ],
    ),
    (
        "partially open: removed property is covered",
        obj({"a": STR}, additionalProperties=STR),
        obj({}, additionalProperties=STR),
        ["PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        "partially open: removed property is not covered",
        obj({"a": INT}, additionalProperties=STR),
        obj({}, additionalProperties=STR),
        [
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "TYPE_CHANGED #/properties/a",
        ],
    ),
    (
        "pattern properties cover a removed property",
        obj({"ab": STR}, patternProperties={"^a": STR}, additionalProperties=False),
        obj({}, patternProperties={"^a": STR}, additionalProperties=False),
        ["PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/ab"],
    ),
    (
        "pattern properties do not cover a removed property",
        obj({"b": STR}, patternProperties={"^a": STR}, additionalProperties=False),
        obj({}, patternProperties={"^a": STR}, additionalProperties=False),
        ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/b"],
    ),
    (
        "pattern properties cover an added property",
        obj({}, patternProperties={"c$": STR}, additionalProperties=False),
        obj({"abc": STR}, patternProperties={"c$": STR}, additionalProperties=False),
        [
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/abc",
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/abc",
        ],
    ),
    # Additional properties
    (
        "ADDITIONAL_PROPERTIES_ADDED",
        obj({}, additionalProperties=False),
        obj({}),
        ["ADDITIONAL_PROPERTIES_ADDED #/additionalProperties"],
    ),
    (
        "ADDITIONAL_PROPERTIES_REMOVED",
        obj({}),
        obj({}, additionalProperties=False),
        ["ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties"],
    ),
    (
        "ADDITIONAL_PROPERTIES_NARROWED",
        obj({}),
        obj({}, additionalProperties=STR),
        ["ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties"],
    ),
    (
        "ADDITIONAL_PROPERTIES_EXTENDED",
        obj({}, additionalProperties=STR),
        obj({}),
        ["ADDITIONAL_PROPERTIES_EXTENDED #/additionalProperties"],
    ),
    (
        "additional properties of another type",
        obj({}, additionalProperties=STR),
        obj({}, additionalProperties=INT),
        ["TYPE_CHANGED #/additionalProperties"],
    ),
    (
        "UNEVALUATED_PROPERTIES_REMOVED",
        MODERN | obj({}),
        MODERN | obj({}, unevaluatedProperties=False),
        ["UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties"],
    ),
    (
        "UNEVALUATED_PROPERTIES_ADDED",
        MODERN | obj({}, unevaluatedProperties=False),
        MODERN | obj({}),
        ["UNEVALUATED_PROPERTIES_ADDED #/unevaluatedProperties"],
    ),
    (
        "UNEVALUATED_PROPERTIES_NARROWED",
        MODERN | obj({}, unevaluatedProperties=True),
        MODERN | obj({}, unevaluatedProperties=STR),
        ["UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties"],
    ),
    (
        "UNEVALUATED_PROPERTIES_EXTENDED",
        MODERN | obj({}, unevaluatedProperties=STR),
        MODERN | obj({}),
        ["UNEVALUATED_PROPERTIES_EXTENDED #/unevaluatedProperties"],
    ),
    ("unevaluated properties of an old draft", obj({}), obj({}, unevaluatedProperties=False), []),
    # Dependencies
    ("DEPENDENCY_ARRAY_ADDED", OBJ, OBJ | {"dependencies": {"a": ["b"]}}, ["DEPENDENCY_ARRAY_ADDED #/dependencies/a"]),
    (
        "DEPENDENCY_ARRAY_REMOVED",
        OBJ | {"dependencies": {"a": ["b"]}},
        OBJ,
        ["DEPENDENCY_ARRAY_REMOVED #/dependencies/a"],
    ),
    (
        "DEPENDENCY_ARRAY_EXTENDED",
        OBJ | {"dependencies": {"a": ["b"]}},
        OBJ | {"dependencies": {"a": ["b", "c"]}},
        ["DEPENDENCY_ARRAY_EXTENDED #/dependencies/a"],
    ),
    (
        "DEPENDENCY_ARRAY_NARROWED",
        OBJ | {"dependencies": {"a": ["b", "c"]}},
        OBJ | {"dependencies": {"a": ["b"]}},
        ["DEPENDENCY_ARRAY_NARROWED #/dependencies/a"],
    ),
    (
        "DEPENDENCY_ARRAY_CHANGED",
        OBJ | {"dependencies": {"a": ["b"]}},
        OBJ | {"dependencies": {"a": ["c"]}},
        ["DEPENDENCY_ARRAY_CHANGED #/dependencies/a"],
    ),
    ("DEPENDENCY_SCHEMA_ADDED", OBJ, OBJ | {"dependencies": {"a": STR}}, ["DEPENDENCY_SCHEMA_ADDED #/dependencies/a"]),
    (
        "DEPENDENCY_SCHEMA_REMOVED",
        OBJ | {"dependencies": {"a": STR}},
        OBJ,
        ["DEPENDENCY_SCHEMA_REMOVED #/dependencies/a"],
    ),
    (
        "dependency schema of another type",
        OBJ | {"dependencies": {"a": STR}},
        OBJ | {"dependencies": {"a": INT}},
        ["TYPE_CHANGED #/dependencies/a"],
    ),
    (
        "dependentRequired",
        MODERN | OBJ,
        MODERN | OBJ | {"dependentRequired": {"a": ["b"]}},
        ["DEPENDENCY_ARRAY_ADDED #/dependencies/a"],
    ),
    (
        "dependentSchemas",
        MODERN | OBJ,
        MODERN | OBJ | {"dependentSchemas": {"a": STR}},
        ["DEPENDENCY_SCHEMA_ADDED #/dependencies/a"],
    ),
    # Arrays
    (
        "UNIQUE_ITEMS_ADDED",
        {"type": "array"},
        {"type": "array", "uniqueItems": True},
        ["UNIQUE_ITEMS_ADDED #/uniqueItems"],
    ),
    (
        "UNIQUE_ITEMS_REMOVED",
        {"type": "array", "uniqueItems": True},
        {"type": "array"},
        ["UNIQUE_ITEMS_REMOVED #/uniqueItems"],
    ),
    ("schema of items added", {"type": "array"}, {"type": "array", "items": STR}, ["SCHEMA_ADDED #/items"]),
    ("schema of items removed", {"type": "array", "items": STR}, {"type": "array"}, ["SCHEMA_REMOVED #/items"]),
    (
        "ADDITIONAL_ITEMS_REMOVED",
        arr(STR),
        arr(STR, additionalItems=False),
        ["ADDITIONAL_ITEMS_REMOVED #/additionalItems"],
    ),
    ("ADDITIONAL_ITEMS_ADDED", arr(STR, additionalItems=False), arr(STR), ["ADDITIONAL_ITEMS_ADDED #/additionalItems"]),
    (
        "ADDITIONAL_ITEMS_NARROWED",
        arr(STR),
        arr(STR, additionalItems=INT),
        ["ADDITIONAL_ITEMS_NARROWED #/additionalItems"],
    ),
    (
        "ADDITIONAL_ITEMS_EXTENDED",
        arr(STR, additionalItems=INT),
        arr(STR),
        ["ADDITIONAL_ITEMS_EXTENDED #/additionalItems"],
    ),
    ("open: item added", arr(STR), arr(STR, INT), ["ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"]),
    (
        "open: item with empty schema added",
        arr(STR),
        arr(STR, {}),
        ["ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"],
    ),
    ("open: item removed", arr(STR, INT), arr(STR), ["ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/1"]),
    (
        "closed: item added",
        arr(STR, additionalItems=False),
        arr(STR, INT, additionalItems=False),
        ["ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        "closed: item removed",
        arr(STR, INT, additionalItems=False),
        arr(STR, additionalItems=False),
        ["ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        "closed: item that matched nothing removed",
        arr(STR, NOTHING, additionalItems=False),
        arr(STR, additionalItems=False),
        ["ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        "partially open: added item is covered",
        arr(STR, additionalItems=INT),
        arr(STR, INT, additionalItems=INT),
        ["ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (
        "partially open: added item is not covered",
        arr(STR, additionalItems=INT),
        arr(STR, STR, additionalItems=INT),
        ["ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1", "TYPE_CHANGED #/items/1"],
    ),
    (
        "partially open: removed item is covered",
        arr(STR, INT, additionalItems=INT),
        arr(STR, additionalItems=INT),
        ["ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (
        "partially open: removed item is not covered",
        arr(STR, STR, additionalItems=INT),
        arr(STR, additionalItems=INT),
        ["ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1", "TYPE_CHANGED #/items/1"],
    ),
    ("item of another type", arr(STR), arr(INT), ["TYPE_CHANGED #/items/0"]),
    (
        "UNEVALUATED_ITEMS_REMOVED",
        MODERN | {"type": "array"},
        MODERN | {"type": "array", "unevaluatedItems": False},
        ["UNEVALUATED_ITEMS_REMOVED #/unevaluatedItems"],
    ),
    (
        "UNEVALUATED_ITEMS_ADDED",
        MODERN | {"type": "array", "unevaluatedItems": False},
        MODERN | {"type": "array"},
        ["UNEVALUATED_ITEMS_ADDED #/unevaluatedItems"],
    ),
    (
        "UNEVALUATED_ITEMS_NARROWED",
        MODERN | {"type": "array"},
        MODERN | {"type": "array", "unevaluatedItems": STR},
        ["UNEVALUATED_ITEMS_NARROWED #/unevaluatedItems"],
    ),
    (
        "UNEVALUATED_ITEMS_EXTENDED",
        MODERN | {"type": "array", "unevaluatedItems": STR},
        MODERN | {"type": "array"},
        ["UNEVALUATED_ITEMS_EXTENDED #/unevaluatedItems"],
    ),
    (
        "prefixItems",
        MODERN | {"type": "array", "prefixItems": [STR]},
        MODERN | {"type": "array", "prefixItems": [INT]},
        ["TYPE_CHANGED #/items/0"],
    ),
    (
        "items false closes prefixItems",
        MODERN | {"type": "array", "prefixItems": [STR]},
        MODERN | {"type": "array", "prefixItems": [STR], "items": False},
        ["ADDITIONAL_ITEMS_REMOVED #/additionalItems"],
    ),
    # Combinations
    ("oneOf gains a member", {"oneOf": [STR]}, {"oneOf": [STR, INT]}, ["SUM_TYPE_EXTENDED #/"]),
    ("oneOf loses a member", {"oneOf": [STR, INT]}, {"oneOf": [STR]}, ["SUM_TYPE_NARROWED #/"]),
    ("anyOf gains a member", {"anyOf": [STR]}, {"anyOf": [STR, INT]}, ["SUM_TYPE_EXTENDED #/"]),
    ("anyOf loses a member", {"anyOf": [STR, INT]}, {"anyOf": [INT]}, ["SUM_TYPE_NARROWED #/"]),
    ("allOf gains a member", {"allOf": [STR]}, {"allOf": [STR, {"maxLength": 3}]}, ["PRODUCT_TYPE_EXTENDED #/"]),
    ("allOf loses a member", {"allOf": [STR, {"maxLength": 3}]}, {"allOf": [STR]}, ["PRODUCT_TYPE_NARROWED #/"]),
    ("members in another order", {"oneOf": [STR, INT]}, {"oneOf": [INT, STR]}, []),
    ("members repeated", {"oneOf": [STR, STR]}, {"oneOf": [STR]}, []),
    ("member of another type", {"oneOf": [STR, INT]}, {"oneOf": [STR, OBJ]}, ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"]),
    (
        "member relaxed",
        {"oneOf": [STR | {"maxLength": 2}]},
        {"oneOf": [STR]},
        ["MAX_LENGTH_REMOVED #/oneOf/0/maxLength"],
    ),
    ("oneOf to anyOf", {"oneOf": [STR, INT]}, {"anyOf": [STR, INT]}, ["COMBINED_TYPE_EXTENDED #/"]),
    ("anyOf to oneOf", {"anyOf": [STR, INT]}, {"oneOf": [STR, INT]}, ["COMBINED_TYPE_CHANGED #/"]),
    ("oneOf to allOf", {"oneOf": [STR, INT]}, {"allOf": [STR, INT]}, ["COMBINED_TYPE_CHANGED #/"]),
    ("allOf to anyOf", {"allOf": [STR, INT]}, {"anyOf": [STR, INT]}, ["COMBINED_TYPE_EXTENDED #/"]),
    ("single members of any kind", {"allOf": [STR]}, {"oneOf": [STR]}, ["COMBINED_TYPE_EXTENDED #/"]),
    ("schema to a oneOf with it", STR, {"oneOf": [STR, INT]}, ["SUM_TYPE_EXTENDED #/"]),
    ("schema to a oneOf without it", OBJ, {"oneOf": [STR, INT]}, ["TYPE_CHANGED #/"]),
    ("schema to a single oneOf", STR, {"oneOf": [STR]}, []),
    ("single oneOf to a schema", {"oneOf": [STR]}, STR, []),
    ("allOf to one of its members", {"allOf": [STR, {"maxLength": 3}]}, STR, ["PRODUCT_TYPE_NARROWED #/"]),
    ("schema to an allOf", STR, {"allOf": [STR, {"maxLength": 3}]}, ["TYPE_CHANGED #/"]),
    ("NOT_TYPE_NARROWED", {"not": NUM}, {"not": INT}, ["NOT_TYPE_NARROWED #/not"]),
    ("NOT_TYPE_EXTENDED", {"not": INT}, {"not": NUM}, ["NOT_TYPE_EXTENDED #/not"]),
    # References
    (
        "definition of a reference changed",
        obj({"a": {"$ref": "#/definitions/d"}}, definitions={"d": STR}),
        obj({"a": {"$ref": "#/definitions/d"}}, definitions={"d": INT}),
        ["TYPE_CHANGED #/properties/a"],
    ),
    (
        "reference replaced by its definition",
        obj({"a": {"$ref": "#/definitions/d"}}, definitions={"d": STR}),
        obj({"a": STR}),
        [],
    ),
    (
        "reference by anchor",
        obj({"a": {"$ref": "#here"}}, definitions={"d": STR | {"$id": "#here"}}),
        obj({"a": STR | {"$id": "#here"}}),
        [],
    ),
    (
        "definition in either bucket",
        obj({"a": {"$ref": "#/$defs/d"}}, definitions={"d": STR}),
        obj({"a": {"$ref": "#/$defs/d"}}, **{"$defs": {"d": STR}}),
        [],
    ),
]
CASES += limit_cases()


def test_the_number_of_cases_does_not_shrink() -> None:
    assert len(CASES) >= 150
    assert len({case[0] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_differences_of_json_schemas(case: Case) -> None:
    _, original, update, expected = case
    assert differences(original, update) == sorted(expected)


INCOMPATIBLE_ENDINGS = ("_ADDED", "_INCREASED", "_EXPANDED")


def test_raised_minimums_and_new_limits_are_incompatible_and_relaxed_ones_are_not() -> None:
    for name, *_ in limit_cases():
        is_lower_bound = "MIN" in name
        tightened = name.endswith(("_ADDED", "_INCREASED" if is_lower_bound else "_DECREASED"))
        assert (name not in COMPATIBLE_STRICT) == tightened, name


def test_the_lenient_policy_allows_new_optional_properties_and_removed_ones() -> None:
    assert COMPATIBLE_LENIENT > COMPATIBLE_STRICT
    for kind in (
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "ADDITIONAL_PROPERTIES_REMOVED",
    ):
        assert kind in COMPATIBLE_LENIENT - COMPATIBLE_STRICT


def tree(leaf: Any) -> dict[str, Any]:
    return obj({"value": leaf, "next": {"$ref": "#"}})


def test_a_recursive_schema_is_compared_once() -> None:
    assert differences(tree(STR), tree(STR)) == []
    assert "TYPE_CHANGED #/properties/value" in differences(tree(STR), tree(INT))


def unions(size: int, last: Any) -> dict[str, Any]:
    """Definitions all of which refer to each other."""
    names = [f"n{number}" for number in range(size)]
    union = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names]}
    definitions = {name: obj({"kind": {"const": name}, "inner": union}) for name in names}
    definitions[names[-1]]["properties"]["value"] = last
    return union | {"definitions": definitions}


def test_unions_that_refer_to_each_other_are_compared_in_reasonable_time() -> None:
    assert differences(unions(14, STR), unions(14, STR)) == []


def test_a_difference_within_unions_that_refer_to_each_other_is_found() -> None:
    found = differences(unions(10, STR), unions(10, INT))
    assert "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/" in found


def chain(length: int, leaf: Any) -> dict[str, Any]:
    definitions = {f"d{at}": obj({"next": {"$ref": f"#/definitions/d{at + 1}"}}) for at in range(length)}
    return {"$ref": "#/definitions/d0", "definitions": definitions | {f"d{length}": leaf}}


def test_a_long_chain_of_definitions_is_compared_to_its_end() -> None:
    assert differences(chain(500, STR), chain(500, STR)) == []
    [found] = differences(chain(500, STR), chain(500, INT))
    assert found == "TYPE_CHANGED #/" + "/".join(["properties/next"] * 500)


def test_a_comparison_that_would_take_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "_MOST_LOOKUPS", 1000)
    with pytest.raises(InvalidSchema, match="too large"):
        differences(unions(10, STR), unions(10, INT))
