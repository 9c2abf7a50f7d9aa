"""Schemas in Spark's DDL as values."""

import pytest

from ottla.columns.ddl import parse_columns
from ottla.columns.types import shown
from ottla.core.errors import ConfigError


@pytest.mark.parametrize(
    ("ddl", "columns"),
    [
        ("id long, n INTEGER", "struct<id:bigint,n:int>"),
        ("a array<map<string, int>>", "struct<a:array<map<string,int>>>"),
        ("s struct<x: int, `y y`: array<short>>", "struct<s:struct<x:int,y y:array<smallint>>>"),
        ("d decimal(10, 2), e decimal, f numeric(5)", "struct<d:decimal(10,2),e:decimal(10,0),f:decimal(5,0)>"),
        ("v varchar(10), t timestamp_ltz", "struct<v:string,t:timestamp>"),
    ],
)
def test_a_schema_is_parsed_to_types(ddl: str, columns: str) -> None:
    assert shown(parse_columns(ddl)) == columns


@pytest.mark.parametrize("ddl", ["id bigitn", "m map<int>", "a array<int,int>", "id"])
def test_an_invalid_schema_is_rejected(ddl: str) -> None:
    with pytest.raises(ConfigError):
        parse_columns(ddl)
