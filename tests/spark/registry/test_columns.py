"""Columns of registered schemas, and values decoded into them, without Spark."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import ottla.testing
from ottla.columns.types import Map, shown, struct_of
from ottla.core.errors import ConfigError
from ottla.decoding.columns import avro_columns, json_columns, news, protobuf_columns
from ottla.decoding.schemas import SettledSchema, settle
from ottla.registry.avro.parsing import parse
from ottla.schema import AnyDeserializer, AvroSerializer, JsonSchemaSerializer, ProtobufSerializer, Registry
from ottla.spark.registry.encoding import RowEncoder, avro_schema, json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

pa = pytest.importorskip("pyarrow")
decoding = pytest.importorskip("ottla.decoding.decoder")
arrow_schema = pytest.importorskip("ottla.columns.arrow_types").arrow_schema

V1 = '{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}'
PROTO = 'syntax = "proto3"; message M { int32 a = 1; }'
JSON = '{"type": "object", "properties": {"a": {"type": "integer"}}}'
V2 = '{"type":"record","name":"R","fields":[{"name":"a","type":"long"},{"name":"b","type":"string","default":"-"}]}'


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with ottla.testing.broker() as broker:
        yield Registry(broker.schema_registry_url)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ('"long"', "struct<value:bigint>"),
        ('{"type":"enum","name":"E","symbols":["A"]}', "struct<value:string>"),
        ('["null","bytes"]', "struct<value:binary>"),
        ('{"type":"map","values":{"type":"array","items":"int"}}', "struct<value:map<string,array<int>>>"),
        ('{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}', "struct<value:decimal(9,2)>"),
        ('{"type":"bytes","logicalType":"decimal","precision":50}', "struct<value:binary>"),
        ('{"type":"long","logicalType":"local-timestamp-micros"}', "struct<value:timestamp_ntz>"),
        ('{"type":"int","logicalType":"time-millis"}', "struct<value:int>"),
        (V2, "struct<a:bigint,b:string>"),
    ],
)
def test_avro_types(schema: str, expected: str) -> None:
    assert shown(avro_columns(parse(schema)[0])) == expected


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('["int","string"]', "a union of int and string has no column type"),
        ('{"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]}', "L contains itself"),
    ],
)
def test_avro_types_without_columns(schema: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        avro_columns(parse(schema)[0])


def test_json_types() -> None:
    schema = {
        "properties": {
            "i": {"type": "integer"},
            "n": {"oneOf": [{"type": "null"}, {"type": "number"}]},
            "t": {"type": ["string", "null"], "format": "date-time"},
            "any": {},
            "both": {"type": ["string", "integer"]},
            "list": {"type": "array", "items": {"$ref": "#/$defs/x"}},
            "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "other": {"$ref": "other.json"},
        },
        "$defs": {"x": {"type": "object", "properties": {"d": {"type": "string", "format": "date"}}}},
    }
    found = shown(json_columns(json.dumps(schema), {"other.json": '{"type":"number"}'}))
    assert found == (
        "struct<i:bigint,n:double,t:timestamp,any:string,both:string,list:array<struct<d:date>>,"
        "map:map<string,boolean>,other:double>"
    )


def test_protobuf_types() -> None:
    from ottla.schema.descriptors import file_descriptor

    text = """syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
    import "google/protobuf/struct.proto";
    message M { uint32 u = 1; uint64 v = 2; repeated bytes b = 3; map<int32, N> m = 4; google.protobuf.Timestamp t = 5;
      google.protobuf.Int64Value w = 6; google.protobuf.Struct s = 7; E e = 8; oneof o { string x = 9; N n = 10; } }
    message N { float f = 1; } enum E { A = 0; } message L { L l = 1; }"""
    file = file_descriptor(text, {})
    assert shown(protobuf_columns(file.message_types_by_name["M"])) == (
        "struct<u:bigint,v:decimal(20,0),b:array<binary>,m:map<int,struct<f:float>>,t:timestamp,w:bigint,s:string,"
        "e:string,x:string,n:struct<f:float>>"
    )
    with pytest.raises(ConfigError, match="L contains itself"):
        protobuf_columns(file.message_types_by_name["L"])


def test_fields_that_only_the_newer_type_has() -> None:
    def columns(*fields: Any) -> Any:
        schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}
        return avro_columns(parse(json.dumps(schema))[0])

    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}
    wider = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int"}]}
    assert news(columns(("i", inner)), columns(("i", wider), ("n", "int"))) == ["i.y", "n"]
    assert news(columns(("i", wider)), columns(("i", inner))) == []
    assert news(columns(("i", "int")), columns(("i", "long"))) == ["i as bigint"]


def test_settled_columns_are_written_down(registry: Registry) -> None:
    AvroSerializer(registry, V1).prepare("settled", "value")
    settled = settle(registry, "settled-value", "AVRO")
    assert SettledSchema.parse(settled.text()) == settled
    with pytest.raises(ConfigError, match="the schema of settled-value is AVRO, not JSON"):
        settle(registry, "settled-value", "JSON")
    with pytest.raises(ConfigError, match="subject missing of the registry at"):
        settle(registry, "missing")


@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize("ids", ["prefix", "guid", "header"])
def test_ids_in_all_places(registry: Registry, ids: Any, part: Any) -> None:
    for topic, serializer, given, expected in (
        (f"p-{ids}", AvroSerializer(registry, V1, ids=ids), {"a": 1}, {"a": 1}),
        (f"q-{ids}", ProtobufSerializer(registry, PROTO, ids=ids), {"a": 1}, {"a": 1}),
        (f"r-{ids}", JsonSchemaSerializer(registry, JSON, ids=ids), {"a": 1, "more": 2}, {"a": 1}),
    ):
        serializer.prepare(topic, part)
        data, headers = serializer.serialize(given, topic, part, ())
        decoder = pickle.loads(  # noqa: S301
            pickle.dumps(decoding.ColumnDecoder(registry, settle(registry, f"{topic}-{part}"), "follow", part))
        )
        shown_headers = pa.array([[{"key": name, "value": value} for name, value in headers]] * 3)
        rows, errors = decoder.decode(pa.array([data, None, data], pa.binary()), shown_headers if headers else None)
        assert rows.to_pylist() == [expected, None, expected]
        assert errors.null_count == 3


def test_values_with_ids_in_headers_and_before_the_data_are_mixed(registry: Registry) -> None:
    given = []
    for number, ids in enumerate(("prefix", "header", "guid", "header", "prefix")):
        serializer = ProtobufSerializer(registry, PROTO, ids=ids)  # type: ignore[arg-type]
        serializer.prepare("mixed-ids", "value")
        given.append(serializer.serialize({"a": number + 1}, "mixed-ids", "value", ()))
    values = pa.array([data for data, _ in given] + [None, b"x"], pa.binary())
    shown_headers = pa.array(
        [[{"key": name, "value": each} for name, each in headers] for _, headers in given] + [[], None]
    )
    decoder = decoding.ColumnDecoder(registry, settle(registry, "mixed-ids-value"), "follow")
    rows, errors = decoder.decode(values, shown_headers)
    assert [row and row["a"] for row in rows.to_pylist()] == [1, 2, 3, 4, 5, None, None]
    assert [number for number, error in enumerate(errors.to_pylist()) if error is not None] == [6]


def test_json_of_a_newer_schema_with_more_fields_is_noticed(registry: Registry) -> None:
    closed = JSON.replace("{", '{"additionalProperties": false, ', 1)
    data = JsonSchemaSerializer(registry, closed)({"a": 1}, "json-mix")
    before = settle(registry, "json-mix-value")
    wider = closed.replace('{"a":', '{"b": {"type": "string"}, "a":')
    newer = JsonSchemaSerializer(registry, wider)({"a": 2, "b": "x"}, "json-mix")
    values = pa.array([data, newer, data[:5] + b"{"], pa.binary())
    with pytest.raises(decoding.NewSchema, match="fields that the columns lack: b"):
        decoding.ColumnDecoder(registry, before, "follow").decode(values)
    rows, errors = decoding.ColumnDecoder(registry, before, "ignore").decode(values)
    assert rows.to_pylist() == [{"a": 1}, {"a": 2}, None]
    assert errors.to_pylist()[:2] == [None, None]
    assert errors[2].as_py().startswith("invalid JSON")


def test_structs_are_encoded_as_json_without_null_fields(registry: Registry) -> None:
    columns = struct_of(
        [
            ("id", "bigint"),
            ("at", "timestamp"),
            ("price", "decimal(8,2)"),
            ("counts", Map("string", "int")),
            ("no", "int"),
        ]
    )
    encoder = RowEncoder(registry, "json", "json-rows-value", columns)
    row = {
        "id": 1,
        "at": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "price": Decimal("1.50"),
        "counts": [("a", 1), ("b", None)],
        "no": None,
    }
    [data, missing] = encoder.encode(pa.array([row, None], pa.struct(list(arrow_schema(columns))))).to_pylist()
    assert missing is None
    assert data[5:] == b'{"id":1,"at":"2026-01-02T03:04:05Z","price":1.50,"counts":{"a":1,"b":null}}'
    assert AnyDeserializer(registry)(data)["price"] == 1.5
    assert registry.latest("json-rows-value").schema.type == "JSON"


def test_versions_are_mixed_and_a_newer_one_with_more_fields_is_told(registry: Registry) -> None:
    old, new = AvroSerializer(registry, V1), AvroSerializer(registry, V2)
    first = old({"a": 1}, "mix")
    before = settle(registry, "mix-value")
    second = new({"a": 2, "b": "x"}, "mix")
    values = pa.array([first, second, first, b"x", None], pa.binary())
    with pytest.raises(decoding.NewSchema, match="fields that the columns lack: b; start the query again"):
        decoding.ColumnDecoder(registry, before, "follow").decode(values)
    rows, errors = decoding.ColumnDecoder(registry, before, "ignore").decode(values)
    assert [row and row["a"] for row in rows.to_pylist()] == [1, 2, 1, None, None]
    assert [error is None for error in errors.to_pylist()] == [True, True, True, False, True]
    rows, _ = decoding.ColumnDecoder(registry, settle(registry, "mix-value"), "follow").decode(values)
    assert rows.to_pylist()[:3] == [{"a": 1, "b": "-"}, {"a": 2, "b": "x"}, {"a": 1, "b": "-"}]


def test_schemas_of_columns() -> None:
    columns = avro_columns(parse(V2)[0])
    assert parse(json.dumps(avro_schema(columns, "R")))[0].fields[1].default is None
    assert json_schema(columns, "R")["properties"]["a"] == {"oneOf": [{"type": "null"}, {"type": "integer"}]}


def test_rows_are_encoded_and_the_schema_is_registered_with_the_first(registry: Registry) -> None:
    encoder = pickle.loads(pickle.dumps(RowEncoder(registry, "avro", "rows-value", avro_columns(parse(V2)[0]))))  # noqa: S301
    assert "rows-value" not in registry.subjects()
    found = encoder.encode(pa.array([{"a": 1, "b": "x"}, None]))
    assert found[1].as_py() is None
    assert registry.latest("rows-value").id == int.from_bytes(found[0].as_py()[1:5])
