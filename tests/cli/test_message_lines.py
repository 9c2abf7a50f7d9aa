from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.messages.lines import FORMATS_IN, FORMATS_OUT, Message, from_json, from_key_value, milliseconds
from ottla.core.errors import ConfigError


def record(**fields: Any) -> Any:
    given = {"topic": "orders", "partition": 1, "offset": 7, "timestamp": 1000, "key": b"k", "value": b"v"}
    return SimpleNamespace(**(given | {"headers": ()} | fields))


def test_a_key_ends_at_the_first_separator() -> None:
    assert from_key_value(b"a::b::c", b"::") == Message(key=b"a", value=b"b::c")


def test_a_line_without_a_separator_is_refused() -> None:
    with pytest.raises(ConfigError, match="no key separator ':'"):
        from_key_value(b"no key", b":")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"value": "text"}', Message(value=b"text")),
        (b'{"value": {"a": [1, null]}}', Message(value=b'{"a":[1,null]}')),
        (b'{"key": 7, "value": null}', Message(key=b"7", value=None)),
        (b'{"value_base64": "/w=="}', Message(value=b"\xff")),
        (b'{"value": "v", "headers": {"a": "1", "b": null}}', Message(value=b"v", headers=(("a", b"1"), ("b", None)))),
        (b'{"value": "v", "headers": [["a", "1"], ["a", 2]]}', Message(value=b"v", headers=(("a", b"1"), ("a", b"2")))),
        (b'{"value": "v", "partition": 3, "timestamp": 12}', Message(value=b"v", partition=3, timestamp_ms=12)),
        (b'{"value": "v", "timestamp": "1970-01-01T00:00:01Z"}', Message(value=b"v", timestamp_ms=1000)),
        (b'{"value": "v", "topic": "t", "offset": 4}', Message(value=b"v")),
    ],
)
def test_a_json_line_is_parsed_into_a_message(line: bytes, message: Message) -> None:
    assert from_json(line) == message


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "not JSON"),
        (b"[1]", "is an object"),
        (b'{"key": "k"}', "no value"),
        (b'{"valeu": "v", "value": "v"}', "unknown field 'valeu'"),
        (b'{"value_base64": "?"}', "not base64"),
        (b'{"value_base64": 5}', "not base64"),
        (b'{"value_base64": "/w==", "value": "v"}', "give value or value_base64"),
        (b'{"value": "v", "headers": 5}', "headers are"),
        (b'{"value": "v", "headers": [["a"]]}', "headers are"),
        (b'{"value": "v", "headers": [[1, "a"]]}', "name of a header"),
        (b'{"value": "v", "partition": -1}', "a partition is"),
        (b'{"value": "v", "partition": true}', "a partition is"),
        (b'{"value": "v", "timestamp": [1]}', "a timestamp is"),
        (b'{"value": "v", "timestamp": "soon"}', "is not a time"),
    ],
)
def test_an_invalid_json_line_is_refused_with_the_reason(line: bytes, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        from_json(line)


@pytest.mark.parametrize(
    "told",
    [
        record(),
        record(key=None, value=None),
        record(key=b"\xff\x00", value="grüße".encode()),
        record(headers=(("a", b"1"), ("a", b"2"))),
    ],
)
def test_consumed_json_can_be_produced_again(told: Any) -> None:
    line = FORMATS_OUT["json"](told, b":")

    again = FORMATS_IN["json"](line, b":")

    assert (again.key, again.value, again.headers) == (told.key, told.value, told.headers)
    assert (again.partition, again.timestamp_ms) == (told.partition, told.timestamp)


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("value", b"v"),
        ("key-value", b"k=v"),
        ("json", b'{"topic":"orders","partition":1,"offset":7,"timestamp":1000,"key":"k","value":"v"}'),
        ("full", b"orders-1@7  1970-01-01T00:00:01.000+00:00  k: v  trace=7"),
    ],
)
def test_a_record_can_be_written_in_several_ways(form: str, line: bytes) -> None:
    told = record(headers=(("trace", b"7"),)) if form == "full" else record()

    assert FORMATS_OUT[form](told, b"=") == line


def test_bytes_that_are_not_text_can_be_shown() -> None:
    assert FORMATS_OUT["full"](record(key=None, value=b"\xff"), b":").endswith(b"null: \\xff")


def test_a_time_with_a_utc_offset_is_that_instant() -> None:
    assert milliseconds("1970-01-01T01:00:00.5+01:00") == 500
