"""Unknown columns are found by `check`: without Spark where a schema is known, by Spark's analysis elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.loading import parse_pipeline
from ottla.spark.pipelines.sql_errors import sql_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)
META = "_key, _topic, _partition, _offset, _timestamp"
SOURCE = '[source.orders]\nschema = "id bigint, city string"\n'


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        parse_pipeline(text, Path("shop.toml"), {})
    return str(raised.value).splitlines()


def test_unknown_columns_of_sinks_and_deduplications_are_found_by_the_schema() -> None:
    text = (
        f'{SOURCE}[step.one]\ndeduplicate = {{from = "orders", keys = ["ctiy", "_offset", "ID"]}}\n'
        '[sink.a]\nkind = "parquet"\npath = "a"\npartition_by = "cty"\n'
        '[sink.b]\nkind = "topic"\ntopic = "b"\nfrom = "orders"\nkey = "_key"\nvalue = "City"\n'
    )
    there, all_ = "(columns: id, city)", f"(columns: id, city, {META})"
    assert mistakes(text) == [
        f"shop.toml, line 4: [step.one] deduplicate: keys: there is no column ctiy; did you mean city? {all_}",
        f"shop.toml, line 8: [sink.a] partition_by: there is no column cty; did you mean city? {there}",
        f"shop.toml, line 13: [sink.b] key: there is no column _key {there}",
    ]


def test_columns_computed_by_sql_are_not_checked_without_spark() -> None:
    step = '[step.a]\nsql = "SELECT id AS x FROM orders"\n'
    sink = '[sink.a]\nkind = "parquet"\npath = "a"\npartition_by = "y"\n'
    assert parse_pipeline(SOURCE + step + sink, Path("shop.toml"), {}).sinks["a"].named_columns()["partition_by"] == (
        "y",
    )


def test_an_error_of_spark_becomes_one_plain_line() -> None:
    column = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `o`.`cty` cannot be "
        "resolved. Did you mean one of the following? [`o`.`city`, `o`.`id`]. SQLSTATE: 42703; line 2 pos 7;\n'Project"
    )
    table = "[TABLE_OR_VIEW_NOT_FOUND] The table or view `ordrs` cannot be found.\nSQLSTATE: 42P01; line 1 pos 14;"
    assert sql_error(column, []) == (
        "there is no column o.cty; the nearest are o.city, o.id (line 2, position 7 of the query)"
    )
    assert sql_error(table, ["orders", "paid"]) == (
        "there is no table ordrs; did you mean orders? (tables: orders, paid) (line 1, position 14 of the query)"
    )
    assert sql_error("division by zero\nat …", []) == "division by zero"


def test_all_steps_and_sinks_with_unknown_columns_are_named_at_once(spark: "SparkSession", tmp_path: Path) -> None:
    from ottla.spark.pipelines.cases.samples import SampleReading
    from ottla.spark.pipelines.frames import sink_rows

    steps = (
        '[step.a]\nsql = "SELECT id, cty FROM orders"\n[step.b]\nsql = "SELECT id FROM a"\n'
        '[step.c]\nsql = "SELECT x FROM ordrs"\n[step.d]\nsql = "SELECT id AS x FROM orders"\n'
        '[sink.s]\nkind = "parquet"\npath = "table"\npartition_by = "id"\n'
    )
    text = SOURCE + steps
    pipeline = parse_pipeline(text, tmp_path / "shop.toml", {})
    with pytest.raises(ConfigError) as raised:
        sink_rows(spark, pipeline, "s", SampleReading({}))
    assert [line.partition(" (")[0] for line in str(raised.value).splitlines()] == [
        "[step.a]: there is no column cty; the nearest are city, id, _key, _topic, _offset",
        "[step.c]: there is no table ordrs; did you mean orders?",
    ]

    right = text.replace("cty", "city").replace("SELECT x FROM ordrs", "SELECT 1 AS one")
    with pytest.raises(ConfigError, match=r"\[sink.s\] partition_by: there is no column id \(columns: x\)"):
        sink_rows(spark, parse_pipeline(right, tmp_path / "shop.toml", {}), "s", SampleReading({}))
