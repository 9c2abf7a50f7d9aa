"""Serializers with the registry of a test's broker."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import pydantic
import pytest

import ottla
from ottla.client.errors import SerializationFailed
from ottla.core.errors import ConfigError
from ottla.schema import (
    AnyDeserializer,
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    Reference,
    Registry,
    RegistryRefused,
    RegistryUnavailable,
    Schema,
    SchemaError,
)

if TYPE_CHECKING:
    from ottla.testing.ephemeral import EphemeralBroker

TEXT = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"long"}]}'
PROTO = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; repeated Item items = 2; google.protobuf.Timestamp at = 3; map<string, int32> n = 4;
  message Item { string name = 1; } }
message Refund { int64 id = 1; }
"""


@dataclass
class Order:
    id: int
    at: dt.datetime
    note: str | None = None
    tags: list[str] = field(default_factory=list)


class StructOrder(msgspec.Struct):
    id: int
    number: uuid.UUID
    note: str | None = None


class ModelOrder(pydantic.BaseModel):
    id: int
    at: dt.datetime
    parts: dict[str, float] = {}


AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678, dt.UTC)
VALUES = [
    Order(1, AT, "x", ["a"]),
    StructOrder(2, uuid.UUID(int=7)),
    ModelOrder(id=3, at=AT, parts={"a": 1.5}),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(
    ("serializer", "deserializer"),
    [(AvroSerializer, AvroDeserializer), (JsonSchemaSerializer, JsonSchemaDeserializer)],
    ids=["avro", "json"],
)
def test_a_type_gives_the_schema_and_comes_back(
    registry: Registry, value: Any, serializer: Any, deserializer: Any
) -> None:
    topic = f"{serializer.__name__}-{type(value).__name__}"
    data = serializer(registry, type(value))(value, topic=topic)
    assert deserializer(registry, type(value))(data) == value
    assert f"{topic}-value" in registry.subjects()


def test_producer_and_consumer(broker: EphemeralBroker, registry: Registry) -> None:
    with ottla.Producer(
        broker.bootstrap_servers, key_serializer=str.encode, value_serializer=AvroSerializer(registry, Order)
    ) as producer:
        for number in range(3):
            producer.send("typed", Order(number, AT), key="k")
        producer.send("typed", None, key="k")
    with ottla.Consumer(
        broker.bootstrap_servers,
        topics=["typed"],
        auto_offset_reset="earliest",
        value_deserializer=AvroDeserializer(Registry(registry.url), Order),
    ) as consumer:
        found = [record.value for record in read(consumer, 4)]
    assert found == [Order(0, AT), Order(1, AT), Order(2, AT), None]


def read(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        found += consumer.poll(timeout_ms=10_000)
    return found


@pytest.mark.parametrize("ids", ["prefix", "guid", "header"])
def test_an_async_producer_and_consumer_with_ids_of_each_kind(
    broker: EphemeralBroker, registry: Registry, ids: Any
) -> None:
    found = asyncio.run(round_trip(broker, registry, f"ids-{ids}", ids))
    assert [(each.key, each.value) for each in found] == [(f"k{n}", {"id": str(n)} if n else {}) for n in range(3)]
    names = [name for name, _ in found[0].headers]
    assert names == (["h", "__key_schema_id", "__value_schema_id"] if ids == "header" else ["h"])


async def round_trip(broker: EphemeralBroker, registry: Registry, topic: str, ids: Any) -> list[Any]:
    key, value = AvroSerializer(registry, '"string"', ids=ids), ProtobufSerializer(registry, PROTO, ids=ids)
    found: list[Any] = []
    async with ottla.Client(broker.bootstrap_servers) as client:
        async with client.producer(key_serializer=key, value_serializer=value) as producer:
            sent = [await producer.send(topic, {"id": n}, key=f"k{n}", headers=(("h", b"1"),)) for n in range(3)]
            await asyncio.gather(*sent)
        async with client.consumer(
            topic,
            auto_offset_reset="earliest",
            key_deserializer=AvroDeserializer(registry),
            value_deserializer=AnyDeserializer(registry),
        ) as consumer:
            while len(found) < 3:
                found += await consumer.poll(timeout_ms=10_000)
    return found


def test_a_deserializer_names_the_record_that_it_cannot_read(broker: EphemeralBroker, registry: Registry) -> None:
    good = AvroSerializer(registry, TEXT)({"id": 1}, topic="bad")
    with ottla.Producer(broker.bootstrap_servers) as producer:
        for value in (good, b"\0\0\0\x7f\xff1", good):
            producer.send("bad", value)
    with ottla.Consumer(
        broker.bootstrap_servers,
        topics=["bad"],
        auto_offset_reset="earliest",
        value_deserializer=AvroDeserializer(registry),
    ) as consumer:
        assert [each.value for each in read(consumer, 1)] == [{"id": 1}]
        with pytest.raises(SerializationFailed, match=r"bad-0 at offset 1.*no schema with id 32767"):
            consumer.poll(timeout_ms=10_000)
        consumer.seek(ottla.TopicPartition("bad", 0), 2)
        assert [each.value for each in read(consumer, 1)] == [{"id": 1}]


def test_a_producer_says_why_a_value_is_refused(broker: EphemeralBroker, registry: Registry) -> None:
    with ottla.Producer(broker.bootstrap_servers, value_serializer=AvroSerializer(registry, TEXT)) as producer:
        with pytest.raises(SerializationFailed, match=r"could not serialize a value for wrong: .*shop.Order"):
            producer.send("wrong", {"id": "seven"})
        producer.send("wrong", {"id": 7}).result()
    other = AvroSerializer(registry, '{"type":"record","name":"Order","namespace":"shop","fields":[]}', register=False)
    with (
        ottla.Producer(broker.bootstrap_servers, value_serializer=other) as producer,
        pytest.raises(SerializationFailed, match="40403"),
    ):
        producer.send("wrong", {})


def test_a_reader_with_another_version(registry: Registry) -> None:
    @dataclass
    class Newer:
        id: int
        note: str = "none"

    data = AvroSerializer(registry, TEXT)({"id": 4}, topic="versions")
    read = AvroDeserializer(registry, Newer)
    assert read(data) == Newer(4)
    wide = '{"type":"record","name":"Wide","fields":[{"name":"id","type":"int"},{"name":"more","type":"string"}]}'
    assert read(AvroSerializer(registry, wide)({"id": 5, "more": "x"}, topic="wide")) == Newer(5)


def test_the_latest_version_or_an_id_instead_of_a_schema(registry: Registry) -> None:
    made = registry.register("use-value", Schema(TEXT))
    latest, by_id = AvroSerializer(registry, use="latest"), AvroSerializer(registry, use=made.id)
    assert latest({"id": 1}, topic="use") == by_id({"id": 1}, topic="anything")
    with pytest.raises(RegistryRefused, match="40401"):
        latest({"id": 1}, topic="nothing")
    with pytest.raises(ConfigError, match="give a schema"):
        AvroSerializer(registry)({"id": 1}, topic="use")


def test_normalized_schemas_are_one(registry: Registry) -> None:
    spaced = TEXT.replace('"name":"Order","namespace":"shop"', '"namespace":"shop","name":"Order","aliases":["b","a"]')
    swapped = spaced.replace('["b","a"]', '["a","b"]')
    first, second = (
        AvroSerializer(registry, each, normalize=True)({"id": 1}, topic="normal") for each in (spaced, swapped)
    )
    assert first == second
    assert AvroSerializer(registry, swapped)({"id": 1}, topic="plain")


@pytest.mark.parametrize(("subjects", "expected"), [("record", "shop.Order"), ("topic-record", "subj-shop.Order")])
def test_subject_name_strategies(registry: Registry, subjects: Any, expected: str) -> None:
    for serializer in (AvroSerializer(registry, TEXT, subjects=subjects),):
        serializer({"id": 1}, topic="subj")
    assert expected in registry.subjects()


def test_references_between_avro_schemas(registry: Registry) -> None:
    item = '{"type":"record","name":"Item","namespace":"shop","fields":[{"name":"n","type":"string"}]}'
    registry.register("item", Schema(item))
    order = '{"type":"record","name":"Basket","fields":[{"name":"items","type":{"type":"array","items":"shop.Item"}}]}'
    schema = Schema(order, references=(Reference("shop.Item", "item", 1),))
    value = {"items": [{"n": "pen"}]}
    data = AvroSerializer(registry, schema, subjects="record")(value)
    assert AvroDeserializer(Registry(registry.url))(data) == value


def test_json_is_validated(registry: Registry) -> None:
    schema = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    serialize = JsonSchemaSerializer(registry, schema)
    with pytest.raises(SchemaError, match=r"at \$\.id: 'x' is not of type 'integer'"):
        serialize({"id": "x"}, topic="valid")
    lax = JsonSchemaSerializer(registry, schema, validate=False)
    data = lax({"id": "x"}, topic="valid")
    with pytest.raises(SchemaError, match="not valid by the JSON Schema"):
        JsonSchemaDeserializer(registry)(data)
    assert JsonSchemaDeserializer(registry, validate=False)(data) == {"id": "x"}


def test_json_references(registry: Registry) -> None:
    registry.register("item-json", Schema('{"type":"object","required":["n"]}', "JSON"))
    schema = Schema(
        '{"title":"B","properties":{"i":{"$ref":"item.json"}}}', "JSON", (Reference("item.json", "item-json", 1),)
    )
    serialize = JsonSchemaSerializer(registry, schema)
    assert JsonSchemaDeserializer(registry)(serialize({"i": {"n": 1}}, topic="refs")) == {"i": {"n": 1}}
    with pytest.raises(SchemaError, match="'n' is a required property"):
        serialize({"i": {}}, topic="refs")


def test_protobuf_by_text(registry: Registry) -> None:
    value = {"id": "5", "items": [{"name": "pen"}], "at": "2026-01-01T00:00:00Z", "n": {"a": 1}}
    data = ProtobufSerializer(registry, PROTO)(value, topic="proto")
    assert data[5] == 0
    assert AnyDeserializer(registry)(data) == value
    assert ProtobufDeserializer(registry)(data).items[0].name == "pen"
    nested = ProtobufSerializer(registry, PROTO, message="shop.Order.Item")({"name": "pen"}, topic="proto")
    assert nested[5:8] == b"\4\0\0"
    assert AnyDeserializer(registry)(nested) == {"name": "pen"}
    with pytest.raises(SchemaError, match=r"no message shop.No in the Protobuf schema \(it has shop.Order, "):
        ProtobufSerializer(registry, PROTO, message="shop.No")({}, topic="proto")
    with pytest.raises(SchemaError, match=r"does not fit shop\.Order"):
        ProtobufSerializer(registry, PROTO)({"nothing": 1}, topic="proto")


def test_a_schema_of_another_type_is_refused(registry: Registry) -> None:
    data = ProtobufSerializer(registry, PROTO)({"id": 1}, topic="kinds")
    with pytest.raises(SchemaError, match="is PROTOBUF, not AVRO"):
        AvroDeserializer(registry)(data)


def test_a_schema_is_asked_for_once(registry: Registry) -> None:
    data = AvroSerializer(registry, TEXT)({"id": 1}, topic="cached")
    fresh = Registry(registry.url)
    read = AvroDeserializer(fresh)
    assert read(data) == {"id": 1}
    fresh.connection = None
    assert read(data) == {"id": 1}


def test_a_registry_that_is_not_there() -> None:
    with pytest.raises(RegistryUnavailable, match=r"cannot reach the schema registry at http://127.0.0.1:1"):
        AvroSerializer("http://127.0.0.1:1", TEXT)({"id": 1}, topic="t")


def test_a_consumer_goes_on_once_the_registry_is_back(broker: EphemeralBroker, registry: Registry) -> None:
    with ottla.Producer(broker.bootstrap_servers, value_serializer=AvroSerializer(registry, TEXT)) as producer:
        producer.send("away", {"id": 1})
    deserializer = AvroDeserializer("http://127.0.0.1:1")
    with ottla.Consumer(
        broker.bootstrap_servers, topics=["away"], auto_offset_reset="earliest", value_deserializer=deserializer
    ) as consumer:
        with pytest.raises(SerializationFailed, match=r"away-0 at offset 0: cannot reach.*the next call tries again"):
            read(consumer, 1)
        deserializer.registry = registry
        assert read(consumer, 1)[0].value == {"id": 1}


def test_wrong_options_are_refused(registry: Registry) -> None:
    with pytest.raises(ConfigError, match="unknown option 'subject'"):
        AvroSerializer(registry, TEXT, subject="x")
    with pytest.raises(ConfigError, match="ids must be prefix, guid or header, got 'id'"):
        AvroSerializer(registry, TEXT, ids="id")
    with pytest.raises(ConfigError, match="unknown option 'user'"):
        Registry(registry.url, user="x")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="invalid registry URL"):
        Registry("ftp://x")
    with pytest.raises(SchemaError, match="not valid"):
        AvroSerializer(registry, '{"type":"recorf"}')
    with pytest.raises(ConfigError, match="expected a message class"):
        ProtobufSerializer(registry, Order)
