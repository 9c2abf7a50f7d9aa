"""Test cases of pipelines: sample records in, expected rows and dead letters out, without a broker."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from ottla.cli.main import program
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.cases.comparing import row_differences
from ottla.spark.pipelines.cases.definition import DEFAULT_TIMESTAMP_MS
from ottla.spark.pipelines.cases.example import example_tests
from ottla.spark.pipelines.cases.loading import parse_cases
from ottla.spark.pipelines.cases.values import typed
from ottla.spark.pipelines.example import example
from ottla.spark.pipelines.loading import parse_pipeline
from ottla.testing import PipelineUnderTest, SampleRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)
DOCS = Path(__file__).parents[3] / "docs" / "pipelines.md"
ONE = """
[source.orders]
schema = "id bigint, city string, price double, at timestamp"
[step.per_minute]
sql = '''
SELECT window.start AS minute, city, count(*) AS orders, sum(price) AS total
FROM orders GROUP BY window(at, '1 minute'), city
'''
[sink.minutes]
kind = "postgresql"
url = "postgresql://shop:${NOT_SET_IN_TESTS}@localhost/shop"
table = "minutes"
key = ["minute", "city"]
"""
TWO = f"""{ONE}
[source.payments]
schema = "id bigint"
[sink.all]
kind = "console"
"""


def parsed(text: str, pipeline: str = TWO) -> Any:
    loaded = parse_pipeline(pipeline, Path("shop.toml"), {"NOT_SET_IN_TESTS": ""})
    return parse_cases(text, Path("shop.tests.toml"), loaded)


def test_records_are_lines_or_tables_with_key_headers_and_timestamp() -> None:
    [case] = parsed("""
[case.c]
records.orders = '''
{"id": 1}

{"id": 2}
'''
records.payments = ["x", { value = { id = 1, at = 2026-01-02T00:00:00Z }, key = "k", headers = { a = "b" } },
    { timestamp = "2026-01-01T00:00:01Z", partition = 2, topic = "old" }, { value_base64 = "AAE=" }]
rows.minutes = '{"orders": null}'
dead_letters.orders = ["not JSON", { value = "x", reason = "y" }]
""")
    assert [record.value for record in case.records["orders"]] == [b'{"id": 1}', b'{"id": 2}']
    text, table, tombstone, data = case.records["payments"]
    assert text == SampleRecord(value=b"x")
    assert (table.value, table.key, table.headers) == (
        b'{"id": 1, "at": "2026-01-02T00:00:00+00:00"}',
        b"k",
        (("a", b"b"),),
    )
    assert (tombstone.value, tombstone.timestamp_ms) == (None, DEFAULT_TIMESTAMP_MS + 1000)
    assert (tombstone.partition, tombstone.topic) == (2, "old")
    assert data.value == b"\x00\x01"
    assert case.rows == {"minutes": [{"orders": None}]}
    assert [(each.value, each.reason) for each in case.dead_letters["orders"]] == [(None, "not JSON"), (b"x", "y")]


def test_errors_in_cases_are_reported_with_their_lines() -> None:
    with pytest.raises(ConfigError) as raised:
        parsed("""[case.one]
recrods = []
[case.two]
records = "x"
rows.minuets = []
[case.three]
records.orders = [{ valu = "x" }]
rows.minutes = 'no JSON'
""")
    told = str(raised.value).replace("shop.tests.toml", "f").splitlines()
    record = "value, value_base64, key, headers, timestamp, topic, partition"
    assert told == [
        "f, line 1: [case.one]: needs records",
        "f, line 1: [case.one]: needs rows",
        "f, line 2: [case.one] recrods: no such key; did you mean records?",
        "f, line 4: [case.two] records: say which one: records.NAME with NAME one of orders, payments",
        "f, line 5: [case.two] rows: no minuets in the pipeline; did you mean minutes?; it has minutes, all",
        f"f, line 7: [case.three] records: a record is a text or a table of {record}, not {{'valu': 'x'}}",
        "f, line 8: [case.three] rows: 'no JSON' is not valid JSON: Expecting value: line 1 column 1 (char 0)",
    ]


def test_rows_are_compared_in_any_order_by_the_columns_that_are_named() -> None:
    rows = [{"id": 1, "city": "Prag", "n": 0.1 + 0.2}, {"id": 2, "city": None, "n": 1.0}]

    assert row_differences("s", [{"id": 2}, {"id": 1, "city": "Prag"}], rows, rows[0]) == []
    assert row_differences("s", [{"n": 0.3}, {"n": 1.0}], rows, rows[0]) == []
    assert row_differences("s", [{"id": 2}], rows[1:], rows[0]) == []
    assert row_differences("s", [{"id": 1, "city": "Wien"}, {"id": 2}], rows, rows[0]) == [
        "s: 1 row missing (-), 1 row not expected (+)",
        '  - {"id": 1, "city": "Wien"}',
        '  + {"id": 1, "city": "Prag"}',
        "    different: city",
    ]
    assert row_differences("s", [{"cty": "x"}], rows, rows[0]) == [
        "s: there is no column cty; did you mean city? (columns: id, city, n)"
    ]
    assert row_differences("s", [], rows[:1], rows[0])[0] == "s: 0 rows missing (-), 1 row not expected (+)"
    assert row_differences("s", [{"id": True}], rows[:1], rows[0]) != []


def test_values_are_of_the_type_of_their_column() -> None:
    struct = {"type": "struct", "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "decimal(4,2)"}]}
    assert typed("2026-01-01T01:00:00+01:00", "timestamp") == datetime(2026, 1, 1, tzinfo=UTC)
    assert typed("2026-01-01", "date") == date(2026, 1, 1)
    assert typed({"y": 1.5}, struct) == {"x": None, "y": Decimal("1.5")}
    assert typed(["AAE="], {"type": "array", "elementType": "binary"}) == [b"\x00\x01"]
    assert typed({"a": 1}, {"type": "map", "keyType": "string", "valueType": "double"}) == {"a": 1.0}
    assert typed("many", "integer") == "many"


def test_first_cases_are_written_for_json_alone() -> None:
    assert example_tests("a.toml", [b"x", None, b"[1]"]) is None
    assert '\n{"id": 1}\n' in (example_tests("a.toml", [b"x", b'{"id":\n1}']) or "")


def test_the_documented_cases_pass(
    spark: "SparkSession",
    ottla_pipeline: Callable[[str], PipelineUnderTest],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert spark.version
    section = DOCS.read_text("utf-8").partition("## Testing a pipeline")[2].partition("\n## ")[0]
    [cases] = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    [recipe] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("orders.toml").write_text(ONE)
    Path("orders.tests.toml").write_text(cases)
    tests: dict[str, Any] = {}
    exec(compile(recipe, "docs/pipelines.md", "exec"), tests)  # noqa: S102 - it is ours
    ran = [test(ottla_pipeline) for name, test in tests.items() if name.startswith("test_")]
    assert len(ran) == 2

    Path("orders.tests.toml").write_text(cases.replace("orders = 2", "orders = 3").replace("a valid double", "an int"))
    with pytest.raises(AssertionError) as raised:
        ottla_pipeline("orders.toml").check()
    assert "    different: orders" in str(raised.value)
    assert "dead letters of orders: 1 record missing (-), 1 record not expected (+)" in str(raised.value)


def test_the_cases_that_init_writes_pass_and_a_wrong_one_is_an_exit_code(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The command ends its own Spark; this one is of all tests.
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    record = b'{"id": 1, "Gr\xc3\xb6\xc3\x9fe": 1.5, "place": {"x": 1}, "at": "2026-01-01T00:00:00Z", "tags": ["a"]}'
    (tmp_path / "orders.toml").write_text(example("orders", "localhost:1", [record], "parquet", "orders"))
    tests = tmp_path / "orders.tests.toml"
    tests.write_text(example_tests("orders.toml", [record]) or "")

    done = CliRunner().invoke(program, ["pipeline", "test", str(tmp_path / "orders.toml")])
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "orders: 2 of 2 cases passed")

    tests.write_text(tests.read_text().replace("rows = []", "rows = [{ id = 7 }]"))
    done = CliRunner().invoke(program, ["pipeline", "test", str(tmp_path / "orders.toml")])
    assert done.exit_code == 1
    assert '  - {"id": 7}' in done.output
    done = CliRunner().invoke(program, ["pipeline", "test", str(tmp_path / "orders.toml"), "--case", "none"])
    assert done.exit_code == 2
