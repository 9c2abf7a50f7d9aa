"""REST and Kafka clients read each other's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer

if TYPE_CHECKING:
    import httpx

    from .serving import HttpBroker

PATIENCE_S = 20.0


def test_librdkafka_reads_messages_written_over_rest(served: HttpBroker, http: httpx.Client, topic: str) -> None:
    message = {
        "key": "ключ",
        "value": {"n": 1},
        "headers": [{"name": "h", "value": "00ff", "encoding": "hex"}, {"name": "none"}],
        "timestamp": 1_700_000_000_000,
        "partition": 1,
    }
    http.post(f"/v1/topics/{topic}/messages", json={"messages": [message, {"value": None, "partition": 1}]})
    consumer = Consumer({"bootstrap.servers": served.servers, "group.id": topic})
    consumer.assign([TopicPartition(topic, 1, 0)])
    first, second = consumer.poll(PATIENCE_S), consumer.poll(PATIENCE_S)
    consumer.close()
    assert (first.key(), first.value()) == ("ключ".encode(), b'{"n":1}')
    assert first.headers() == [("h", b"\x00\xff"), ("none", None)]
    assert first.timestamp()[1] == 1_700_000_000_000
    assert (second.offset(), second.key(), second.value()) == (1, None, None)


def test_kafka_python_reads_messages_streamed_over_rest(served: HttpBroker, http: httpx.Client, name: str) -> None:
    lines = b"".join(b'{"value":"%d"}\n' % number for number in range(5000))
    http.post(f"/v1/topics/{name}/messages", content=lines, headers={"content-type": "application/x-ndjson"})
    consumer = KafkaConsumer(
        name, bootstrap_servers=served.servers, auto_offset_reset="earliest", group_id=None, consumer_timeout_ms=20_000
    )
    seen = []
    for record in consumer:
        seen.append(int(record.value))
        if len(seen) == 5000:
            break
    consumer.close()
    assert seen == list(range(5000))


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_rest_reads_messages_written_by_librdkafka(
    served: HttpBroker, http: httpx.Client, topic: str, compression: str
) -> None:
    settings: dict[str, Any] = {"bootstrap.servers": served.servers, "compression.type": compression, "linger.ms": 50}
    producer = Producer(settings)
    for number in range(1000):
        producer.produce(topic, f"value {number}", key="k", partition=0, headers=[("n", str(number).encode())])
    assert producer.flush(PATIENCE_S) == 0
    page = http.get(f"/v1/topics/{topic}/messages", params={"limit": 1000}).json()
    assert [one["value"] for one in page["messages"]] == [f"value {number}" for number in range(1000)]
    assert page["messages"][7]["headers"] == [{"name": "n", "value": "7", "encoding": "utf8"}]
    middle = http.get(f"/v1/topics/{topic}/messages", params={"partition": 0, "offset": 500, "limit": 1}).json()
    assert middle["messages"][0]["value"] == "value 500"


def test_keys_go_to_the_partition_that_kafka_python_chooses(served: HttpBroker, http: httpx.Client, name: str) -> None:
    http.post("/v1/topics", json={"name": name, "partitions": 7})
    keys = [f"key-{number}" for number in range(20)]
    written = http.post(
        f"/v1/topics/{name}/messages", json={"messages": [{"key": key, "value": "x"} for key in keys]}
    ).json()
    producer = KafkaProducer(bootstrap_servers=served.servers)
    theirs = [producer.send(name, b"x", key=key.encode()).get(PATIENCE_S).partition for key in keys]
    producer.close()
    assert [one["partition"] for one in written["offsets"]] == theirs


def test_a_kafka_consumer_continues_at_the_commit_of_a_rest_consumer(
    served: HttpBroker, http: httpx.Client, topic: str
) -> None:
    messages = [{"value": str(number), "partition": 0} for number in range(4)]
    http.post(f"/v1/topics/{topic}/messages", json={"messages": messages})
    consumed = http.get(f"/v1/consumers/{topic}/messages", params={"topic": topic, "max": 3}).json()
    http.post(f"/v1/consumers/{topic}/commit", json=consumed["commit"])
    consumer = Consumer({"bootstrap.servers": served.servers, "group.id": topic, "auto.offset.reset": "error"})
    consumer.subscribe([topic])
    assert consumer.poll(PATIENCE_S).value() == b"3"
    consumer.commit(asynchronous=False)
    consumer.close()
    assert http.get(f"/v1/consumers/{topic}/messages", params={"topic": topic}).json()["messages"] == []
