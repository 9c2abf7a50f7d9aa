"""Bytes as JSON and back: chosen and explicit encodings, errors."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.http.records.payloads import read, show


def as_json(data: bytes | None, wanted: str = "auto") -> tuple[object, str]:
    value, encoding = show(data, wanted)  # type: ignore[arg-type]
    return msgspec.json.decode(msgspec.json.encode(value)), encoding


@pytest.mark.parametrize(
    ("data", "shown", "encoding"),
    [
        (None, None, "none"),
        (b"", "", "utf8"),
        (b"two coffees", "two coffees", "utf8"),
        ("größe".encode(), "größe", "utf8"),
        (b"tab\tline\r\n", "tab\tline\r\n", "utf8"),
        (b'{"a": [1, 2]}', {"a": [1, 2]}, "json"),
        (b" [1]", [1], "json"),
        (b"42", "42", "utf8"),
        (b'"quoted"', '"quoted"', "utf8"),
        (b'{"a": 1', '{"a": 1', "utf8"),
        (b"\x00\x01", "AAE=", "base64"),
        (b"\xff\xfe", "//4=", "base64"),
        (b'{"a": "\xff"}', "eyJhIjogIv8ifQ==", "base64"),
        (b"[" * 100_000, "[" * 100_000, "utf8"),
    ],
)
def test_the_encoding_is_chosen_by_content(data: bytes | None, shown: object, encoding: str) -> None:
    assert as_json(data) == (shown, encoding)


def test_the_requested_encoding_is_used_if_possible() -> None:
    assert as_json(b'{"a":1}', "utf8") == ('{"a":1}', "utf8")
    assert as_json(b"42", "json") == (42, "json")
    assert as_json(b"abc", "hex") == ("616263", "hex")
    assert as_json(b"abc", "base64") == ("YWJj", "base64")
    assert as_json(b"\x00", "utf8") == ("\x00", "utf8")


def test_if_the_requested_encoding_is_impossible_the_actual_one_is_named() -> None:
    assert as_json(b"\xff", "utf8") == ("/w==", "base64")
    assert as_json(b"no json", "json") == ("no json", "utf8")


def test_json_is_shown_with_every_digit_and_on_one_line() -> None:
    value, encoding = show(b'{"id":\n 12345678901234567890,\r\n "x": 1.50}')
    assert encoding == "json"
    assert msgspec.json.encode(value) == b'{"id":12345678901234567890,"x":1.50}'


@pytest.mark.parametrize(
    ("given_json", "encoding", "data"),
    [
        (b'"text"', None, b"text"),
        (b"null", None, None),
        (b'{"a": 1.0}', None, b'{"a": 1.0}'),
        (b"17", None, b"17"),
        (b"true", None, b"true"),
        (b'"text"', "utf8", b"text"),
        (b'"text"', "json", b'"text"'),
        (b"null", "json", b"null"),
        (b'"AP8="', "base64", b"\x00\xff"),
        (b'"00ff"', "hex", b"\x00\xff"),
        (b"null", "base64", None),
        (b"null", "none", None),
    ],
)
def test_json_values_are_converted_to_bytes(given_json: bytes, encoding: str | None, data: bytes | None) -> None:
    assert read(msgspec.Raw(given_json), encoding) == data  # type: ignore[arg-type]


def test_a_missing_value_is_null() -> None:
    assert read(None) is None


@pytest.mark.parametrize(
    ("given_json", "encoding", "complaint"),
    [
        (b'"A"', "base64", "not base64"),
        (b'"A-_="', "base64", "not base64"),
        (b'"0"', "hex", "not hexadecimal"),
        (b"17", "utf8", "must be a string"),
        (b"{}", "hex", "must be a string"),
        (b'"x"', "none", "must be null"),
    ],
)
def test_an_invalid_encoding_is_refused(given_json: bytes, encoding: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read(msgspec.Raw(given_json), encoding)  # type: ignore[arg-type]


@given(data=st.none() | st.binary(max_size=100), wanted=st.sampled_from(["auto", "utf8", "base64", "hex"]))
def test_shown_values_round_trip_with_their_encoding(data: bytes | None, wanted: str) -> None:
    value, encoding = show(data, wanted)  # type: ignore[arg-type]
    if encoding == "json":
        assert msgspec.json.decode(msgspec.json.encode(value)) == msgspec.json.decode(data or b"")
    else:
        assert read(msgspec.Raw(msgspec.json.encode(value)), encoding) == data
