"""Confluent's Java client of the schema registry, its Avro serializers and its console tools at Ottla."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import ottla
import ottla.testing
from interop.foreign_clients import CLIENTS
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_tools import run_tool
from ottla.schema import AnyDeserializer, AvroDeserializer, AvroSerializer

KEYS = '"string"'
TIMEOUT_S = 120


@dataclass
class Order:
    id: int
    note: str | None = None


@pytest.fixture(scope="module")
def broker() -> Iterator[ottla.testing.EphemeralBroker]:
    with ottla.testing.broker() as started:
        yield started


def test_confluents_java_client_and_ours_read_each_other(
    broker: ottla.testing.EphemeralBroker, confluent_java: KafkaArtifacts
) -> None:
    registry = broker.schema_registry_url
    serializers = AvroSerializer(registry, KEYS), AvroSerializer(registry, Order)
    with ottla.Producer(
        broker.bootstrap_servers, key_serializer=serializers[0], value_serializer=serializers[1]
    ) as producer:
        for order in (Order(0), Order(1, "one"), Order(2, "two")):
            producer.send("from-python", order, key=f"key {order.id}")
    arguments = [registry, broker.bootstrap_servers, "from-java", "from-python"]
    command = confluent_java.command(str(CLIENTS / "java" / "Registry.java"), arguments, "-Xmx256m")
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "same_id": True,
        "versions": [1, 2],
        "version": 2,
        "latest": True,
        "by_id": True,
        "subjects_of_id": ["java-value"],
        "is_listed": True,
        "is_compatible": False,
        "has_reasons": True,
        "refused": 40901,
        "missing": 40402,
        "unknown": 40403,
        "resolved": True,
        "is_referenced": 42206,
        "level": "FULL FULL",
        "mode": "READONLY READONLY",
        "read_only": 42205,
        "imported": 777,
        "contexts": [".", ".copies"],
        "deleted": [1],
        "purged": [1],
        "metadata": "{owner=ann, team=shop} {shop.Order.id=[PII]}",
        "read": [f'key {n} {{"id": {n}, "note": {note}}}' for n, note in enumerate(("null", '"one"', '"two"'))],
    }
    with ottla.Consumer(
        broker.bootstrap_servers,
        topics=["from-java"],
        auto_offset_reset="earliest",
        key_deserializer=AvroDeserializer(registry),
        value_deserializer=AvroDeserializer(registry, Order),
    ) as consumer:
        found = [(record.key, record.value) for record in consumer.poll(timeout_ms=10_000)]
    assert found == [("key 0", Order(0)), ("key 1", Order(1, "note 1")), ("key 2", Order(2, "note 2"))]


def test_confluents_console_tools_write_and_read_avro(
    broker: ottla.testing.EphemeralBroker, confluent_java: KafkaArtifacts
) -> None:
    registry = f"schema.registry.url={broker.schema_registry_url}"
    schema = '{"type":"record","name":"Visit","fields":[{"name":"page","type":"string"}]}'
    lines = '{"page":"home"}\n{"page":"shop"}\n'
    place = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "visits"]
    reader = ["--line-reader", "io.confluent.kafka.formatter.AvroMessageReader"]
    given = ["--reader-property", registry, "--reader-property", f"value.schema={schema}"]
    written = run_tool(confluent_java, "org.apache.kafka.tools.ConsoleProducer", *place, *reader, *given, given=lines)
    assert written.exit_code == 0, written.stderr
    formatter = ["--formatter", "io.confluent.kafka.formatter.AvroMessageFormatter", "--formatter-property", registry]
    until = ["--from-beginning", "--max-messages", "2", "--timeout-ms", "30000"]
    printed = run_tool(confluent_java, "org.apache.kafka.tools.consumer.ConsoleConsumer", *place, *formatter, *until)
    assert printed.stdout == lines, printed.stderr
    with ottla.Consumer(
        broker.bootstrap_servers,
        topics=["visits"],
        auto_offset_reset="earliest",
        value_deserializer=AnyDeserializer(broker.schema_registry_url),
    ) as consumer:
        found = [record.value for record in consumer.poll(timeout_ms=10_000)]
    assert found == [{"page": "home"}, {"page": "shop"}]
