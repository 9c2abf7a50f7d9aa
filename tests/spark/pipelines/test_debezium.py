"""Change events of Debezium in all their forms: upserts and deletes of rows, by key."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines
from tests.spark.pipelines.test_evolution import rows_of

from ottla import Producer
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.changes.debezium import DebeziumFault, is_envelope, rows_in
from ottla.spark.pipelines.definition import Source
from ottla.spark.pipelines.formats.debezium_records import DebeziumFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SCHEMA = "id bigint, name string, tags array<string>"
RAW = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)


def envelope(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op, "ts_ms": 2000, "source": {"ts_ms": 1000, "lsn": 7}}


def wrapped(content: Any) -> dict[str, Any]:
    return {"schema": {"type": "struct", "optional": False}, "payload": content}


def flat(row: dict[str, Any], deleted: str = "false") -> dict[str, Any]:
    return {**row, "__deleted": deleted, "__op": "d" if deleted == "true" else "u", "__source_ts_ms": 1000}


def as_bytes(content: Any) -> bytes | None:
    return None if content is None else json.dumps(content).encode()


ANN, BOB = {"id": 1, "name": "Ann", "tags": ["a"]}, {"id": 2, "name": "Bob", "tags": None}
FULL: list[tuple[Any, Any]] = [
    ({"id": 1}, envelope("r", after=ANN)),
    ({"id": 2}, envelope("c", after=BOB)),
    ({"id": 2}, envelope("u", before=BOB, after={**BOB, "name": "Bo"})),
    ({"id": 2}, envelope("d", before={"id": 2, "name": None, "tags": None})),
    ({"id": 2}, None),
]
FLAT: list[tuple[Any, Any]] = [
    ({"id": 1}, flat(ANN)),
    ({"id": 2}, flat(BOB)),
    ({"id": 2}, flat({**BOB, "name": "Bo"})),
    ({"id": 2}, flat({**BOB, "name": "Bo"}, "true")),
    ({"id": 2}, None),
]
CHANGES = [(1, "Ann", False), (2, "Bob", False), (2, "Bo", False), (2, None, True), (2, None, True)]


def with_schemas(records: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [(wrapped(key), None if value is None else wrapped(value)) for key, value in records]


FORMS = {
    "an envelope": (False, FULL),
    "an envelope with its schema": (False, with_schemas(FULL)),
    "flattened": (True, FLAT),
    "flattened with its schema": (True, with_schemas(FLAT)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_change_is_an_upsert_or_a_delete_of_its_row(spark: "SparkSession", form: str) -> None:
    from ottla.spark.pipelines.parsing import bad_rows, good_rows

    flattened, records = FORMS[form]
    source = Source(name="c", topics=("c",), format=DebeziumFormat(flattened=flattened), schema=SCHEMA, nulls="delete")
    rows = [(as_bytes(key), as_bytes(value), "c", 0, offset, None, None) for offset, (key, value) in enumerate(records)]
    raw = spark.createDataFrame(rows, RAW)

    found = good_rows(raw, source).orderBy("_offset").collect()

    # A flattened delete has the old row, an envelope what the source kept of it: only the key counts.
    assert [(row.id, row.name if not row._deleted else None, row._deleted) for row in found] == CHANGES
    assert [row._op for row in found][-1] == "d"
    assert found[0].tags == ["a"]
    assert found[0]._changed_at.timestamp() == 1
    assert bad_rows(raw, source, "shop").count() == 0


@pytest.mark.parametrize("is_flattened", [False, True])
def test_a_change_with_an_event_time_far_ahead_is_a_dead_letter_and_a_delete_of_its_row_is_not(
    spark: "SparkSession", is_flattened: bool
) -> None:
    from ottla.spark.pipelines.parsing import bad_rows, good_rows

    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    soon, far = ({"id": key, "at": at} for key, at in ((1, "2026-01-01T12:30:00Z"), (2, "2099-01-01T00:00:00Z")))
    full = [envelope("c", after=soon), envelope("u", after=far), envelope("d", before=far)]
    values = [flat(soon), flat(far), flat(far, "true")] if is_flattened else full
    source = Source(
        name="c",
        topics=("c",),
        format=DebeziumFormat(flattened=is_flattened),
        schema="id bigint, at timestamp",
        nulls="delete",
        event_time="at",
        max_event_time_ahead_ms=3_600_000,
    )
    rows = [(None, as_bytes(value), "c", 0, offset, noon, None) for offset, value in enumerate(values)]
    raw = spark.createDataFrame(rows, RAW)

    assert [(row.id, row._deleted) for row in good_rows(raw, source).orderBy("_offset").collect()] == [
        (1, False),
        (2, True),
    ]
    [bad] = bad_rows(raw, source, "shop").collect()
    assert (
        b"at: 2099-01-01T00:00:00Z is more than 3600 s ahead"
        in {each.key: each.value for each in bad.headers}["ottla.error"]
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (envelope("t"), "the table was truncated at its source; its rows are not deleted here"),
        (envelope("m"), "op 'm' is not a change of a row"),
        (envelope("u"), "op 'u' without after"),
        ({"id": 1}, "it has no op (for flattened records set flattened = true)"),
        (wrapped(envelope("c", after={"id": "one"})), 'after: id: "one" is not a valid bigint'),
        ("no", 'not a JSON object: "no"'),
    ],
)
def test_an_event_that_is_not_a_row_change_is_a_dead_letter_with_the_reason(content: Any, reason: str) -> None:
    assert reason in DebeziumFault(SCHEMA, is_flattened=False)(as_bytes(content), ["id", "name", "tags"])


def test_a_schema_is_inferred_from_the_rows_in_the_envelopes() -> None:
    values = [as_bytes(value) for _, value in with_schemas(FULL)]
    assert DebeziumFormat().infer(values, 1000) == SCHEMA
    assert rows_in([as_bytes(flat({"id": 1}))], is_flattened=True) == [b'{"id": 1}']
    assert [is_envelope(value) for value in (*values[:1], b'{"id": 1}', None)] == [True, False, False]


FILE = """
[source.customers]
topics = "{topic}"
format = "debezium"
schema = "id bigint, name string"
{more}
[sink.delta]
kind = "delta"
path = "delta"
key = "id"
[sink.iceberg]
kind = "iceberg"
path = "warehouse"
table = "shop.customers"
key = "id"
[sink.lite]
kind = "sqlite"
path = "shop.db"
table = "customers"
key = "id"
"""


def test_a_table_follows_its_source_and_a_truncation_is_a_dead_letter(
    pipelines: Pipelines, cluster: Cluster, read: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    topic = cluster.topic()
    file = FILE.format(topic=topic, more="")

    def write(records: list[tuple[Any, Any]]) -> None:
        with Producer(cluster.servers) as producer:
            for key, value in records:
                producer.send(topic, as_bytes(value), key=as_bytes(key))

    write([({"id": key}, envelope("r", after={"id": key, "name": f"n{key}"})) for key in range(5)])
    assert pipelines.run(file).state == "finished"
    write(
        [
            ({"id": 1}, envelope("u", after={"id": 1, "name": "new"})),
            ({"id": 2}, envelope("d", before={"id": 2, "name": "n2"})),
            ({"id": 2}, None),
            (wrapped({"id": 3}), None),
            (None, envelope("d", before={"id": 4, "name": "n4"})),
            ({"id": 2}, envelope("c", after={"id": 2, "name": "again"})),
            (None, envelope("t")),
        ]
    )
    assert pipelines.run(file).state == "finished"

    expected = [(0, "n0"), (1, "new"), (2, "again")]
    loaded = pipelines.load(file)
    for kind in ("delta", "iceberg"):
        assert [(row["id"], row["name"]) for row in rows_of(loaded.sinks[kind])] == expected
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        assert database.execute("SELECT id, name FROM customers ORDER BY id").fetchall() == expected
    [dead] = read("pipeline.dead-letters")
    assert b"truncated" in dict(dead.headers)["ottla.error"]

    for more, said in (
        ('nulls = "keep"', "nulls: is delete or skip for records of Debezium"),
        ('key = "idd"', "key: there is no column idd; did you mean id"),
    ):
        with pytest.raises(ConfigError, match=said):
            pipelines.load(FILE.format(topic=topic, more=more))


@pytest.mark.parametrize("sink", ["parquet", "delta", "iceberg", "topic", "sqlite", "console"])
def test_init_recognises_change_events_and_writes_a_file_that_is_valid(sink: str, tmp_path: Path) -> None:
    from ottla.spark.pipelines.example import example
    from ottla.spark.pipelines.loading import parse_pipeline

    text = example("customers", "localhost:9092", [as_bytes(value) for _, value in FULL], sink, "customers")
    pipeline = parse_pipeline(text, tmp_path / "customers.toml", {})

    assert pipeline.sources["customers"].format.name == "debezium"
    assert pipeline.sources["customers"].schema == SCHEMA
    assert pipeline.sinks[sink].changes.key == (() if sink in ("parquet", "console") else ("id",))
    assert "_deleted" in (pipeline.steps[0].sql or "")
