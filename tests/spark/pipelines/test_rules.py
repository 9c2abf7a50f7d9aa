"""Pure rules of pipelines, without Spark or a broker."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from ottla.columns.ddl import columns
from ottla.columns.types import struct_of
from ottla.core.errors import ConfigError, OttlaError
from ottla.core.pipeline_status import QueryStatus
from ottla.spark.pipelines.avro_schema import avro_ddl
from ottla.spark.pipelines.databases.statements import create, name, postgres_type, sqlite_type, upsert
from ottla.spark.pipelines.example import example
from ottla.spark.pipelines.explained import stateful_parts
from ottla.spark.pipelines.failures import reason_in
from ottla.spark.pipelines.faults import CsvFault, JsonFault
from ottla.spark.pipelines.inference import csv_schema, json_schema
from ottla.spark.pipelines.lag_clock import LagClock
from ottla.spark.pipelines.loading import parse_pipeline
from ottla.spark.pipelines.progress import ends, line, new_reports, with_progress
from ottla.spark.pipelines.state_folder import StateFolder
from ottla.spark.pipelines.tables.merging import DataFile, groups_to_merge, is_small
from ottla.spark.pipelines.times import moment_ms, shown
from ottla.spark.pipelines.upgrades import fingerprint, refuse_mismatch


@pytest.mark.parametrize(
    ("records", "schema"),
    [
        ([{"a": 1}, {"a": 2.5}, {"b": True}], "a double, b boolean"),
        ([{"a": 1}, {"a": "x"}], "a string"),
        ([{"a": 1 << 70}], "a double"),
        ([{"a": (1 << 64) - 1}, {"a": 5}], "a decimal(20,0)"),
        ([{"größe": 1, "o": {"größe": 1}}], "`größe` bigint, o struct<`größe`:bigint>"),
        ([{"id": 1, "ID": "x", "o": {"a": 1, "A": 2}}], "id bigint, o struct<a:bigint>"),
        ([{"at": "2026-01-01T00:00:00Z"}, {"at": "2026-01-02"}], "at timestamp"),
        ([{"day": "2026-01-02"}], "day date"),
        ([{"a": None}, {}], "a string"),
        ([{"o": {"x": 1}}, {"o": {"y": [1, None]}}], "o struct<x:bigint,y:array<bigint>>"),
        ([{"o": {}}], "o map<string,string>"),
        ([{"a": [{"x": 1}, {"y": "t"}]}], "a array<struct<x:bigint,y:string>>"),
        ([{"a b": 1, "c": [1]}, {"c": 5}], "`a b` bigint, c string"),
    ],
)
def test_a_schema_holds_what_records_have_in_common(records: list[object], schema: str) -> None:
    values = [b"not json", None, b"5", *(json.dumps(record).encode() for record in records)]
    assert json_schema(values) == schema
    assert list(columns(schema))


def test_the_schema_of_csv_is_inferred_from_the_values() -> None:
    lines = [b'1,2.5,true,"a, b",2026-01-01', b"2,3,false,,2026-01-02", b"\xff"]
    assert csv_schema(lines, {}) == "c0 bigint, c1 double, c2 boolean, c3 string, c4 date"
    assert csv_schema([b"1;2"], {"sep": ";"}) == "c0 bigint, c1 bigint"


def test_without_samples_no_schema_is_inferred() -> None:
    with pytest.raises(ConfigError, match="none of the first records is a JSON object"):
        json_schema([b"x", None])
    with pytest.raises(ConfigError, match="600 different fields"):
        json_schema([json.dumps({f"f{number}": 1 for number in range(600)}).encode()])


def test_only_the_first_records_count() -> None:
    assert json_schema([b'{"a": 1}', b'{"a": "x"}'], sample=1) == "a bigint"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{", "not JSON: Expecting property name"),
        (b"\xff", "not JSON: 'utf-8' codec"),
        (b'"text"', 'not a JSON object: "text"'),
        (b'{"id": true}', "id: true is not a valid bigint"),
        (b'{"id": 1.5}', "id: 1.5 is not a valid bigint"),
        (b'{"price": "1"}', 'price: "1" is not a valid double'),
        (b'{"tags": {}}', "tags: {} is not a valid array<string>"),
        (b'{"at": 5}', "at: 5 is not a valid timestamp"),
        (b'{"at": "now"}', 'at: "now" is not a valid timestamp'),
        (b'{"at": "now", "price": 1}', "does not fit the schema id bigint"),
        (b'{"id": "' + b"x" * 100 + b'"}', "x…"),
        (None, "the record has no value"),
    ],
)
def test_the_reason_for_invalid_json_is_named(value: bytes | None, reason: str) -> None:
    schema = "id bigint, price double, tags array<string>, at timestamp"
    assert reason in JsonFault(schema)(value, list(columns(schema)))


def test_the_field_that_spark_could_not_parse_is_named() -> None:
    fault = JsonFault("qty int, price decimal(12,2), at timestamp")
    value = b'{"qty": "three boxes", "price": "8112590.55", "at": "now"}'
    assert fault(value, ["qty"]) == 'qty: "three boxes" is not a valid int'
    assert fault(value, ["at"]) == 'at: "now" is not a valid timestamp'
    assert fault(value, ["qty", "price", "at"]) == 'qty: "three boxes" is not a valid int'


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"1", "has 1 columns, but the schema has 3"),
        (b"x,1,true", 'id: "x" is not a valid bigint'),
        (b"1,x,true", 'price: "x" is not a valid double'),
        (b"1,1,maybe", 'paid: "maybe" is not a valid boolean'),
        (b"\xff", "not UTF-8"),
        (None, "the record has no value"),
        (b"1,1,true", "does not fit the schema"),
    ],
)
def test_the_reason_for_invalid_csv_is_named(value: bytes | None, reason: str) -> None:
    assert reason in CsvFault("id bigint, price double, paid boolean", {})(value, ["id", "price", "paid"])


def test_an_avro_schema_becomes_columns() -> None:
    place = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "float"}]}
    fields = [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "from", "type": place},
        {"name": "to", "type": "Place"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S"]}},
    ]
    assert avro_ddl(json.dumps({"type": "record", "name": "O", "fields": fields})) == (
        "id bigint, note string, at timestamp, price decimal(9,2), from struct<x:float>, to struct<x:float>, "
        "tags array<string>, counts map<string,int>, size string"
    )
    wrong = {"type": "record", "name": "O", "fields": [{"name": "a", "type": ["int", "string"]}]}
    with pytest.raises(ConfigError, match="a union of int and string has no column type"):
        avro_ddl(json.dumps(wrong))
    with pytest.raises(ConfigError, match="must be a record"):
        avro_ddl('"string"')
    with pytest.raises(ConfigError, match="the Avro schema is incomplete: 'type' is missing"):
        avro_ddl('{"type": "record", "name": "O", "fields": [{"name": "a"}]}')


PLAN = """
== Optimized Logical Plan ==
~Project [id#1L, total#2]
+- ~Join Inner, (id#1L = id#9L)
   :- ~Filter (price#3 > 0.0)
   :  +- ~Project [_parsed#4.id AS id#1L, from_json(StructField(id,LongType,true), (mode,PERMISSIVE), (columnNameOfCorruptRecord,_corrupt), x#1) AS p#2]
   :     +- ~StreamingRelationV2 org.X@1a2b, ottla
   +- ~DeduplicateWithinWatermark [id#9L]
      +- ~EventTimeWatermark 0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f, at#5: timestamp, 10 minutes
         +- ~Project [_parsed#6.id AS id#9L, _parsed#6.other AS other#7]
            +- ~StreamingRelationV2 org.X@3c4d, ottla

== Physical Plan ==
whatever
"""  # noqa: E501 - as Spark prints it


def test_the_state_of_a_plan_that_spark_connect_does_not_show_is_unknown() -> None:
    refused = "org.apache.spark.sql.AnalysisException: Queries with streaming sources must be executed with writeStream"
    plan = f"== Analyzed Logical Plan ==\n~Aggregate\n\n== Optimized Logical Plan ==\n{refused}\n"
    assert stateful_parts(plan) is None


def test_stateful_operators_and_their_keys_are_found_in_a_plan() -> None:
    assert stateful_parts(PLAN) == [
        (
            "Join Inner, (id = id) <- Project [_parsed.id AS id, from_json(…, x) AS p] "
            "<- Project [_parsed.id AS id, _parsed.other AS other]"
        ),
        "DeduplicateWithinWatermark [id] <- _parsed.id AS id",
        "EventTimeWatermark ID, at",
    ]


def test_a_static_join_and_a_watermark_alone_are_stateless() -> None:
    static = PLAN.replace("StreamingRelationV2 org.X@1a2b, ottla", "Relation [id#1] csv")
    watermark = "EventTimeWatermark 0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f, at#5: timestamp, 10 minutes"
    assert stateful_parts(static.replace("DeduplicateWithinWatermark [id#9L]", watermark)) == []


def test_an_aggregate_is_identified_by_keys_and_functions() -> None:
    def plan(results: str) -> str:
        return (
            f"== Optimized Logical Plan ==\nAggregate [city#1], [{results}]\n+- StreamingRelationV2 ottla\n"
            "== Physical Plan ==\n*(2) HashAggregate(keys=[city#1], functions=[sum(price#2)], output=[x#3])\n"
            "+- *(1) HashAggregate(keys=[city#1], functions=[partial_sum(price#2)], output=[x#3])\n"
        )

    before = stateful_parts(plan("sum(price#2) AS total#5"))
    assert before == ["Aggregate(keys=[city], functions=[partial_sum(price)]"]
    assert stateful_parts(plan("city#1, (sum(price#2) * 2.0) AS total#5")) == before


PROXY_FAILURE = """\
An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "x.py", line 1, in call
    raise e
pyspark.errors.exceptions.captured.ArithmeticException: [DIVIDE_BY_ZERO] Division by zero. Use try_divide
== SQL (line 1, position 8) ==
SELECT 1 DIV id

JVM stacktrace:
org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero
\tat org.apache.X(Y.scala:1)
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("shop: table failed: why", "shop: table failed: why"),
        ("", ""),
        ("[STREAM_FAILED] Query [id = 1] failed: Job aborted\n\nIdentifier: x [id = 1]\norg.Xy: z", "z"),
        (PROXY_FAILURE, "[DIVIDE_BY_ZERO] Division by zero. Use try_divide"),
        ("Job aborted\nCaused by: java.net.SocketTimeoutException: timed out\n", "timed out"),
        ("x\nottla.spark.errors.DataLoss: orders-0: offsets 1 to 2 are gone\n", "orders-0: offsets 1 to 2 are gone"),
        ("Python worker failed to connect back.", "Python worker failed to connect back."),
    ],
)
def test_the_relevant_line_of_a_failure_is_extracted(text: str, reason: str) -> None:
    assert reason_in(text) == reason


def test_progress_adds_up() -> None:
    report = {
        "batchId": 4,
        "durationMs": {"triggerExecution": 500},
        "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
        "sources": [
            {"endOffset": '{"t":{"0":5,"1":7}}', "latestOffset": {"t": {"0": 9, "1": 7, "2": 4}}, "numInputRows": 100}
        ],
        "stateOperators": [{"numRowsTotal": 3, "numRowsDroppedByWatermark": 2}],
    }
    first = with_progress(QueryStatus(name="table", sink="x"), report)
    idle = [{**report["sources"][0], "numInputRows": 0}]  # type: ignore[index]
    second = with_progress(first, report | {"sources": idle, "batchId": 5, "eventTime": {}})

    assert line(second) == (
        "table: batch 5, 100 rows read, 200 rows/s, lag 4, watermark 2026-01-01T00:00:00.000Z, 4 late"
    )
    assert (second.batch_ms, second.state_rows) == (500, 3)
    nothing = with_progress(first, {"sources": [{"endOffset": None, "latestOffset": "null"}]})
    assert (nothing.lag, nothing.batch) == (0, 4)


def test_small_files_of_one_folder_with_the_same_columns_are_merged() -> None:
    def file(path: str, size: int, kind: str = "a") -> DataFile:
        return DataFile(path, size, kind)

    files = [file("x/1", 10), file("x/2", 30), file("x/3", 90), file("x/4", 40), file("x/5", 40), file("x/6", 30, "b")]
    files += [file("y/1", 10), file("y/2", 1, "b"), file("z/1", 49)]
    groups = list(groups_to_merge([each for each in files if is_small(each.size, 100)], 100))

    assert groups == [["x/1", "x/2", "x/4"]]


def test_names_of_databases_are_quoted_and_rows_replaced_by_their_key() -> None:
    assert name('shop.or"ders') == '"shop"."or""ders"'
    assert create("t", [("id", "bigint"), ("a.b", "text")], ["id"]) == (
        'CREATE TABLE IF NOT EXISTS "t" ("id" bigint, "a.b" text, PRIMARY KEY ("id"))'
    )
    assert upsert("t", ["id", "x"], ["id"], "?") == (
        'INSERT INTO "t" ("id", "x") VALUES (?, ?) ON CONFLICT ("id") DO UPDATE SET "x" = excluded."x"'
    )
    assert upsert("t", ["id"], ["id"], "?").endswith('ON CONFLICT ("id") DO NOTHING')
    assert upsert("t", ["id"], [], "%s") == 'INSERT INTO "t" ("id") VALUES (%s)'
    with pytest.raises(ConfigError, match="key: there is no column nr; there are id"):
        create("t", [("id", "bigint")], ["nr"])
    assert [postgres_type(kind) for kind in ("decimal(9,2)", "timestamp", "array<int>")] == [
        "numeric(9,2)",
        "timestamptz",
        "jsonb",
    ]
    assert [sqlite_type(kind) for kind in ("bigint", "double", "timestamp")] == ["INTEGER", "REAL", "TEXT"]


@pytest.mark.parametrize("sink", ["parquet", "delta", "iceberg", "topic", "sqlite", "postgresql", "console"])
@pytest.mark.parametrize(
    ("values", "format_"),
    [
        ([b'{"id": 1, "at": "2026-01-01T00:00:00Z"}'], "json"),
        ([b"1,x", b"2,y"], "csv"),
        ([b"\x00\x01"], "raw"),
        ([], "raw"),
    ],
)
def test_an_example_is_a_pipeline(values: list[bytes], format_: str, sink: str) -> None:
    text = example("my-orders", "kafka:9092", values, sink, "my")

    pipeline = parse_pipeline(text, Path("/jobs/my.toml"), {"PGPASSWORD": "x"})

    [source] = pipeline.sources.values()
    assert (source.name, source.topics, source.format.name) == ("my_orders", ("my-orders",), format_)
    assert [each.kind for each in pipeline.sinks.values()] == [sink]
    assert (source.event_time == "at") == (format_ == "json")
    assert f'# dead_letters = "{source.dead_letters}"' in text


def test_times_are_parsed_in_several_formats() -> None:
    assert moment_ms("2026-01-01", 0) == moment_ms("2026-01-01T01:00+01:00", 0) == 1767225600000
    assert moment_ms("2 hours", 10_000_000) == 2_800_000
    assert moment_ms("1767225600000", 0) == 1767225600000
    assert moment_ms("now", 5) == 5
    assert shown(1767225600000) == "2026-01-01T00:00:00Z"
    with pytest.raises(ConfigError, match="'soon' is not a valid time"):
        moment_ms("soon", 0)


def test_a_state_folder_is_locked(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    assert not state.is_held()
    refused: list[OttlaError] = []

    def hold_too() -> None:
        try:
            with state.held():
                pass
        except OttlaError as error:
            refused.append(error)

    with state.held():
        assert state.is_held()
        state.ask_to_stop()
        other = threading.Thread(target=hold_too)
        other.start()
        other.join()
        assert state.is_asked_to_stop()
    assert "the pipeline is running already" in str(refused[0])
    with state.held():
        assert not state.is_asked_to_stop()
    state.pin_schemas({"a": "x int"})
    state.pin_schemas({"b": "y int"})
    assert state.schemas() == {"a": "x int", "b": "y int"}
    (tmp_path / "state" / "schemas.json").write_text("{")
    with pytest.raises(OttlaError, match=r"schemas.json is damaged"):
        state.schemas()


def test_a_pipeline_may_be_moved_with_its_state_but_not_its_table_alone() -> None:
    def mark(file: str, path: str) -> dict[str, object]:
        text = f'[source.orders]\nschema = "id int"\n[sink.table]\nkind = "parquet"\npath = "{path}"\n'
        pipeline = parse_pipeline(text, Path(file), {})
        return fingerprint(pipeline, pipeline.sinks["table"], [], struct_of([("id", "int")]))

    refuse_mismatch("table", None, mark("/a/shop.toml", "table"))
    refuse_mismatch("table", mark("/a/shop.toml", "table"), mark("/b/c/shop.toml", "table"))
    with pytest.raises(ConfigError, match="the place changed from table to /tables/orders; existing data is not moved"):
        refuse_mismatch("table", mark("/a/shop.toml", "table"), mark("/a/shop.toml", "/tables/orders"))


class FakeQuery:
    """A fake Spark query for the progress watcher."""

    def __init__(self, timestamps: list[str]) -> None:
        self._reports = [SimpleNamespace(json=json.dumps({"timestamp": each})) for each in timestamps]
        self.times_all_were_read = 0

    @property
    def lastProgress(self) -> object:  # noqa: N802 - Spark's name
        return self._reports[-1] if self._reports else None

    @property
    def recentProgress(self) -> list[SimpleNamespace]:  # noqa: N802 - Spark's name
        self.times_all_were_read += 1
        return self._reports


def test_all_reports_of_a_query_are_read_only_when_there_is_a_new_one() -> None:
    query = FakeQuery(["1", "2", "3"])
    assert [each["timestamp"] for each in new_reports(query, "1")] == ["2", "3"]
    assert [new_reports(query, "3") for _ in range(100)] == [[]] * 100
    assert query.times_all_were_read == 1
    assert new_reports(FakeQuery([]), "") == []


def test_lag_is_the_time_since_the_oldest_unread_record_was_seen() -> None:
    clock = LagClock()
    clock.look(position=10, end=10, now_s=0.0)
    assert clock.waiting_s(5.0) == 0.0
    clock.look(position=10, end=20, now_s=5.0)
    clock.look(position=15, end=30, now_s=7.0)
    assert clock.waiting_s(8.0) == 3.0
    clock.look(position=20, end=30, now_s=9.0)
    assert clock.waiting_s(9.0) == 2.0
    clock.look(position=30, end=30, now_s=10.0)
    assert clock.waiting_s(11.0) == 0.0


def test_read_and_end_offsets_are_summed_up_over_sources() -> None:
    source = {"endOffset": {"t": {"0": 3, "1": 4}}, "latestOffset": '{"t":{"0":5,"1":2}}'}
    assert ends({"sources": [source, {"endOffset": None}]}) == (7, 9)


def test_columns_that_are_only_carried_along_do_not_matter_to_a_checkpoint() -> None:
    head = "Aggregate(keys=[at], functions=[partial_count(1)]) <- Project [_parsed.at AS at]"
    before = f"{head} <- Project [value, from_json(…) AS _parsed]"
    now = f"{head} <- Project [value, topic, _parsed] <- Project [value, topic, from_json(…) AS _parsed]"
    common = {"sources": ["s"], "kind": "parquet", "place": "t", "partition_by": [], "key": [], "mode": "append"}
    refuse_mismatch("t", {**common, "stateful": [before]}, {**common, "stateful": [now]})
    other = now.replace("_parsed.at", "_parsed.day")
    with pytest.raises(ConfigError, match="made with other keys or functions"):
        refuse_mismatch("t", {**common, "stateful": [before]}, {**common, "stateful": [other]})
