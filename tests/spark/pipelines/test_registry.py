"""Records with schema ids: sources, sinks, and column functions."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines

import ottla.testing
from ottla.core.errors import ConfigError
from ottla.schema import AnyDeserializer, AvroSerializer, JsonSchemaSerializer, ProtobufSerializer, Registry, Schema
from ottla.spark.pipelines.running import PipelineFailed

pytestmark = pytest.mark.timeout(300)
Send = Callable[..., None]
Read = Callable[[str], list[Any]]

FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "city", "type": ["null", "string"], "default": None},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "counts", "type": {"type": "map", "values": "int"}},
    {"name": "shop", "type": {"type": "record", "name": "Shop", "fields": [{"name": "name", "type": "string"}]}},
]
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


def avro(*more: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": [*FIELDS, *more]})


def order(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "city": "Prag" if number % 2 else None,
        "at": AT,
        "day": date(2026, 1, 2),
        "price": Decimal("1.50"),
        "tags": ["a"] * number,
        "counts": {"x": number},
        "shop": {"name": "main"},
        **more,
    }


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with ottla.testing.broker() as broker:
        yield Registry(broker.schema_registry_url)


def test_a_newer_schema_in_the_middle_of_a_stream_adds_its_columns(
    pipelines: Pipelines, cluster: Cluster, send: Send, read: Read, registry: Registry
) -> None:
    topic = cluster.topic()
    old = AvroSerializer(registry, avro())
    send(topic, [old(order(1), topic), b"plain", b"\0\0\0\x7f\xffx", old(order(2), topic) + b"more"])
    text = f"""
        [source.orders]
        topics = "{topic}"
        format = "avro"
        registry = "{registry.url}"
        max_per_batch = 4
        dead_letters = "{topic}.dead"
        [sink.table]
        kind = "parquet"
        path = "table"
    """
    lines: list[str] = []
    pipelines.run(text)
    settled = pipelines.load(text)
    # Registered while the pipeline runs: its columns are those of the version before.
    from ottla.spark.pipelines.preparing import with_schemas
    from ottla.spark.pipelines.state_folder import StateFolder

    before = with_schemas(settled, StateFolder(settled.state))
    new = AvroSerializer(registry, avro({"name": "note", "type": "string", "default": "none"}))
    send(topic, [old(order(3), topic), new(order(4, note="new"), topic), old(order(5), topic)])
    status = pipelines.run_loaded(before, say=lines.append)

    assert status.state == "finished"
    assert any("note" in line and "restarting it" in line for line in lines), lines
    rows = {
        row.id: row
        for row in pipelines.spark.read.option("mergeSchema", "true").parquet(str(pipelines.folder / "table")).collect()
    }
    assert sorted(rows) == [1, 3, 4, 5]
    assert [rows[number].note for number in (1, 3, 4, 5)] == [None, "none", "new", "none"]
    row = rows[3]
    assert (row.city, row.day, row.price, row.tags) == ("Prag", date(2026, 1, 2), Decimal("1.50"), ["a"] * 3)
    assert (row.counts, row.shop.name, row.at.astimezone(UTC)) == ({"x": 3}, "main", AT)
    reasons = [dict(record.headers)["ottla.error"].decode() for record in read(f"{topic}.dead")]
    assert len(reasons) == 3
    assert any("no schema id: expected a byte of 0" in each for each in reasons)
    assert any("no schema with id 32767" in each for each in reasons)
    assert any("4 bytes are left over" in each for each in reasons)


def test_a_table_that_may_not_change_stops_the_pipeline_with_the_field(
    pipelines: Pipelines, cluster: Cluster, send: Send, registry: Registry
) -> None:
    topic = cluster.topic()
    send(topic, [AvroSerializer(registry, avro())(order(1), topic)])
    text = f"""
        [source.orders]
        topics = "{topic}"
        format = "avro"
        registry = "{registry.url}"
        [sink.table]
        kind = "parquet"
        path = "table"
        evolution = "strict"
    """
    pipelines.run(text)
    send(
        topic,
        [AvroSerializer(registry, avro({"name": "note", "type": "string", "default": ""}))(order(2, note="x"), topic)],
    )
    with pytest.raises((ConfigError, PipelineFailed), match="note"):
        pipelines.run(text)


def test_a_newer_json_schema_in_the_middle_of_a_stream_adds_its_columns(
    pipelines: Pipelines, cluster: Cluster, send: Send, registry: Registry
) -> None:
    from ottla.spark.pipelines.preparing import with_schemas
    from ottla.spark.pipelines.state_folder import StateFolder

    def document(*names: str) -> JsonSchemaSerializer[Any]:
        properties = {name: {"type": "string"} for name in names}
        return JsonSchemaSerializer(
            registry, {"type": "object", "properties": properties, "additionalProperties": False}
        )

    topic = cluster.topic()
    old = document("id")
    send(topic, [old({"id": "1"}, topic)])
    text = f"""
        [source.orders]
        topics = "{topic}"
        registry = "{registry.url}"
        [sink.table]
        kind = "parquet"
        path = "table"
    """
    pipelines.run(text)
    settled = pipelines.load(text)
    before = with_schemas(settled, StateFolder(settled.state))
    send(topic, [old({"id": "2"}, topic), document("id", "note")({"id": "3", "note": "new"}, topic)])
    lines: list[str] = []
    assert pipelines.run_loaded(before, say=lines.append).state == "finished"
    assert any("note" in line and "restarting it" in line for line in lines), lines
    table = pipelines.spark.read.option("mergeSchema", "true").parquet(str(pipelines.folder / "table"))
    assert sorted((row.id, row.note) for row in table.collect()) == [("1", None), ("2", None), ("3", "new")]


PROTO = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; optional string city = 2; repeated Item items = 3; google.protobuf.Timestamp at = 4;
  map<string, int32> counts = 5; Kind kind = 6;
  message Item { string name = 1; double price = 2; } enum Kind { WEB = 0; SHOP = 1; } }
"""
JSON = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "city-name": {"type": ["null", "string"]},
        "at": {"type": "string", "format": "date-time"},
        "items": {"type": "array", "items": {"$ref": "#/definitions/item"}},
    },
    "definitions": {"item": {"type": "object", "properties": {"price": {"type": "number"}}}},
}


def test_protobuf_and_json_sources_and_an_avro_sink(
    pipelines: Pipelines, cluster: Cluster, send: Send, read: Read, registry: Registry
) -> None:
    proto_topic, json_topic, out = cluster.topic(), cluster.topic(), cluster.topic()
    proto, document = ProtobufSerializer(registry, PROTO), JsonSchemaSerializer(registry, JSON)
    items = [{"name": "pen", "price": 1.5}]
    value = {"id": 1, "items": items, "at": AT.isoformat(), "counts": {"a": 2}, "kind": "SHOP"}
    send(proto_topic, [proto(value, proto_topic)])
    at = AT.isoformat()
    send(
        json_topic,
        [document({"id": 1, "city-name": "Prag", "at": at, "items": [{"price": 2}]}, json_topic), b"\0\0\0\0\1{"],
    )
    text = f"""
        [source.protos]
        topics = "{proto_topic}"
        format = "protobuf"
        registry = "{registry.url}"
        [source.documents]
        topics = "{json_topic}"
        registry = "{registry.url}"
        dead_letters = "{json_topic}.dead"
        [step.joined]
        sql = "SELECT id, city, kind, at, counts, items[0].price AS price FROM protos"
        [step.documents_too]
        sql = "SELECT id, `city-name` AS city, at, items[0].price AS price FROM documents"
        [sink.avro]
        kind = "topic"
        from = "joined"
        topic = "{out}"
        format = "avro"
        registry = "{registry.url}"
        [sink.json]
        kind = "topic"
        from = "documents_too"
        topic = "{out}-json"
        registry = "{registry.url}"
    """  # noqa: S608 - no SQL of a user
    pipelines.run(text)
    reader = AnyDeserializer(registry)
    [written] = read(out)
    expected = {"id": 1, "city": None, "kind": "SHOP", "at": AT, "counts": {"a": 2}, "price": 1.5}
    assert reader(written.value) == expected
    [written] = read(f"{out}-json")
    found = reader(written.value)
    assert (found["id"], found["city"], found["price"]) == (1, "Prag", 2.0)
    assert registry.latest(f"{out}-json-value").schema.type == "JSON"
    [dead] = read(f"{json_topic}.dead")
    assert dict(dead.headers)["ottla.error"].startswith(b"not JSON")


def test_column_functions(cluster: Cluster, pipelines: Pipelines, send: Send, registry: Registry) -> None:
    from ottla.spark.registry import from_registry, to_registry

    topic = cluster.topic()
    first = AvroSerializer(registry, avro())(order(1), topic)
    second = AvroSerializer(registry, avro({"name": "note", "type": "string", "default": "-"}))(
        order(2, note="x"), topic
    )
    send(topic, [first, second, b"bad"])
    frame = cluster.read(pipelines.spark, topic)
    subject = f"{topic}-value"
    rows = frame.select(from_registry("value", registry, subject, mode="PERMISSIVE").alias("row")).select("row.*")
    assert [(row.id, row.note) for row in rows.orderBy("id").collect()] == [(None, None), (1, "-"), (2, "x")]
    with pytest.raises(Exception, match=r'no schema id.*mode="PERMISSIVE"'):
        frame.select(from_registry("value", registry.url, subject)).collect()

    good = rows.where("id IS NOT NULL").select("id", "city", "shop")
    for kind in ("avro", "json"):
        [one, two] = good.orderBy("id").select(to_registry(good, registry, f"{topic}-{kind}", format=kind)).collect()
        assert AnyDeserializer(registry)(bytes(one[0]))["shop"] == {"name": "main"}, kind
        assert AnyDeserializer(registry)(bytes(two[0]))["id"] == 2
    registry.register(
        f"{topic}-proto", Schema('syntax = "proto3"; message R { int64 id = 1; string city = 2; }', "PROTOBUF")
    )
    narrow = good.select("id", "city")
    as_proto = to_registry(narrow, registry, f"{topic}-proto", format="protobuf", register=False)
    assert AnyDeserializer(registry)(bytes(narrow.orderBy("id").select(as_proto).collect()[0][0])) == {
        "id": "1",
        "city": "Prag",
    }
    with pytest.raises(ConfigError, match="no Protobuf field numbers"):
        to_registry(narrow, registry, "x", format="protobuf")
    with pytest.raises(ConfigError, match=r"40401.*subject nothing"):
        from_registry("value", registry, "nothing")


def test_the_source_decodes_values(cluster: Cluster, pipelines: Pipelines, send: Send, registry: Registry) -> None:
    topic = cluster.topic()
    serializer = AvroSerializer(registry, avro())
    send(topic, [serializer(order(1), topic), serializer(order(2), topic)])
    frame = cluster.read(pipelines.spark, topic, registry=registry.url)
    assert [(row.offset, row.id) for row in frame.select("offset", "value.id").collect()] == [(0, 1), (1, 2)]
    stream = cluster.reader(
        pipelines.spark.readStream, subscribe=topic, registry=registry.url, startingOffsets="earliest"
    ).load()
    query = stream.select("value.id", "value.shop.name").writeStream.format("memory").queryName("decoded")
    query.trigger(availableNow=True).start().awaitTermination()
    assert sorted(row.id for row in pipelines.spark.table("decoded").collect()) == [1, 2]
    send(topic, [b"bad"])
    permissive = cluster.read(pipelines.spark, topic, registry=registry.url, mode="permissive")
    assert [row.id for row in permissive.select("value.id").collect()] == [1, 2, None]
    with pytest.raises(Exception, match=r"no schema id.*set option mode to PERMISSIVE"):
        cluster.read(pipelines.spark, topic, registry=registry.url).collect()


def test_the_sink_encodes_values(cluster: Cluster, pipelines: Pipelines, read: Read, registry: Registry) -> None:
    rows = pipelines.spark.sql(
        "SELECT 'k' AS key, named_struct('id', id, 'price', CAST(1.5 AS DECIMAL(8, 2)), 'tags', array('a')) AS value "
        "FROM range(2)"
    )
    topic = cluster.topic()
    sink = {"kafka.bootstrap.servers": cluster.servers, "topic": topic, "registry": registry.url}
    rows.coalesce(1).write.format("ottla").options(**sink).mode("append").save()
    written = [AnyDeserializer(registry)(each.value) for each in read(topic)]
    assert written == [{"id": number, "price": Decimal("1.50"), "tags": ["a"]} for number in (0, 1)]
    assert registry.latest(f"{topic}-value").schema.type == "AVRO"
    # The source reads these rows, and a stream writes them again as Protobuf, with a registered schema.
    subject = f"{topic}-proto"
    registry.register(subject, Schema('syntax = "proto3"; message R { int64 id = 1; }', "PROTOBUF"))
    stream = cluster.reader(
        pipelines.spark.readStream, subscribe=topic, registry=registry.url, startingOffsets="earliest"
    ).load()
    more = {"topic": cluster.topic(), "subject": subject, "valueFormat": "protobuf", "register": "false"}
    query = stream.selectExpr("named_struct('id', value.id) AS value").writeStream.format("ottla")
    query = query.options(**{**sink, **more}).option("checkpointLocation", str(pipelines.folder / "sink-checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    found = [AnyDeserializer(registry)(each.value) for each in read(more["topic"])]
    assert sorted(each.get("id", "0") for each in found) == ["0", "1"]


def test_keys_and_json_go_through_the_sink_and_the_source(
    cluster: Cluster, pipelines: Pipelines, read: Read, registry: Registry
) -> None:
    topic = cluster.topic()
    rows = pipelines.spark.sql(
        "SELECT named_struct('shop', 'main') AS key, named_struct('id', id, 'note', IF(id = 0, NULL, 'x')) AS value "
        "FROM range(2)"
    )
    sink = {"kafka.bootstrap.servers": cluster.servers, "topic": topic, "registry": registry.url, "valueFormat": "json"}
    rows.coalesce(1).write.format("ottla").options(**sink).mode("append").save()
    [first, second] = read(topic)
    assert AnyDeserializer(registry)(first.key) == {"shop": "main"}
    assert (first.value[5:], second.value[5:]) == (b'{"id":0}', b'{"id":1,"note":"x"}')
    types = [registry.latest(f"{topic}-{part}").schema.type for part in ("key", "value")]
    assert types == ["AVRO", "JSON"]
    frame = cluster.read(pipelines.spark, topic, registry=registry.url, keySubject=f"{topic}-key")
    found = frame.select("key.shop", "value.id", "value.note").orderBy("id").collect()
    assert [tuple(row) for row in found] == [("main", 0, None), ("main", 1, "x")]


def test_the_documented_example(cluster: Cluster, pipelines: Pipelines, send: Send, registry: Registry) -> None:
    page = (Path(__file__).parents[3] / "docs" / "schema-registry.md").read_text()
    code = re.findall(r"```python\n(.*?)```", page[page.index("## Spark") :], re.DOTALL)[0]
    topic = cluster.topic()
    send(topic, [AvroSerializer(registry, avro(), subjects=lambda *_: "orders-value")(order(1), topic)])
    code = code.replace("http://localhost:8080/schema-registry", registry.url)
    code = code.replace("localhost:9092", cluster.servers).replace('"subscribe", "orders"', f'"subscribe", "{topic}"')
    names: dict[str, Any] = {"spark": pipelines.spark}
    exec(code, names)  # noqa: S102
    [row] = names["copies"].collect()
    assert AnyDeserializer(registry)(bytes(row.value))["id"] == 1
