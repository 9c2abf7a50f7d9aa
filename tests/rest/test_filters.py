"""Filters for records."""

from __future__ import annotations

import pytest

from ottla.http.records.filters import Filter, parse_path
from ottla.records.encode import BatchBuilder
from ottla.records.reader import Record, RecordReader


def record(
    value: bytes | None = b"v", key: bytes | None = None, headers: tuple[tuple[str, bytes | None], ...] = ()
) -> Record:
    builder = BatchBuilder()
    builder.append(0, key, value, headers)
    [made] = RecordReader(builder.build())
    return made


def test_without_conditions_everything_matches() -> None:
    assert Filter().takes_all
    assert Filter().matches(record(None))


def test_a_key_is_matched_whole() -> None:
    wanted = Filter(key="ann")
    assert wanted.matches(record(key=b"ann"))
    assert not wanted.matches(record(key=b"anna"))
    assert not wanted.matches(record(key=None))
    assert Filter(key="").matches(record(key=b""))
    assert not Filter(key="").matches(record(key=None))


def test_a_value_is_searched_for_text() -> None:
    assert Filter(contains="ö").matches(record("schön".encode()))
    assert not Filter(contains="x").matches(record(b"abc"))
    assert not Filter(contains="x").matches(record(None))


def test_headers_are_matched_by_name_or_by_name_and_value_and_all_of_them() -> None:
    traced = record(headers=(("trace", b"1"), ("trace", b"2"), ("empty", None)))
    assert Filter(headers=["trace"]).matches(traced)
    assert Filter(headers=["trace:2"]).matches(traced)
    assert Filter(headers=["empty", "trace:1"]).matches(traced)
    assert not Filter(headers=["trace:3"]).matches(traced)
    assert not Filter(headers=["trace", "other"]).matches(traced)
    assert not Filter(headers=["empty:"]).matches(traced)


@pytest.mark.parametrize(
    ("path", "equals"),
    [
        ("$.user.name", "ann"),
        ("user.name", "ann"),
        ("$.user.tags[1]", "b"),
        ("$['user']['tags'][0]", "a"),
        ('$["a b"]', "7"),
        ("$.ok", "true"),
        ("$.nothing", "null"),
        ("$.user.tags", '["a","b"]'),
        ("$.user", None),
        ("$", None),
    ],
)
def test_a_path_leads_to_what_is_compared(path: str, equals: str | None) -> None:
    value = b'{"user": {"name": "ann", "tags": ["a", "b"]}, "a b": 7, "ok": true, "nothing": null}'
    assert Filter(path=path, equals=equals).matches(record(value))


@pytest.mark.parametrize("path", ["$.user.age", "$.tags[5]", "$.user[0]", "$[0]", "$.user.name.first"])
def test_a_path_that_leads_nowhere_does_not_match(path: str) -> None:
    assert not Filter(path=path).matches(record(b'{"user": {"name": "ann"}, "tags": []}'))


@pytest.mark.parametrize("value", [None, b"", b"text", b"\xff", b"[" * 100_000])
def test_a_value_that_is_not_json_has_no_paths(value: bytes | None) -> None:
    assert not Filter(path="$").matches(record(value))


@pytest.mark.parametrize("path", ["$.", "$x", "$[x]", "$['a", "$.a b", "$[-1]", "a..b"])
def test_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="a path must have the form"):
        parse_path(path)


def test_a_comparison_without_a_path_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a `path`"):
        Filter(equals="x")
