"""JSON values as Arrow columns."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from ottla.columns.ddl import parse_columns  # noqa: E402 - after the check for pyarrow
from ottla.decoding.json_values import JsonDecoder  # noqa: E402

ALL = (
    "id bigint, name string, price double, at timestamp, sum decimal(10,2), day date, tags array<string>, "
    "counts map<string,int>, inner struct<x: int, `y y`: string>, ok boolean, data binary"
)


def decoded(ddl: str, *values: bytes | None) -> tuple[list[Any], list[str | None]]:
    rows, errors = JsonDecoder(parse_columns(ddl)).decode(pa.array(values, pa.binary()))
    rows.validate(full=True)
    return rows.to_pylist(), errors.to_pylist()


def test_every_type_is_decoded() -> None:
    rows, errors = decoded(
        ALL,
        b'{"id":1,"name":"a","price":1,"at":"2020-01-01T00:00:00Z","sum":"1.25","day":"2020-01-02","tags":["x",null],'
        b'"counts":{"k":5},"inner":{"x":3,"y y":"q"},"ok":true,"data":"eHg="}',
    )
    assert errors == [None]
    assert rows == [
        {
            "id": 1,
            "name": "a",
            "price": 1.0,
            "at": dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
            "sum": Decimal("1.25"),
            "day": dt.date(2020, 1, 2),
            "tags": ["x", None],
            "counts": [("k", 5)],
            "inner": {"x": 3, "y y": "q"},
            "ok": True,
            "data": b"xx",
        }
    ]


def test_missing_fields_are_null_and_unknown_ones_are_ignored() -> None:
    rows, errors = decoded(ALL, b"{}", b'{"other":1}', None)
    assert errors == [None, None, None]
    assert rows[0] == rows[1] == dict.fromkeys(rows[0])
    assert rows[2] is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"null", "does not fit the columns: Expected `object`"),
        (b"5", "does not fit the columns"),
        (b'{"id":1.5}', "$.id"),
        (b'{"id":99999999999999999999}', "does not fit the columns"),
        (b'{"inner":{"x":3000000000}}', "$.inner.x"),
        (b'{"sum":1.255}', "does not fit the columns"),
        (b'{"id":1', "invalid JSON"),
        (b"\xff", "invalid JSON"),
        (b'{"name":"\xff"}', ""),
        (b'{"a":' * 100_000, "invalid JSON: nested too deeply"),
        (b"", "invalid JSON"),
        (b'{"id":1}{"id":2}', "invalid JSON"),
    ],
)
def test_a_value_that_does_not_decode_has_a_reason_and_the_others_are_decoded(value: bytes, reason: str) -> None:
    rows, errors = decoded(ALL, b'{"id":1}', value, b'{"id":2}')
    assert [row and row["id"] for row in rows] == [1, None, 2]
    assert errors[0] is errors[2] is None
    assert errors[1] is not None
    assert reason in errors[1]


def test_a_string_column_takes_the_text_of_other_json() -> None:
    rows, errors = decoded("a string, b array<string>", b'{"a":{"x": 1}}', b'{"a":5,"b":[true,"s",null]}', b'{"a":"p"}')
    assert errors == [None] * 3
    assert [row["a"] for row in rows] == ['{"x": 1}', "5", "p"]
    assert rows[1]["b"] == ["true", "s", None]


@given(st.lists(st.one_of(st.binary(max_size=20), st.sampled_from([b'{"a":1}', b'{"a":"x"}', b"{}", None]))))
def test_each_value_has_a_row_or_a_reason_or_is_null(values: list[bytes | None]) -> None:
    rows, errors = decoded("a bigint", *values)
    assert len(rows) == len(errors) == len(values)
    for row, error, value in zip(rows, errors, values, strict=True):
        assert (row is None) == (value is None or error is not None)
