"""Pipeline files: valid contents, and error messages. Needs no Spark."""

import re
import textwrap
from dataclasses import fields
from pathlib import Path

import pytest

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.definition import Pipeline, Source, StaticTable
from ottla.spark.pipelines.formats.registry import FORMATS
from ottla.spark.pipelines.keys import key_names
from ottla.spark.pipelines.loading import load_pipeline, parse_pipeline
from ottla.spark.pipelines.outline import outline
from ottla.spark.pipelines.sinks.iceberg import IcebergSink
from ottla.spark.pipelines.sinks.registry import SINKS
from ottla.spark.pipelines.stores.settings import StorageSettings

WHOLE = """
broker = "kafka:9092"
every = "1 minute"
state = "kept"

[kafka]
"security.protocol" = "SASL_SSL"
"sasl.jaas.config" = 'username="me" password="${SECRET}"'

[spark]
"spark.sql.shuffle.partitions" = 4

[source.orders]
topics = ["orders-eu", "orders-us"]
schema = "id bigint, city string, at timestamp, total decimal(10,2), tags array<struct<name:string,n:int>>"
event_time = "at"
watermark = "10 minutes"
start = "2026-01-01T00:00"
max_per_batch = 1000

[table.cities]
path = "cities.parquet"

[step.unique]
deduplicate = { from = "orders", keys = ["id"] }

[step.totals]
sql = "SELECT city, sum(total) AS total FROM unique GROUP BY city"

[sink.lake]
kind = "delta"
path = "lake"
from = "unique"
partition_by = "city"

[sink.totals]
kind = "postgresql"
url = "postgresql://me:${SECRET}@db/shop"
table = "totals"
key = "city"
"""


def parse(text: str) -> Pipeline:
    return parse_pipeline(textwrap.dedent(text), Path("/jobs/shop.toml"), {"SECRET": "hush"})


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as wrong:
        parse(text)
    return str(wrong.value).splitlines()


def test_a_pipeline_file_is_parsed() -> None:
    pipeline = parse(WHOLE)

    assert (pipeline.name, pipeline.broker, pipeline.every_ms) == ("shop", "kafka:9092", 60_000)
    assert pipeline.state == Path("/jobs/kept")
    assert pipeline.checkpoint == "/jobs/kept/checkpoint"
    assert pipeline.kafka["sasl.jaas.config"] == 'username="me" password="hush"'
    assert pipeline.spark == {"spark.sql.shuffle.partitions": "4"}
    assert pipeline.sources["orders"].start == "1767225600000"
    assert pipeline.sources["orders"].dead_letters == "shop.dead-letters"
    assert [step.name for step in pipeline.steps] == ["unique", "totals"]
    assert (pipeline.sinks["lake"].of, pipeline.sinks["lake"].mode) == ("unique", "append")
    assert (pipeline.sinks["totals"].of, pipeline.sinks["totals"].mode) == ("totals", "update")
    assert "hush" not in repr(pipeline.sinks["totals"])


def test_the_outline_describes_the_pipeline() -> None:
    assert outline(parse(WHOLE)).splitlines() == [
        "shop, at kafka:9092, every 60 s, state in /jobs/kept",
        "  source orders: json from orders-eu, orders-us, from 2026-01-01T00:00:00Z on",
        "    id bigint, city string, at timestamp, total decimal(10,2), tags array<struct<name:string,n:int>>",
        "    late after 10 minutes by at",
        "    what does not parse goes to shop.dead-letters",
        "  table cities: parquet /jobs/cities.parquet",
        "  step unique: rows of orders, one for each id",
        "  step totals: SELECT city, sum(total) AS total FROM unique GROUP BY city",
        "  sink lake: rows of unique to delta /jobs/lake, append, partitioned by city",
        "  sink totals: rows of totals to postgresql totals, update, key city",
    ]


def test_all_errors_are_reported_at_once_in_file_order() -> None:
    assert mistakes("""\
        brokr = "kafka:9092"
        [source.orders]
        formt = "json"
        schema = "id bigit"
        watermark = "soon"
        [sink.out]
        kind = "parqet"
        fron = "orders"
    """) == [
        "shop.toml, line 1: brokr: no such key; did you mean broker?",
        "shop.toml, line 3: [source.orders] formt: no such key; did you mean format?",
        "shop.toml, line 4: [source.orders] schema: there is no type 'bigit'; did you mean bigint?",
        "shop.toml, line 5: [source.orders] watermark: 'soon' is not a valid duration (use e.g. 10 minutes)",
        (
            "shop.toml, line 7: [sink.out] kind: 'parqet' is not one of parquet, delta, iceberg, topic, postgresql, "
            "sqlite, jdbc, console; did you mean parquet?"
        ),
        "shop.toml, line 8: [sink.out] fron: no such key; did you mean from?",
    ]


SOURCE = '[source.orders]\nschema = "id bigint, at timestamp"\n'
SINK = '[sink.out]\nkind = "console"\n'
DELTA = '[sink.out]\nkind = "delta"\npath = "x"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [", "shop.toml is not valid TOML: "),
        ("", "there is no [source.NAME], which says where records come from"),
        (SOURCE, "there is no [sink.NAME], which says where rows go"),
        (SOURCE + 'event_time = "att"\n' + SINK, "line 3: [source.orders] event_time: there is no column att; did"),
        (SOURCE + 'event_time = "id"\n' + SINK, "id is a bigint, and must be a timestamp"),
        (SOURCE + 'start = "yesterday"\n' + SINK, "is earliest, latest or a time: 'yesterday' is not a valid time"),
        (SOURCE + 'topics = ["a b"]\n' + SINK, "topics: 'a b' cannot be a topic's name"),
        (SOURCE + 'dead_letters = "orders"\n' + SINK, "orders is one of the topics that are read"),
        (SOURCE + "sample = 0\n" + SINK, "sample: must be a whole number of at least 1, not 0"),
        (SOURCE + "topics = 5\n" + SINK, "topics: must be a string or a list of strings, not 5"),
        ('[source.o]\nschema = "id bigint, _offset int"\n' + SINK, "the name _offset is taken"),
        ('[source.o]\nschema = "id bigint, ID int"\n' + SINK, "the column ID is there twice"),
        ('[source.o]\nschema = "id"\n' + SINK, "'id' is not a column; write a name and a type, for example: id bigint"),
        ('[source.o]\nformat = "raw"\nschema = "id int"\n' + SINK, "raw records have the columns key, value"),
        ('[source.o]\nformat = "avro"\nschema = "id int"\n' + SINK, "the Avro schema is not valid JSON"),
        (SOURCE + 'schema_file = "no.ddl"\n' + SINK, "schema_file: and schema say the same; leave one of them out"),
        (SOURCE + "[step.a]\n" + SINK, "one of sql, sql_file, python, arrow, pandas, deduplicate; it has none"),
        (SOURCE + '[step.a]\nsql = " "\n' + SINK, "[step.a] sql: is empty"),
        (SOURCE + '[step.a]\nsql_file = "no.sql"\n' + SINK, "no.sql cannot be read: No such file or directory"),
        (SOURCE + '[step.a]\npython = "steps.py"\n' + SINK, "'steps.py' must be a file and a function in it"),
        (SOURCE + '[step.a]\ndeduplicate = {from = "ordrs", keys = "id"}\n' + SINK, "no source or step ordrs before"),
        (SOURCE + '[step.orders]\nsql = "SELECT 1"\n' + SINK, "the name orders is there twice"),
        (SOURCE + '[step."a b"]\nsql = "SELECT 1"\n' + SINK, "a name begins with a letter and has only letters"),
        (SOURCE + SINK + 'from = "ordrs"', "there is no source or step ordrs; did you mean orders?"),
        (SOURCE + SINK + 'path = "x"', "a console sink has no path"),
        (SOURCE + '[sink.o]\nkind = "iceberg"\npath = "x"\ntable = "t"', "'t' must be a namespace and a name"),
        (SOURCE + '[sink.o]\nkind = "parquet"\npath = "s3://x"', "names no folder in the bucket"),
        (SOURCE + '[sink.o]\nkind = "parquet"\npath = "x"\nmode = "update"', "a parquet table without a key can"),
        (SOURCE + '[sink.o]\nkind = "parquet"\npath = "x"\nkey = "id"', "no key; to replace rows by key, use delta or"),
        (SOURCE + DELTA + 'mode = "update"', "a delta table without a key can only grow (append); set key"),
        (SOURCE + DELTA + 'key = "id"\nmode = "complete"', "a delta table is not rewritten as a whole"),
        (SOURCE + DELTA + 'delete_when = "id = 1"', "delete_when: needs key, by which rows are found"),
        (SOURCE + DELTA + 'order_by = "at"', "order_by: needs key, by which rows are found"),
        (SOURCE + DELTA + 'dead_letters = "dead"', "a delta sink refuses rows only if it has a key"),
        (SOURCE + DELTA + 'key = ["id", "id"]', "key: names a column twice"),
        (SOURCE + DELTA + 'key = "_key"', "key: _key is not stored; select it under another name"),
        (SOURCE + DELTA + 'key = "id"\norder_by = "_offset"', "order_by: _offset is not stored"),
        (SOURCE + DELTA + 'key = "id"\norder_by = "id"', "order_by: id is part of the key"),
        (SOURCE + '[sink.o]\nkind = "sqlite"\npath = "x"\ntable = "t"\nmode = "complete"', "complete needs a key"),
        (SOURCE + '[sink.o]\nkind = "topic"\ntopic = "t"\nkey = ["a", "b"]', "a record has one key; name one column"),
        ('name = "a b"\n' + SOURCE + SINK, "name: 'a b' must be letters, digits"),
        ('every = "often"\n' + SOURCE + SINK, "every: 'often' is not a valid duration (use e.g. 10s"),
        ('broker = "${NOT_THERE}"\n' + SOURCE + SINK, "broker: the environment has no variable NOT_THERE"),
        ("source = 5\n" + SINK, "source: is written as tables with names: [source.NAME]"),
    ],
)  # fmt: skip
def test_an_error_is_reported_with_its_line(text: str, said: str) -> None:
    assert said in "\n".join(mistakes(text))


def test_sql_and_python_beside_the_file_are_found(tmp_path: Path) -> None:
    (tmp_path / "totals.sql").write_text("SELECT 1;\n")
    (tmp_path / "steps.py").write_text("def enrich(spark, tables):\n    return tables['orders']\n")
    file = tmp_path / "shop.toml"
    (tmp_path / "orders.ddl").write_text("id bigint, at timestamp\n")
    source = '[source.orders]\nschema_file = "orders.ddl"\n'
    file.write_text(source + '[step.a]\nsql_file = "totals.sql"\n[step.b]\npython = "steps.py:enrich"\n' + SINK)

    assert load_pipeline(file).sources["orders"].schema == "id bigint, at timestamp"
    first, second = load_pipeline(file).steps

    assert first.sql == "SELECT 1"
    assert second.python is not None
    assert second.python.file == tmp_path / "steps.py"

    (tmp_path / "steps.py").write_text("def enrichment():\n")
    with pytest.raises(ConfigError, match=r"\[step.b\] python: steps.py, line 1: expected an indented block"):
        load_pipeline(file)
    (tmp_path / "steps.py").write_text("def enrichment(): ...\n")
    with pytest.raises(ConfigError, match=r"steps.py has no function enrich; did you mean enrichment\?"):
        load_pipeline(file)


def test_an_explicit_broker_overrides_the_files(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    file.write_text('broker = "a:1"\n' + SOURCE + SINK)

    assert load_pipeline(file).broker == "a:1"
    assert load_pipeline(file, broker="b:2", kafka={"client.id": "x"}).kafka == {"client.id": "x"}
    assert load_pipeline(file, broker="b:2").broker == "b:2"


def test_a_missing_file_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no.toml cannot be read: No such file or directory"):
        load_pipeline(tmp_path / "no.toml")


def test_the_documented_file_is_a_pipeline_and_every_key_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text("utf-8")
    shown, *others = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    [in_store] = [each for each in others if "[storage]" in each]

    pipeline = parse_pipeline(shown, Path("/jobs/shop.toml"), {"PGPASSWORD": "x"})

    assert set(pipeline.sinks) == {"lake", "minutes"}
    stored = parse_pipeline(
        f"[source.orders]\n{in_store}", Path("/jobs/shop.toml"), {"MINIO_USER": "x", "MINIO_PASSWORD": "y"}
    )
    warehouse = stored.sinks["warehouse"]
    assert isinstance(warehouse, IcebergSink)
    assert warehouse.storage.allow_http
    keys = [each.name for kind in (Source, StaticTable, StorageSettings) for each in fields(kind)]
    keys += [name for kind in (*SINKS.built_in(), *FORMATS.built_in()) for name in key_names(kind)]
    assert [key for key in keys if key not in ("name", "of") and f"`{key.removesuffix('_ms')}`" not in page] == []
