"""The serializers of confluent-kafka-python write the same bytes and ids, and each side reads the other's."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaRegistryClient,
    header_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry import SchemaReference as ForeignReference
from confluent_kafka.schema_registry import avro as foreign_avro
from confluent_kafka.schema_registry import json_schema as foreign_json
from confluent_kafka.schema_registry import protobuf as foreign_protobuf
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.registry.test_confluent_clients import message_class

from ottla import schema as ours

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.schema import Registry

AVRO = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
  {"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": null},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "items", "type": {"type": "array", "items": {"type": "record", "name": "Item", "fields": [
    {"name": "name", "type": "string"}, {"name": "raw", "type": "bytes"}]}}},
  {"name": "by_name", "type": {"type": "map", "values": "double"}}]}"""
ORDER = {
    "id": -7,
    "note": "für",
    "at": dt.datetime(2026, 1, 2, 3, 4, 5, 6000, dt.UTC),
    "items": [{"name": "pen", "raw": b"\0\1"}],
    "by_name": {"a": 0.1},
}
JSON = """{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Order", "type": "object",
  "properties": {"id": {"type": "integer"}, "note": {"type": "string"}, "price": {"type": "number"}}}"""
DOCUMENT = {"id": 7, "note": "für\n", "price": 0.1, "more": [1, None, {"a": True}]}


@pytest.fixture
def foreign(registry: Registry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def protobuf_value() -> Any:
    value = message_class()(id=5, card="x", items=[{"name": "pen"}])
    value.at.seconds = 7
    return value


def pairs(kind: str, registry: Registry, foreign: SchemaRegistryClient, **conf: Any) -> tuple[Any, ...]:
    """Their serializer and deserializer, ours, and a value."""
    options: dict[str, Any] = {"ids": "header"} if conf else {}
    if kind == "avro":
        return (
            foreign_avro.AvroSerializer(foreign, AVRO, conf=conf),
            foreign_avro.AvroDeserializer(foreign),
            ours.AvroSerializer(registry, AVRO, **options),
            ours.AvroDeserializer(registry),
            ORDER,
        )
    if kind == "json":
        return (
            foreign_json.JSONSerializer(JSON, foreign, conf=conf),
            foreign_json.JSONDeserializer(None, schema_registry_client=foreign),
            ours.JsonSchemaSerializer(registry, JSON, **options),
            ours.JsonSchemaDeserializer(registry),
            DOCUMENT,
        )
    message = message_class()
    return (
        foreign_protobuf.ProtobufSerializer(message, foreign, {"use.deprecated.format": False, **conf}),
        foreign_protobuf.ProtobufDeserializer(message, {"use.deprecated.format": False}, foreign),
        ours.ProtobufSerializer(registry, message, **options),
        ours.ProtobufDeserializer(registry, message),
        protobuf_value(),
    )


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf"])
def test_the_same_bytes_and_each_reads_the_other(kind: str, registry: Registry, foreign: SchemaRegistryClient) -> None:
    write, read, our_write, our_read, value = pairs(kind, registry, foreign)
    context = SerializationContext(f"same-{kind}", MessageField.VALUE)
    theirs, our = write(value, context), our_write(value, topic=f"same-{kind}")
    assert our == theirs
    assert our_read(theirs) == read(our, context) == value
    assert registry.latest(f"same-{kind}-value").version == 1


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf"])
def test_the_same_headers(kind: str, registry: Registry, foreign: SchemaRegistryClient) -> None:
    conf = {"schema.id.serializer": header_schema_id_serializer}
    write, read, our_write, our_read, value = pairs(kind, registry, foreign, **conf)
    topic = f"headers-{kind}"
    context = SerializationContext(topic, MessageField.VALUE, [])
    theirs = write(value, context)
    our_write.prepare(topic, "value")
    our, headers = our_write.serialize(value, topic, "value", ())
    assert (our, list(headers)) == (theirs, context.headers)
    read_theirs = our_read(theirs, tuple(context.headers))
    assert read_theirs == read(our, SerializationContext(topic, MessageField.VALUE, list(headers))) == value


@pytest.mark.parametrize(
    ("strategy", "subjects"),
    [(record_subject_name_strategy, "record"), (topic_record_subject_name_strategy, "topic-record")],
)
def test_the_same_subjects(strategy: Any, subjects: Any, registry: Registry, foreign: SchemaRegistryClient) -> None:
    write = foreign_avro.AvroSerializer(foreign, AVRO, conf={"subject.name.strategy": strategy})
    theirs = write(ORDER, SerializationContext("subjects", MessageField.VALUE))
    lookup = ours.AvroSerializer(registry, AVRO, subjects=subjects, register=False)
    assert lookup(ORDER, topic="subjects") == theirs


@pytest.mark.parametrize(("text", "value"), [('"bytes"', b"\0raw"), ('"string"', "für"), ('["null","long"]', 5)])
def test_schemas_that_are_not_records(text: str, value: Any, registry: Registry, foreign: SchemaRegistryClient) -> None:
    topic = f"plain-{type(value).__name__}"
    context = SerializationContext(topic, MessageField.KEY)
    theirs = foreign_avro.AvroSerializer(foreign, text)(value, context)
    assert ours.AvroSerializer(registry, text)(value, topic, "key") == theirs
    assert ours.AvroDeserializer(registry)(theirs) == value


def test_references_of_theirs(registry: Registry, foreign: SchemaRegistryClient) -> None:
    foreign.register_schema("item", Schema('{"type":"record","name":"Part","fields":[]}', "AVRO"))
    text = '{"type":"record","name":"Whole","fields":[{"name":"a","type":"Part"},{"name":"b","type":"Part"}]}'
    schema = Schema(text, "AVRO", [ForeignReference("Part", "item", 1)])
    value = {"a": {}, "b": {}}
    theirs = foreign_avro.AvroSerializer(foreign, schema)(value, SerializationContext("whole", MessageField.VALUE))
    assert ours.AvroDeserializer(registry)(theirs) == value
