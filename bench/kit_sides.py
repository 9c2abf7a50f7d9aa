"""Brokers that a test could have: the kit's, librdkafka's mock cluster, kfake, and Apache Kafka itself.

All are asked by the same client, librdkafka.
"""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Side = Callable[[], AbstractContextManager[str]]


@contextmanager
def kit() -> Iterator[str]:
    from ottla.testing import broker

    with broker() as one:
        yield one.bootstrap_servers


@contextmanager
def mock_cluster() -> Iterator[str]:
    """A part of librdkafka, so that it needs no import."""
    holder = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    [broker] = holder.list_topics(timeout=10).brokers.values()
    yield f"{broker.host}:{broker.port}"


@contextmanager
def kfake() -> Iterator[str]:
    """kfake, the fake cluster of the Go client franz-go, in a separate process."""
    from interop.foreign_clients import go_program

    command = [str(go_program("kfake"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@contextmanager
def kafka() -> Iterator[str]:
    from interop.kafka_artifacts import kafka_artifacts
    from interop.kafka_broker import KafkaBroker

    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(kafka_artifacts(), Path(folder), {"auto.create.topics.enable": "true"})
        broker.start()
        try:
            yield broker.bootstrap
        finally:
            broker.kill()


def start_ms(side: Side) -> float:
    began = perf_counter()
    with side():
        return (perf_counter() - began) * 1000


def first_record_ms(side: Side) -> float:
    """From nothing until a record was acknowledged, and read by a consumer that says where it wants to read."""
    return _until_consumed(side, lambda consumer: consumer.assign([TopicPartition("t", 0, 0)]))


def first_in_group_ms(side: Side) -> float:
    """The same for a consumer that joins a group."""
    return _until_consumed(side, lambda consumer: consumer.subscribe(["t"]))


def _until_consumed(side: Side, begin: Callable[[Consumer], None]) -> float:
    began = perf_counter()
    with side() as servers:
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "log_level": 0})
        producer.produce("t", b"x", partition=0)
        assert producer.flush(30) == 0
        settings = {"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
        consumer = Consumer(settings)
        begin(consumer)
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None, message.error()
        took = perf_counter() - began
        consumer.close()
    return took * 1000
