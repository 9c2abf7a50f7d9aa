"""Records of one partition by a share consumer that accepts them all, against a plain consumer; both of librdkafka."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from bench.report import Row, speed
from bench.requests import ottla

TOPIC = "share"
RECORDS = 200_000
VALUE = b"x" * 200
ROUNDS = 3
PATIENCE_S = 30.0


def fill(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "queue.buffering.max.messages": 2 * RECORDS})
    for _ in range(RECORDS):
        producer.produce(TOPIC, VALUE)
    assert producer.flush(PATIENCE_S) == 0


def begin_with_the_first(servers: str, group: str) -> None:
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": servers})
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


def shared_per_second(servers: str, group: str) -> float:
    begin_with_the_first(servers, group)
    consumer = ShareConsumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    consumer.subscribe([TOPIC])
    count = 0
    while not count:
        count = len(list(consumer.poll(1.0)))
    before, start = count, time.perf_counter()
    while count < RECORDS:
        count += len(list(consumer.poll(1.0)))
    rate = (count - before) / (time.perf_counter() - start)
    consumer.close()
    return rate


def plain_per_second(servers: str, group: str) -> float:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    count = 0
    while not count:
        count = len(consumer.consume(1, 1.0))
    before, start = count, time.perf_counter()
    while count < RECORDS:
        count += len(consumer.consume(2000, 1.0))
    rate = (count - before) / (time.perf_counter() - start)
    consumer.close()
    return rate


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder, ottla(Path(folder)) as port:
        servers = f"127.0.0.1:{port}"
        fill(servers)
        rates = [
            (shared_per_second(servers, f"share-{number}"), plain_per_second(servers, f"plain-{number}"))
            for number in range(ROUNDS)
        ]
    shared, plain = (sorted(column)[ROUNDS // 2] for column in zip(*rates, strict=True))
    yield speed(
        "records of 200 bytes by a share consumer, each accepted, against a plain consumer",
        shared / 1000,
        plain / 1000,
        "thousand records/s",
    )
