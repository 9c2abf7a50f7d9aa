"""The compiled Avro decoder against fastavro."""

from __future__ import annotations

import io
import itertools
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.registry.avro.parsing import parse
from ottla.registry.model import Schema

if TYPE_CHECKING:
    from collections.abc import Iterator

pa = pytest.importorskip("pyarrow")
fastavro = pytest.importorskip("fastavro")
avro_arrow = pytest.importorskip("ottla.spark.registry.avro_arrow", reason="not compiled")
avro_program = pytest.importorskip("ottla.spark.registry.avro_program")
programs = pytest.importorskip("ottla.decoding.programs")
columns = pytest.importorskip("ottla.decoding.columns")
arrow_types = pytest.importorskip("ottla.columns.arrow_types")

TIMES = st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(microsecond=0, tzinfo=UTC))
SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("string", st.text(max_size=5)),
    ("bytes", st.binary(max_size=5)),
    ({"type": "fixed", "name": "F3", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "enum", "name": "E", "symbols": ["A", "BB"]}, st.sampled_from(["A", "BB"])),
    ({"type": "long", "logicalType": "timestamp-millis"}, TIMES),
    ({"type": "long", "logicalType": "timestamp-micros"}, TIMES),
    ({"type": "int", "logicalType": "date"}, st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3},
        st.integers(-(10**19), 10**19).map(lambda each: Decimal(each).scaleb(-3)),
    ),
    ({"type": "string", "logicalType": "uuid"}, st.just("x")),
]


@st.composite
def types(draw: Any, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """A type and its values."""
    kind = draw(st.sampled_from(["scalar", "optional", "array", "map", "record"][: 5 if depth else 1]))
    if kind == "scalar":
        schema, values = draw(st.sampled_from(SCALARS))
        return schema, values
    if kind == "record":
        fields = draw(st.lists(types(depth - 1), max_size=3))
        named = {f"f{at}": each for at, each in enumerate(fields)}
        schema = {
            "type": "record",
            "name": "R",
            "fields": [{"name": name, "type": each} for name, (each, _) in named.items()],
        }
        return schema, st.fixed_dictionaries({name: values for name, (_, values) in named.items()})
    inner, values = draw(types(depth - 1))
    if kind == "optional":
        if isinstance(inner, list):
            return inner, values
        order = draw(st.permutations(["null", inner]))
        return list(order), st.none() | values
    if kind == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=3)
    return {"type": "map", "values": inner}, st.dictionaries(st.text(max_size=3), values, max_size=3)


class NoReferences:
    def resolved(self, _: Schema) -> tuple[()]:
        return ()


def both(writer: str, reader: str) -> tuple[Any, Any]:
    parsed = [parse(each, is_new=False)[0] for each in (writer, reader)]
    kind = pa.struct(list(arrow_types.arrow_schema(columns.avro_columns(parsed[1]))))
    slow = programs.RowProgram(programs._avro_reader(NoReferences(), Schema(writer), Schema(reader)), kind)
    return avro_program.CompiledProgram(parsed[0], parsed[1], kind, slow), slow


def written(schema: str, values: list[Any]) -> Any:
    parsed = fastavro.parse_schema(json.loads(schema))
    found = []
    for each in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, each)
        found.append(b"\0\0\0\0\1" + out.getvalue())
    return pa.array(found, pa.binary())


def renamed(schema: Any, numbers: Iterator[int]) -> Any:
    """With another name for each named type."""
    if isinstance(schema, list):
        return [renamed(each, numbers) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: renamed(each, numbers) if key in ("type", "items", "values") else each for key, each in schema.items()
    }
    if "fields" in schema:
        found["fields"] = [{**each, "type": renamed(each["type"], numbers)} for each in schema["fields"]]
    return {**found, "name": f"N{next(numbers)}"} if "name" in schema else found


@st.composite
def tables(draw: Any) -> tuple[str, list[Any]]:
    named = {f"c{at}": each for at, each in enumerate(draw(st.lists(types(), min_size=1, max_size=4)))}
    schema = {
        "type": "record",
        "name": "T",
        "fields": [{"name": name, "type": each} for name, (each, _) in named.items()],
    }
    rows = st.fixed_dictionaries({name: values for name, (_, values) in named.items()})
    return json.dumps(renamed(schema, itertools.count())), draw(st.lists(rows, max_size=4))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables())
def test_rows_are_those_of_fastavro(table: tuple[str, list[Any]]) -> None:
    schema, rows = table
    compiled, slow = both(schema, schema)
    values = written(schema, rows)
    found, errors = compiled.decode(values, 5)
    assert errors.null_count == len(rows)
    assert found.equals(slow.decode(values, 5)[0])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables(), st.data())
def test_damaged_values_are_errors_and_the_others_are_read(table: tuple[str, list[Any]], data: Any) -> None:
    schema, rows = table
    compiled, _ = both(schema, schema)
    good = written(schema, rows).to_pylist()
    bad = [each[: data.draw(st.integers(5, len(each)))] + data.draw(st.binary(max_size=4)) for each in good]
    values = pa.array([each for pair in zip(good, bad, strict=True) for each in pair], pa.binary())
    found, errors = compiled.decode(values, 5)
    assert errors.to_pylist()[::2] == [None] * len(rows)
    assert [found[at].as_py() for at in range(0, len(values), 2)] == [
        each.as_py() for each in compiled.decode(pa.array(good, pa.binary()), 5)[0]
    ]


def record(*fields: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)})


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def test_values_of_an_older_schema_are_resolved_as_fastavro_does() -> None:
    inner = {"type": "record", "name": "I", "fields": [field("x", "int")]}
    newer = {"type": "record", "name": "I", "fields": [field("x", "long"), field("y", "string", default="?")]}
    old = record(
        field("gone", {"type": "array", "items": "string"}),
        field("a", "int"),
        field("i", inner),
        field("old", "string"),
    )
    new = record(
        field("i", ["null", newer]),
        field("a", "double"),
        field("n", ["null", "string"], default=None),
        field("k", ["string", "null"], default="k"),
        field("e", {"type": "enum", "name": "E", "symbols": ["A", "B"]}, default="B"),
        field("f", "float", default=1.5),
        field("b", "boolean", default=True),
        field("l", {"type": "array", "items": "long"}, default=[]),
        field("renamed", "string", aliases=["old"]),
    )
    compiled, slow = both(old, new)
    values = written(old, [{"gone": ["x", "y"], "a": 3, "i": {"x": 7}, "old": "o"}])
    found = compiled.decode(values, 5)[0]
    assert found.equals(slow.decode(values, 5)[0])
    assert found.to_pylist()[0]["renamed"] == "o"


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (record(field("a", "string")), record(field("a", "long"))),
        (record(field("a", ["int", "string"])), record(field("b", "int", default=0))),
        (record(), record(field("a", "int"))),
        ('"int"', '"int"'),
    ],
)
def test_what_it_cannot_read_is_left_to_fastavro(writer: str, reader: str) -> None:
    with pytest.raises(avro_arrow.Unsupported):
        both(writer, reader)
