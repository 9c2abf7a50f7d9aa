"""Parsing of records into rows or dead letters with a reason."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines

from ottla import Producer

pytestmark = pytest.mark.timeout(300)
Send = Callable[..., None]
Read = Callable[[str], list[Any]]


def test_json_that_does_not_parse_goes_to_the_dead_letters_with_its_origin_and_the_reason(
    pipelines: Pipelines, cluster: Cluster, send: Send, read: Read
) -> None:
    topic = cluster.topic()
    send(topic, [{"id": 1, "price": 2.5}, b"not json", {"id": "x"}, b"", b"[1]", {"id": 2}])
    with Producer(cluster.servers) as producer:
        producer.send(topic, None, key=b"gone")
        producer.send(topic, b"{", key=b"k", headers=(("theirs", b"1"),))

    status = pipelines.run(f"""
        [source.orders]
        topics = "{topic}"
        schema = "id bigint, price double"
        dead_letters = "{topic}.dead"
        [sink.table]
        kind = "parquet"
        path = "table"
    """)

    assert status.state == "finished"
    assert sorted((row.id, row.price) for row in pipelines.rows()) == [(1, 2.5), (2, None)]
    assert pipelines.rows()[0].asDict().keys() == {"id", "price"}
    dead = {int(dict(record.headers)["ottla.offset"]): record for record in read(f"{topic}.dead")}
    reasons = {offset: dict(record.headers)["ottla.error"].decode() for offset, record in dead.items()}
    assert sorted(reasons) == [1, 2, 3, 4, 6, 7]
    assert reasons[1].startswith("not JSON: Expecting value")
    assert reasons[2] == 'id: "x" is not a valid bigint'
    assert reasons[4] == "not a JSON object: [1]"
    assert reasons[6] == "the record has no value"
    assert (dead[6].key, dead[6].value) == (b"gone", None)
    assert (dead[7].key, dead[7].value) == (b"k", b"{")
    assert dict(dead[7].headers)["theirs"] == b"1"
    assert dict(dead[7].headers)["ottla.topic"] == topic.encode()
    assert dict(dead[7].headers)["ottla.partition"] == b"0"
    assert dict(dead[7].headers)["ottla.pipeline"] == b"pipeline"


def test_csv_is_split_into_columns_and_a_schema_once_inferred_is_kept(
    pipelines: Pipelines, cluster: Cluster, send: Send, read: Read
) -> None:
    topic = cluster.topic()
    send(topic, [b"1;Prag;2.5", b"2;Wien;3"])
    text = f"""
        [source.orders]
        topics = "{topic}"
        format = "csv"
        options = {{sep = ";"}}
        dead_letters = "{topic}.dead"
        [sink.table]
        kind = "parquet"
        path = "table"
    """

    pipelines.run(text)
    # By these alone, the first column would be a text.
    send(topic, [b"x;Prag;1", b"3;Brno", b"4;Brno;1.5"])
    pipelines.run(text)

    rows = sorted((row.c0, row.c1, row.c2) for row in pipelines.rows())
    assert rows == [(1, "Prag", 2.5), (2, "Wien", 3.0), (4, "Brno", 1.5)]
    reasons = [dict(record.headers)["ottla.error"].decode() for record in read(f"{topic}.dead")]
    assert sorted(reasons) == ['c0: "x" is not a valid bigint', "has 2 columns, but the schema has 3"]
    pinned = json.loads((pipelines.folder / "pipeline.state" / "schemas.json").read_text())
    assert pinned == {"orders": "c0 bigint, c1 string, c2 double"}


SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "city", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}


def test_avro_is_read_plain_framed_and_as_a_container(
    pipelines: Pipelines, cluster: Cluster, send: Send, read: Read
) -> None:
    fastavro = pytest.importorskip("fastavro")
    topic = cluster.topic()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    orders = [
        {"id": number, "city": "Prag" if number else None, "at": at, "tags": ["a"] * number} for number in (0, 1, 2)
    ]

    def plain(order: dict[str, Any]) -> bytes:
        written = io.BytesIO()
        fastavro.schemaless_writer(written, SCHEMA, order)
        return written.getvalue()

    container = io.BytesIO()
    fastavro.writer(container, SCHEMA, [orders[2]])
    framed = b"\x00\x00\x00\x00\x07"
    send(topic, [framed + plain(orders[0]), framed + plain(orders[1]), container.getvalue(), b"\xff", framed + b"\xff"])

    pipelines.run(f"""
        [source.orders]
        topics = "{topic}"
        format = "avro"
        framing = "confluent"
        schema = '''{json.dumps(SCHEMA)}'''
        dead_letters = "{topic}.dead"
        [sink.table]
        kind = "parquet"
        path = "table"
    """)

    rows = sorted(pipelines.rows(), key=lambda row: row.id)
    assert [(row.id, row.city, row.tags) for row in rows] == [
        (0, None, []),
        (1, "Prag", ["a"]),
        (2, "Prag", ["a", "a"]),
    ]
    assert rows[0]["at"] == datetime(2026, 1, 1)  # noqa: DTZ001 - Spark's, in UTC
    dead = read(f"{topic}.dead")
    assert [record.value for record in dead] == [b"\xff", framed + b"\xff"]
    assert all(dict(record.headers)["ottla.error"].startswith(b"not Avro of this schema") for record in dead)


def test_raw_records_keep_their_bytes(pipelines: Pipelines, cluster: Cluster, send: Send) -> None:
    topic = cluster.topic()
    send(topic, [b"\x00\xff", b"two"])

    text = f"""
        [source.records]
        topics = "{topic}"
        format = "raw"
        [step.shown]
        sql = "SELECT value, _offset AS at FROM records"
        [sink.table]
        kind = "parquet"
        path = "table"
    """  # noqa: S608 - of our own
    pipelines.run(text)

    assert sorted((row["at"], bytes(row.value)) for row in pipelines.rows()) == [(0, b"\x00\xff"), (1, b"two")]
