"""Compatibility of Avro schemas, by rule: can the reader's schema read data of the writer's?"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from ottla.registry.avro.compatibility import compare
from ottla.registry.avro.parsing import parse

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
PROMOTIONS = {
    ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double"),
    ("string", "bytes"), ("bytes", "string"),
}  # fmt: skip
Case = tuple[str, Any, Any, list[str]]


def found(writer: Any, reader: Any) -> list[str]:
    before, after = (parse(json.dumps(each))[0] for each in (writer, reader))
    return [f"{kind} {path}" for kind, path, _ in compare(before, after)]


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any = "int", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def enum(*symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def mapping(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def primitive_cases() -> list[Case]:
    """Every pair of primitive types."""
    return [
        (
            f"{writer} read as {reader}",
            writer,
            reader,
            [] if writer == reader or (writer, reader) in PROMOTIONS else ["TYPE_MISMATCH /"],
        )
        for writer, reader in product(PRIMITIVES, PRIMITIVES)
    ]


NODE = record(field("value"), field("next", ["null", "R"]))

CASES: list[Case] = [
    # Records
    ("same record", record(field("a")), record(field("a")), []),
    ("field with default added", record(field("a")), record(field("a"), field("b", default=1)), []),
    ("field with null default added", record(), record(field("b", ["null", "int"], default=None)), []),
    (
        "field without default added",
        record(field("a")),
        record(field("a"), field("b")),
        ["READER_FIELD_MISSING_DEFAULT_VALUE /fields/1"],
    ),
    (
        "optional field without default added",
        record(),
        record(field("b", ["null", "int"])),
        ["READER_FIELD_MISSING_DEFAULT_VALUE /fields/0"],
    ),
    ("field removed", record(field("a"), field("b")), record(field("a")), []),
    ("fields in another order", record(field("a"), field("b", "string")), record(field("b", "string"), field("a")), []),
    ("field renamed", record(field("a")), record(field("b")), ["READER_FIELD_MISSING_DEFAULT_VALUE /fields/0"]),
    ("field renamed with alias", record(field("a")), record(field("b", aliases=["a"])), []),
    ("field type changed", record(field("a")), record(field("a", "string")), ["TYPE_MISMATCH /fields/0/type"]),
    ("field type promoted", record(field("a")), record(field("a", "long")), []),
    ("field type narrowed", record(field("a", "long")), record(field("a")), ["TYPE_MISMATCH /fields/0/type"]),
    ("field to union with its type", record(field("a")), record(field("a", ["null", "int"])), []),
    ("field from union", record(field("a", ["null", "int"])), record(field("a")), ["TYPE_MISMATCH /fields/0/type/0"]),
    (
        "field to union without its type",
        record(field("a")),
        record(field("a", ["null", "string"])),
        ["MISSING_UNION_BRANCH /fields/0/type"],
    ),
    (
        "several differences",
        record(field("a"), field("b")),
        record(field("a", "string"), field("b", "boolean")),
        ["TYPE_MISMATCH /fields/0/type", "TYPE_MISMATCH /fields/1/type"],
    ),
    ("record renamed", record(field("a")), record(field("a"), name="S"), ["NAME_MISMATCH /name"]),
    ("record renamed with alias", record(field("a")), record(field("a"), name="S", aliases=["R"]), []),
    ("record in another namespace", record(field("a"), namespace="x"), record(field("a"), namespace="y"), []),
    ("doc changed", record(field("a", doc="one")), record(field("a", doc="two"), doc="three"), []),
    ("property changed", record(field("a")), record(field("a", mine=1), mine=2), []),
    ("default changed", record(field("a", default=1)), record(field("a", default=2)), []),
    ("default removed", record(field("a", default=1)), record(field("a")), []),
    ("order changed", record(field("a")), record(field("a", order="descending")), []),
    (
        "nested record gains a field",
        record(field("r", record(name="N"))),
        record(field("r", record(field("x"), name="N"))),
        ["READER_FIELD_MISSING_DEFAULT_VALUE /fields/0/type/fields/0"],
    ),
    (
        "nested record gains a default",
        record(field("r", record(name="N"))),
        record(field("r", record(field("x", default=1), name="N"))),
        [],
    ),
    (
        "nested record renamed",
        record(field("r", record(name="N"))),
        record(field("r", record(name="M"))),
        ["NAME_MISMATCH /fields/0/type/name"],
    ),
    ("recursive record", NODE, NODE, []),
    (
        "recursive record changed",
        NODE,
        record(field("value", "string"), field("next", ["null", "R"])),
        ["TYPE_MISMATCH /fields/0/type"],
    ),
    ("record to a primitive", record(field("a")), "int", ["TYPE_MISMATCH /"]),
    ("primitive to a record", "int", record(field("a")), ["TYPE_MISMATCH /"]),
    # Enums
    ("same enum", enum("A", "B"), enum("A", "B"), []),
    ("symbol added", enum("A"), enum("A", "B"), []),
    ("symbol removed", enum("A", "B"), enum("A"), ["MISSING_ENUM_SYMBOLS /symbols"]),
    ("symbol removed with default", enum("A", "B"), enum("A", default="A"), []),
    ("symbols in another order", enum("A", "B"), enum("B", "A"), []),
    ("symbols replaced", enum("A"), enum("B"), ["MISSING_ENUM_SYMBOLS /symbols"]),
    ("enum renamed", enum("A"), enum("A", name="G"), ["NAME_MISMATCH /name"]),
    ("enum renamed with alias", enum("A"), enum("A", name="G", aliases=["E"]), []),
    (
        "enum renamed and narrowed",
        enum("A", "B"),
        enum("A", name="G"),
        ["NAME_MISMATCH /name", "MISSING_ENUM_SYMBOLS /symbols"],
    ),
    ("enum to string", enum("A"), "string", ["TYPE_MISMATCH /"]),
    ("string to enum", "string", enum("A"), ["TYPE_MISMATCH /"]),
    (
        "symbol of a field removed",
        record(field("e", enum("A", "B"))),
        record(field("e", enum("A"))),
        ["MISSING_ENUM_SYMBOLS /fields/0/type/symbols"],
    ),
    (
        "new enum field with enum default",
        record(),
        record(field("e", enum("A", default="A"))),
        ["TYPE_MISMATCH /fields/0/type"],
    ),
    # Fixed
    ("same fixed", fixed(4), fixed(4), []),
    ("fixed size changed", fixed(4), fixed(8), ["FIXED_SIZE_MISMATCH /size"]),
    ("fixed renamed", fixed(4), fixed(4, name="G"), ["NAME_MISMATCH /name"]),
    ("fixed renamed with alias", fixed(4), fixed(4, name="G", aliases=["F"]), []),
    ("fixed to bytes", fixed(4), "bytes", ["TYPE_MISMATCH /"]),
    ("bytes to fixed", "bytes", fixed(4), ["TYPE_MISMATCH /"]),
    # Arrays and maps
    ("same array", array("int"), array("int"), []),
    ("items promoted", array("int"), array("long"), []),
    ("items narrowed", array("long"), array("int"), ["TYPE_MISMATCH /items"]),
    ("items of another type", array("int"), array("string"), ["TYPE_MISMATCH /items"]),
    ("array of unions", array("int"), array(["int", "null"]), []),
    ("same map", mapping("int"), mapping("int"), []),
    ("values promoted", mapping("float"), mapping("double"), []),
    ("values of another type", mapping("int"), mapping("string"), ["TYPE_MISMATCH /values"]),
    ("array to map", array("int"), mapping("int"), ["TYPE_MISMATCH /"]),
    ("map to array", mapping("int"), array("int"), ["TYPE_MISMATCH /"]),
    ("array in a map", mapping(array("long")), mapping(array("int")), ["TYPE_MISMATCH /values/items"]),
    # Unions
    ("union grows", ["int"], ["int", "string"], []),
    ("union shrinks", ["int", "string"], ["int"], ["MISSING_UNION_BRANCH /1"]),
    ("union in another order", ["int", "null"], ["null", "int"], []),
    ("union loses all", ["int", "string"], ["boolean", "null"], ["MISSING_UNION_BRANCH /0", "MISSING_UNION_BRANCH /1"]),
    ("branch promoted", ["int", "null"], ["long", "null"], []),
    ("union to its only type", ["int"], "int", []),
    ("union to one of its types", ["int", "string"], "int", ["TYPE_MISMATCH /1"]),
    ("union to a type that reads all", ["int", "long"], "double", []),
    ("type to union", "int", ["int", "string"], []),
    ("type to union by promotion", "int", ["long", "null"], []),
    ("type to union without it", "int", ["string", "null"], ["MISSING_UNION_BRANCH /"]),
    (
        "record in a union grows by a default",
        ["null", record(field("a"))],
        ["null", record(field("a"), field("b", default=1))],
        [],
    ),
    (
        "record in a union grows",
        ["null", record(field("a"))],
        ["null", record(field("a"), field("b"))],
        ["MISSING_UNION_BRANCH /1"],
    ),
    ("empty union", [], ["int"], []),
    # Logical types
    ("logical type added", "long", {"type": "long", "logicalType": "timestamp-millis"}, []),
    (
        "logical type changed",
        {"type": "long", "logicalType": "timestamp-micros"},
        {"type": "long", "logicalType": "timestamp-millis"},
        [],
    ),
    (
        "decimal of another scale",
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
        [],
    ),
]
CASES += primitive_cases()


def test_the_number_of_cases_does_not_shrink() -> None:
    assert len(CASES) >= 100
    assert len({case[0] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_differences_of_avro_schemas(case: Case) -> None:
    _, writer, reader, expected = case
    assert found(writer, reader) == expected
