"""Compatibility of Protobuf schemas, by rule."""

from __future__ import annotations

import pytest

from ottla.registry.protobuf.compatibility import COMPATIBLE, compare
from ottla.registry.protobuf.parsing import parse
from ottla.registry.protobuf.types import Types

Case = tuple[str, str, str, list[str]]


def types(body: str, syntax: str = "proto3", **references: str) -> Types:
    files = {f"{name}.proto": parse(f'syntax = "proto3"; {text}') for name, text in references.items()}
    return Types(parse(f'syntax = "{syntax}"; {body}'), files)


def found(original: str, update: str, syntax: str = "proto3") -> list[str]:
    return sorted(f"{kind} {path}" for kind, path in compare(types(original, syntax), types(update, syntax)))


def m(fields: str, name: str = "M") -> str:
    return f"message {name} {{ {fields} }}"


def scalar_cases() -> list[Case]:
    """Scalars that are encoded alike may replace each other."""
    groups = (
        ("int32", "int64", "uint32", "uint64", "bool"),
        ("sint32", "sint64"),
        ("string", "bytes"),
        ("fixed32", "sfixed32"),
        ("fixed64", "sfixed64"),
        ("float",),
        ("double",),
    )
    cases: list[Case] = []
    for group in groups:
        cases += [(f"{group[0]} to {other}", m(f"{group[0]} a = 1;"), m(f"{other} a = 1;"), []) for other in group[1:]]
    for at, group in enumerate(groups):
        other = groups[(at + 1) % len(groups)][0]
        changed = ["FIELD_SCALAR_KIND_CHANGED #/M/1"]
        cases.append((f"{group[0]} to {other}", m(f"{group[0]} a = 1;"), m(f"{other} a = 1;"), changed))
    return cases


INNER = "message N { string s = 1; }"
CASES: list[Case] = [
    ("same file", m("string a = 1;"), m("string a = 1;"), []),
    ("PACKAGE_CHANGED", "package a; " + m(""), "package b; " + m(""), ["PACKAGE_CHANGED #/"]),
    ("MESSAGE_ADDED", m(""), m("") + m("", "N"), ["MESSAGE_ADDED #/N"]),
    ("MESSAGE_REMOVED", m("") + m("", "N"), m(""), ["MESSAGE_REMOVED #/N"]),
    ("MESSAGE_MOVED", m("") + m("", "N"), m("", "N") + m(""), ["MESSAGE_MOVED #/M", "MESSAGE_MOVED #/N"]),
    ("nested message added", m(""), m(INNER), ["MESSAGE_ADDED #/M/N"]),
    ("nested message removed", m(INNER), m(""), ["MESSAGE_REMOVED #/M/N"]),
    (
        "field of a nested message added",
        m(INNER),
        m("message N { string s = 1; int32 t = 2; }"),
        ["FIELD_ADDED #/M/N/2"],
    ),
    ("ENUM_ADDED", m(""), m("") + "enum E { A = 0; }", ["ENUM_ADDED #/E"]),
    ("ENUM_REMOVED", m("") + "enum E { A = 0; }", m(""), ["ENUM_REMOVED #/E"]),
    ("ENUM_CONST_ADDED", "enum E { A = 0; }", "enum E { A = 0; B = 1; }", ["ENUM_CONST_ADDED #/E/1"]),
    ("ENUM_CONST_REMOVED", "enum E { A = 0; B = 1; }", "enum E { A = 0; }", ["ENUM_CONST_REMOVED #/E/1"]),
    ("ENUM_CONST_CHANGED", "enum E { A = 0; B = 1; }", "enum E { A = 0; C = 1; }", ["ENUM_CONST_CHANGED #/E/1"]),
    ("nested enum added", m(""), m("enum E { A = 0; }"), ["ENUM_ADDED #/M/E"]),
    ("FIELD_ADDED", m(""), m("string a = 1;"), ["FIELD_ADDED #/M/1"]),
    ("FIELD_REMOVED", m("string a = 1;"), m(""), ["FIELD_REMOVED #/M/1"]),
    ("FIELD_NAME_CHANGED", m("string a = 1;"), m("string b = 1;"), ["FIELD_NAME_CHANGED #/M/1"]),
    ("field number changed", m("string a = 1;"), m("string a = 2;"), ["FIELD_ADDED #/M/2", "FIELD_REMOVED #/M/1"]),
    ("fields in another order", m("string a = 1; int32 b = 2;"), m("int32 b = 2; string a = 1;"), []),
    ("reserved number", m("string a = 1;"), m("reserved 1;"), ["FIELD_REMOVED #/M/1"]),
    ("option added", m("string a = 1;"), m("string a = 1 [deprecated = true];"), []),
    ("comment added", m("string a = 1;"), m("/* why */ string a = 1; // so\n"), []),
    ("scalar to message", m("string a = 1;" + INNER), m("N a = 1;" + INNER), ["FIELD_KIND_CHANGED #/M/1"]),
    ("message to scalar", m("N a = 1;" + INNER), m("bytes a = 1;" + INNER), ["FIELD_KIND_CHANGED #/M/1"]),
    ("map to message", m("map<string, string> a = 1;" + INNER), m("N a = 1;" + INNER), ["FIELD_KIND_CHANGED #/M/1"]),
    (
        "map of another value",
        m("map<string, string> a = 1;"),
        m("map<string, int32> a = 1;"),
        ["FIELD_SCALAR_KIND_CHANGED #/M/1"],
    ),
    (
        "map of another key",
        m("map<string, string> a = 1;"),
        m("map<int32, string> a = 1;"),
        ["FIELD_SCALAR_KIND_CHANGED #/M/1"],
    ),
    ("map of an alike value", m("map<string, int32> a = 1;"), m("map<string, int64> a = 1;"), []),
    ("enum to int", m("E a = 1;") + "enum E { A = 0; }", m("int32 a = 1;") + "enum E { A = 0; }", []),
    (
        "enum to string",
        m("E a = 1;") + "enum E { A = 0; }",
        m("string a = 1;") + "enum E { A = 0; }",
        ["FIELD_SCALAR_KIND_CHANGED #/M/1"],
    ),
    (
        "another message type",
        m("A a = 1;") + m("", "A") + m("", "B"),
        m("B a = 1;") + m("", "A") + m("", "B"),
        ["FIELD_NAMED_TYPE_CHANGED #/M/1"],
    ),
    (
        "message type by its full name",
        "package p; " + m("A a = 1;") + m("", "A"),
        "package p; " + m(".p.A a = 1;") + m("", "A"),
        [],
    ),
    (
        "message type by a partial name",
        "package p.q; " + m("A a = 1;") + m("", "A"),
        "package p.q; " + m("q.A a = 1;") + m("", "A"),
        [],
    ),
    (
        "well-known type kept",
        'import "google/protobuf/any.proto"; ' + m("google.protobuf.Any a = 1;"),
        'import "google/protobuf/any.proto"; ' + m(".google.protobuf.Any a = 1;"),
        [],
    ),
    (
        "well-known type changed",
        m("google.protobuf.Any a = 1;"),
        m("google.protobuf.Empty a = 1;"),
        ["FIELD_NAMED_TYPE_CHANGED #/M/1"],
    ),
    ("recursive message", m("M m = 1;"), m("M m = 1; string a = 2;"), ["FIELD_ADDED #/M/2"]),
    (
        "string made repeated",
        m("optional string a = 1;"),
        m("repeated string a = 1;"),
        ["FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"],
    ),
    (
        "bytes made repeated",
        m("optional bytes a = 1;"),
        m("repeated bytes a = 1;"),
        ["FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"],
    ),
    (
        "number made repeated",
        m("optional int32 a = 1;"),
        m("repeated int32 a = 1;"),
        ["FIELD_NUMERIC_LABEL_CHANGED #/M/1"],
    ),
    ("message made repeated", m("optional N a = 1;" + INNER), m("repeated N a = 1;" + INNER), []),
    ("label added", m("int32 a = 1;"), m("optional int32 a = 1;"), []),
    # Oneofs
    ("ONEOF_ADDED", m(""), m("oneof o { string a = 1; }"), ["ONEOF_ADDED #/M/o", "ONEOF_FIELD_ADDED #/M/o/1"]),
    ("ONEOF_REMOVED", m("oneof o { string a = 1; }"), m(""), ["ONEOF_REMOVED #/M/o"]),
    (
        "ONEOF_FIELD_ADDED",
        m("oneof o { string a = 1; }"),
        m("oneof o { string a = 1; int32 b = 2; }"),
        ["ONEOF_FIELD_ADDED #/M/o/2"],
    ),
    (
        "ONEOF_FIELD_REMOVED",
        m("oneof o { string a = 1; int32 b = 2; }"),
        m("oneof o { string a = 1; }"),
        ["ONEOF_FIELD_REMOVED #/M/o/2"],
    ),
    (
        "oneof renamed",
        m("oneof o { string a = 1; }"),
        m("oneof p { string a = 1; }"),
        ["ONEOF_ADDED #/M/p", "ONEOF_REMOVED #/M/o"],
    ),
    (
        "oneof renamed and narrowed",
        m("oneof o { string a = 1; int32 b = 2; }"),
        m("oneof p { string a = 1; }"),
        ["ONEOF_ADDED #/M/p", "ONEOF_FIELD_REMOVED #/M/o/2", "ONEOF_REMOVED #/M/o"],
    ),
    ("one field into a new oneof", m("string a = 1;"), m("oneof o { string a = 1; }"), ["ONEOF_ADDED #/M/o"]),
    (
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
        m("string a = 1; int32 b = 2;"),
        m("oneof o { string a = 1; int32 b = 2; }"),
        ["MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o", "ONEOF_ADDED #/M/o"],
    ),
    (
        "FIELD_MOVED_TO_EXISTING_ONEOF",
        m("string a = 1; oneof o { int32 b = 2; }"),
        m("oneof o { string a = 1; int32 b = 2; }"),
        ["FIELD_MOVED_TO_EXISTING_ONEOF #/M/o"],
    ),
    (
        "oneofs merged",
        m("oneof o { string a = 1; } oneof p { int32 b = 2; }"),
        m("oneof q { string a = 1; int32 b = 2; }"),
        ["FIELD_MOVED_TO_EXISTING_ONEOF #/M/q", "ONEOF_ADDED #/M/q", "ONEOF_REMOVED #/M/o", "ONEOF_REMOVED #/M/p"],
    ),
    (
        "ONEOF_FIELD_MOVED_TO_TOP_LEVEL",
        m("oneof o { string a = 1; int32 b = 2; }"),
        m("string a = 1; oneof o { int32 b = 2; }"),
        ["ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/1"],
    ),
    (
        "type of a oneof field changed",
        m("oneof o { string a = 1; }"),
        m("oneof o { int32 a = 1; }"),
        ["FIELD_SCALAR_KIND_CHANGED #/M/o/1"],
    ),
    (
        "type changed while moved out",
        m("oneof o { string a = 1; }"),
        m("int32 a = 1;"),
        ["FIELD_SCALAR_KIND_CHANGED #/M/1", "ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/1", "ONEOF_REMOVED #/M/o"],
    ),
]
CASES += scalar_cases()
PROTO2: list[Case] = [
    ("REQUIRED_FIELD_ADDED", m(""), m("required string a = 1;"), ["REQUIRED_FIELD_ADDED #/M/1"]),
    ("REQUIRED_FIELD_REMOVED", m("required string a = 1;"), m(""), ["REQUIRED_FIELD_REMOVED #/M/1"]),
    (
        "required string made optional",
        m("required string a = 1;"),
        m("optional string a = 1;"),
        ["FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"],
    ),
    (
        "required number made optional",
        m("required int32 a = 1;"),
        m("optional int32 a = 1;"),
        ["FIELD_NUMERIC_LABEL_CHANGED #/M/1"],
    ),
    ("optional field added", m(""), m("optional string a = 1;"), ["FIELD_ADDED #/M/1"]),
]


def test_the_number_of_cases_does_not_shrink() -> None:
    names = [case[0] for case in (*CASES, *PROTO2)]
    assert len(names) >= 55
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_differences_of_proto3_files(case: Case) -> None:
    _, original, update, expected = case
    assert found(original, update) == sorted(expected)


@pytest.mark.parametrize("case", PROTO2, ids=lambda case: case[0])
def test_differences_of_proto2_files(case: Case) -> None:
    _, original, update, expected = case
    assert found(original, update, "proto2") == sorted(expected)


def test_types_of_references_are_compared_where_their_version_changes() -> None:
    body = 'import "other.proto"; message M { o.T t = 1; }'
    before = types(body, other="package o; message T { string s = 1; }")
    after = types(body, other="package o; message T { int32 s = 1; }")
    kinds = {kind for kind, _ in compare(before, after)}
    assert kinds == {"FIELD_SCALAR_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED"}
    assert compare(before, before) == []


def test_wire_compatible_changes_are_compatible() -> None:
    assert {"FIELD_ADDED", "FIELD_REMOVED", "MESSAGE_MOVED", "ONEOF_FIELD_ADDED"} < COMPATIBLE
    assert not {"PACKAGE_CHANGED", "MESSAGE_REMOVED", "ONEOF_FIELD_REMOVED", "REQUIRED_FIELD_ADDED"} & COMPATIBLE
