"""confluent-kafka-python's registry client and serializers against the registry of a test's broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

import ottla.testing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.testing.ephemeral import EphemeralBroker

AVRO = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
JSON = '{"$schema":"http://json-schema.org/draft-07/schema#","title":"Order","type":"object","properties":{"id":{"type":"integer"}}}'


@pytest.fixture(scope="module")
def broker() -> Iterator[EphemeralBroker]:
    with ottla.testing.broker() as broker:
        yield broker


@pytest.fixture
def registry(broker: EphemeralBroker) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": broker.schema_registry_url}) as client:
        yield client


def round_trip(serialize: Any, deserialize: Any, topic: str, value: Any) -> Any:
    context = SerializationContext(topic, MessageField.VALUE)
    return deserialize(serialize(value, context), context)


def test_avro_serializers(registry: SchemaRegistryClient) -> None:
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

    serialize, deserialize = AvroSerializer(registry, AVRO), AvroDeserializer(registry)
    assert round_trip(serialize, deserialize, "avro", {"id": 7}) == {"id": 7}
    assert registry.get_latest_version("avro-value").schema.schema_str == AVRO


def test_json_serializers(registry: SchemaRegistryClient) -> None:
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer

    serialize, deserialize = JSONSerializer(JSON, registry), JSONDeserializer(None, schema_registry_client=registry)
    assert round_trip(serialize, deserialize, "json", {"id": 7}) == {"id": 7}


def message_class() -> Any:
    """A message with a nested one, a map, a oneof and an import, as protoc would generate it."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2  # noqa: F401

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    message = file.message_type.add(name="Order")
    message.nested_type.add(name="Item").field.add(name="name", number=1, label=1, type=kinds.TYPE_STRING)
    message.field.add(name="id", number=1, label=1, type=kinds.TYPE_INT64)
    message.field.add(name="items", number=2, label=3, type=kinds.TYPE_MESSAGE, type_name=".shop.Order.Item")
    at = ".google.protobuf.Timestamp"
    message.field.add(name="at", number=3, label=1, type=kinds.TYPE_MESSAGE, type_name=at)
    message.oneof_decl.add(name="paid")
    message.field.add(name="card", number=4, label=1, type=kinds.TYPE_STRING, oneof_index=0)
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf_serializers(registry: SchemaRegistryClient, broker: EphemeralBroker) -> None:
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer

    kind = message_class()
    value = kind(id=5, card="x", items=[{"name": "pen"}])
    value.at.seconds = 7
    serialize = ProtobufSerializer(kind, registry, {"use.deprecated.format": False})
    deserialize = ProtobufDeserializer(kind, {"use.deprecated.format": False}, registry)
    assert round_trip(serialize, deserialize, "protobuf", value) == value
    with SchemaRegistryClient({"url": broker.schema_registry_url}) as other:
        fresh = ProtobufDeserializer(kind, {"use.deprecated.format": False}, other)
        assert round_trip(serialize, fresh, "protobuf", value) == value


def test_every_request_of_the_client_works(registry: SchemaRegistryClient) -> None:
    made = registry.register_schema("asked", Schema(AVRO, "AVRO"))
    assert registry.get_schema(made).schema_str == AVRO
    assert registry.lookup_schema("asked", Schema(AVRO, "AVRO")).version == 1
    assert "asked" in registry.get_subjects()
    assert registry.get_versions("asked") == [1]
    assert registry.get_version("asked", 1).schema_id == made
    assert registry.test_compatibility("asked", Schema(AVRO, "AVRO"))
    assert not registry.test_compatibility("asked", Schema('"int"', "AVRO"))
    registry.set_compatibility("asked", "FULL")
    assert registry.get_compatibility("asked") == "FULL"
    with pytest.raises(SchemaRegistryError) as refused:
        registry.register_schema("asked", Schema('"int"', "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 40901)
    assert registry.delete_version("asked", 1) == 1
    assert registry.delete_subject("asked", permanent=True) == [1]
    with pytest.raises(SchemaRegistryError) as missing:
        registry.get_versions("asked")
    assert missing.value.error_code == 40401


def test_the_asynchronous_client_and_serializer(broker: EphemeralBroker) -> None:
    from confluent_kafka.schema_registry import AsyncSchemaRegistryClient
    from confluent_kafka.schema_registry._async.avro import AsyncAvroDeserializer, AsyncAvroSerializer

    async def play() -> None:
        async with AsyncSchemaRegistryClient({"url": broker.schema_registry_url}) as client:
            made = await client.register_schema("later", Schema(AVRO, "AVRO"))
            assert (await client.get_schema(made)).schema_str == AVRO
            assert (await client.lookup_schema("later", Schema(AVRO, "AVRO"))).version == 1
            assert await client.get_versions("later") == [1]
            assert (await client.get_latest_version("later")).schema_id == made
            assert not await client.test_compatibility("later", Schema('"int"', "AVRO"))
            serialize = await AsyncAvroSerializer(client, AVRO)
            deserialize = await AsyncAvroDeserializer(client)
            context = SerializationContext("later", MessageField.VALUE)
            assert await deserialize(await serialize({"id": 7}, context), context) == {"id": 7}
            assert await client.delete_subject("later") == [1]

    asyncio.run(play())


def test_the_registry_is_at_the_same_address_after_a_restart() -> None:
    with ottla.testing.broker() as broker:
        url = broker.schema_registry_url
        with SchemaRegistryClient({"url": url}) as client:
            client.register_schema("s", Schema(AVRO, "AVRO"))
        broker.restart()
        assert broker.schema_registry_url == url
        with SchemaRegistryClient({"url": url}) as client:
            assert client.get_versions("s") == [1]
