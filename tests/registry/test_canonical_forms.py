"""Canonical and normalized forms, fingerprints, and schemas that are refused."""

from __future__ import annotations

import json

import pytest

from ottla.registry.errors import InvalidSchema
from ottla.registry.model import AVRO, JSON, PROTOBUF, Reference, Schema
from ottla.registry.schemas import incompatibilities, parse


def canonical(text: str, kind: str = AVRO) -> str:
    return parse(Schema(text, kind), ()).canonical()


def normalized(text: str, kind: str = AVRO) -> str:
    return parse(Schema(text, kind), ()).normalized()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('"string"', '"string"'),
        ('{"type": "string"}', '"string"'),
        ("string", '"string"'),
        ('{"type": {"type": "int"}}', '"int"'),
        ('{"type": "long", "logicalType": "timestamp-millis"}', '{"type":"long","logicalType":"timestamp-millis"}'),
        ('["null", {"type": "array", "items": "int"}]', '["null",{"type":"array","items":"int"}]'),
        (
            '{"fields": [{"type": "int", "name": "a"}], "name": "x.R", "type": "record"}',
            '{"type":"record","name":"R","namespace":"x","fields":[{"name":"a","type":"int"}]}',
        ),
        (
            (
                '{"type":"record","name":"R","namespace":"x","doc":"d","aliases":["S","y.T"],"fields":'
                '[{"name":"a","type":"int","default":1,"doc":"e","order":"descending","aliases":["b"],"mine":[1]}]}'
            ),
            (
                '{"type":"record","name":"R","namespace":"x","doc":"d","fields":[{"name":"a","type":"int","doc":"e",'
                '"default":1,"order":"descending","aliases":["b"],"mine":[1]}],"aliases":["S","y.T"]}'
            ),
        ),
        (
            '{"type":"enum","name":"E","symbols":["A"],"default":"A","z":1}',
            '{"type":"enum","name":"E","symbols":["A"],"default":"A","z":1}',
        ),
        (
            '{"type":"record","name":"R","namespace":"x","fields":[{"name":"n","type":["null","x.R"]}]}',
            '{"type":"record","name":"R","namespace":"x","fields":[{"name":"n","type":["null","R"]}]}',
        ),
    ],
)
def test_avro_is_stored_as_avros_own_parser_prints_it(given: str, expected: str) -> None:
    assert canonical(given) == expected
    assert canonical(expected) == expected


def test_normalizing_avro_sorts_properties_and_aliases() -> None:
    one = '{"type":"record","name":"R","b":1,"a":2,"aliases":["Z","Y"],"fields":[]}'
    other = '{"aliases":["Y","Z"],"a":2,"b":1,"fields":[],"name":"R","type":"record"}'
    assert canonical(one) != canonical(other)
    assert normalized(one) == normalized(other)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not valid JSON"),
        ('{"type":"recrod"}', "undefined name"),
        ('{"type":"record","name":"R"}', "no fields"),
        ('{"type":"record","name":"R-1","fields":[]}', "illegal name"),
        ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "no type"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
            "duplicate field",
        ),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}', "invalid default"),
        ('{"type":"enum","name":"E","symbols":["A","A"]}', "duplicate enum symbol"),
        ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "not one of its symbols"),
        ('{"type":"fixed","name":"F"}', "size"),
        ('["int","int"]', "duplicate in union"),
        ('[["int"]]', "nested union"),
        ('[{"type":"enum","name":"E","symbols":[]},{"type":"enum","name":"E","symbols":[]}]', "cannot redefine"),
        ("[" * 5000 + "]" * 5000, "deep"),
    ],
)
def test_invalid_avro_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidSchema, match=why):
        parse(Schema(text), (), is_new=True)


def test_an_invalid_default_is_accepted_of_a_stored_schema() -> None:
    text = '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}'
    assert canonical(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "expected an object or a boolean"),
        ('{"type": "strnig"}', "unknown type"),
        ('{"maxLength": "3"}', "maxLength must be"),
        ('{"properties": []}', "properties must be an object"),
        ('{"required": "a"}', "required must be an array of strings"),
        ('{"allOf": {}}', "allOf must be an array"),
        ('{"$ref": "#/definitions/missing"}', "unresolved"),
        ('{"$ref": "other.json"}', "unresolved"),
    ],
)
def test_invalid_json_schema_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidSchema, match=why):
        parse(Schema(text, JSON), ())


def test_json_schema_keeps_its_order_unless_it_is_normalized() -> None:
    text = '{"type": "object", "$id": "x", "properties": {"b": {}, "a": true}}'
    assert canonical(text, JSON) == '{"type":"object","$id":"x","properties":{"b":{},"a":true}}'
    assert normalized(text, JSON) == '{"$id":"x","properties":{"a":true,"b":{}},"type":"object"}'


def test_protobuf_is_stored_in_one_layout() -> None:
    text = """
    // a comment
    syntax = "proto3"; package p; import "google/protobuf/any.proto";
    option java_package = "x";
    enum E { A=0; }
    message M { map<string,int32> m=2; string s = 1 [deprecated=true, json_name="t"];
      oneof o { int32 i = 3; } message N { reserved 4, 6 to max; reserved "r"; } }
    service S { rpc Do(M) returns (stream M); }
    """
    assert canonical(text, PROTOBUF) == (
        'syntax = "proto3";\npackage p;\n\nimport "google/protobuf/any.proto";\n\noption java_package = "x";\n\n'
        "message M {\n  map<string, int32> m = 2;\n  string s = 1 [\n    deprecated = true,\n"
        '    json_name = "t"\n  ];\n\n  oneof o {\n    int32 i = 3;\n  }\n\n  message N {\n    reserved 4, 6 to max;\n'
        '    reserved "r";\n  }\n}\nenum E {\n  A = 0;\n}\n\nservice S {\n  rpc Do (M) returns (stream M);\n}\n'
    )
    assert canonical(canonical(text, PROTOBUF), PROTOBUF) == canonical(text, PROTOBUF)


def test_normalizing_protobuf_sorts_fields_and_resolves_names() -> None:
    text = 'syntax = "proto3"; package p; message M { N n = 2; int32 i = 1; message N { } }'
    assert "  int32 i = 1;\n  .p.M.N n = 2;\n" in normalized(text, PROTOBUF)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("message M {", "end of file"),
        ('syntax = "proto4";', "proto2 or proto3"),
        ("message M { string a = 0; }", "invalid field number"),
        ("message M { string a = 19000; }", "invalid field number"),
        ("message M { string a = 1; string b = 1; }", "have the number 1"),
        ("message M { string a = 1; string a = 2; }", "duplicate field"),
        ("message M { Missing a = 1; }", "unknown type Missing"),
        ("message M { map<float, string> a = 1; }", "map keys"),
        ("???", "unexpected"),
    ],
)
def test_invalid_protobuf_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidSchema, match=why):
        parse(Schema(text, PROTOBUF), ())


def test_a_serialized_descriptor_is_read_and_written() -> None:
    pytest.importorskip("google.protobuf")
    text = 'syntax = "proto3";\npackage p;\n\nmessage M {\n  optional int32 i = 1;\n  map<string, string> m = 2;\n}\n'
    serialized = parse(Schema(text, PROTOBUF), ()).formatted("serialized")
    assert canonical(serialized, PROTOBUF) == text


def test_references_are_resolved_by_name() -> None:
    other = '{"type":"record","name":"Other","namespace":"x","fields":[]}'
    text = '{"type":"record","name":"R","fields":[{"name":"o","type":"x.Other"}]}'
    resolved = ((Reference("x.Other", "other", 1), other),)
    parsed = parse(Schema(text), resolved)
    assert parsed.canonical() == text
    assert json.loads(parsed.formatted("resolved"))["fields"][0]["type"]["name"] == "Other"
    json_parsed = parse(
        Schema('{"$ref":"o.json#/definitions/d"}', JSON), ((Reference("o.json", "o", 1), '{"definitions":{"d":{}}}'),)
    )
    assert json_parsed.canonical() == '{"$ref":"o.json#/definitions/d"}'


def test_the_fingerprint_is_that_of_confluents_registry() -> None:
    text = '{"type":"record","name":"myrecord","fields":[{"type":"string","default":null,"name":"f"}]}'
    expected = bytes(each & 0xFF for each in (29, 32, -53, -71, -27, -29, 94, -105, 84, -25, -38, 23, 11, 110, 93, -37))
    assert Schema(text).fingerprint() == expected
    assert Schema(text).guid == "1d20cbb9-e5e3-5e97-54e7-da170b6e5ddb"


V1 = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
V2 = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}'
V3 = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}'
V3_WITHOUT_A = '{"type":"record","name":"R","fields":[{"name":"b","type":"int"}]}'


@pytest.mark.parametrize(
    ("level", "previous", "new", "is_compatible"),
    [
        ("NONE", [V1], '"int"', True),
        ("BACKWARD", [V1], V2, True),
        ("BACKWARD", [V1], V3, False),
        ("BACKWARD", [V1, V2], V3, True),
        ("BACKWARD_TRANSITIVE", [V1, V2], V3, False),
        ("FORWARD", [V1], V3, True),
        ("FORWARD", [V1], '{"type":"record","name":"R","fields":[]}', False),
        ("FORWARD", [V1, V2], V3, True),
        ("FORWARD", [V3, V2], V1, True),
        ("FORWARD_TRANSITIVE", [V3, V2], V1, False),
        ("FULL", [V1], V2, True),
        ("FULL", [V1], V3, False),
        ("FULL", [V1, V2], V3, True),
        ("FULL_TRANSITIVE", [V1, V2], V3, False),
        ("FULL_TRANSITIVE", [V1], V2, True),
        ("BACKWARD", [], V3, True),
    ],
)
def test_levels(level: str, previous: list[str], new: str, is_compatible: bool) -> None:  # noqa: FBT001
    earlier = [parse(Schema(each), ()) for each in previous]
    messages = incompatibilities(level, parse(Schema(new), ()), earlier)
    assert (not messages) == is_compatible
    assert all("%s" not in each for each in messages)


def test_another_schema_type_is_incompatible() -> None:
    avro, json_schema = parse(Schema('"int"'), ()), parse(Schema("{}", JSON), ())
    assert incompatibilities("BACKWARD", json_schema, [avro])
    assert not incompatibilities("NONE", json_schema, [avro])
