"""Messages decoded by the id of their schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.schema import AvroSerializer, JsonSchemaSerializer, ProtobufSerializer

if TYPE_CHECKING:
    import httpx

    from .serving import HttpBroker

AVRO = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"at","type":%s}]}'
TIME = '{"type":"long","logicalType":"timestamp-millis"}'
PROTO = 'syntax = "proto3"; message Order { string customer = 1; message Line { int32 number = 1; } }'


def decoded(http: httpx.Client, topic: str, **query: str) -> list[tuple[object, str]]:
    wanted = {"keys": "schema", "values": "schema"} | query
    found = http.get(f"/v1/topics/{topic}/messages", params=wanted).json()["messages"]
    return [(each["value"], each["value_encoding"]) for each in found]


@pytest.fixture
def registry(served: HttpBroker) -> str:
    return f"{served.url}/schema-registry"


def test_values_of_all_types_are_decoded(served: HttpBroker, http: httpx.Client, topic: str, registry: str) -> None:
    avro = AvroSerializer(registry, AVRO % TIME)({"id": 2**60, "at": 0}, topic)
    document = JsonSchemaSerializer(registry, {"type": "object"})({"a": [1]}, f"{topic}-json")
    message = ProtobufSerializer(registry, PROTO)({"customer": "Ann"}, f"{topic}-proto")
    with ottla.Producer(served.servers) as producer:
        for value in (avro, document, message, b"\0\0\0\xff\xffx", b"plain", avro[:-1], None):
            producer.send(topic, value, partition=0)
    assert decoded(http, topic, partition="0") == [
        ({"id": 2**60, "at": "1970-01-01T00:00:00Z"}, "schema"),
        ({"a": [1]}, "schema"),
        ({"customer": "Ann"}, "schema"),
        ("AAAA//94", "base64"),
        ("plain", "utf8"),
        ("AAAAAAGAgICAgICAgCA=", "base64"),
        (None, "none"),
    ]


def test_a_stream_a_tail_and_a_consumer_decode_too(
    served: HttpBroker, http: httpx.Client, topic: str, registry: str
) -> None:
    value = AvroSerializer(registry, '"string"')("hello", topic)
    with ottla.Producer(served.servers) as producer:
        producer.send(topic, b"x", key=value, partition=0)
    path = f"/v1/topics/{topic}"
    lines = http.get(f"{path}/messages", params={"keys": "schema"}, headers={"accept": "application/x-ndjson"}).text
    assert [json.loads(line)["key"] for line in lines.splitlines()] == ["hello"]
    read = http.get(f"/v1/consumers/{topic}/messages", params={"topic": topic, "keys": "schema"}).json()
    assert [each["key"] for each in read["messages"]] == ["hello"]
    with http.stream("GET", f"{path}/tail", params={"keys": "schema", "from": "start"}) as tail:
        for line in tail.iter_lines():
            if line.startswith("data:"):
                assert json.loads(line[5:])["key"] == "hello"
                break
