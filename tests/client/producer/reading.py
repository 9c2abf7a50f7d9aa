"""The contents of a partition, read by librdkafka."""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

PATIENCE_S = 20.0


class Stored(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read_all(servers: str, topic: str, partition: int = 0) -> list[Stored]:
    """Every record from the first to the current end."""
    options = {"bootstrap.servers": servers, "group.id": "reading", "enable.partition.eof": True}
    consumer = Consumer({**options, "enable.auto.commit": False, "check.crcs": True})
    consumer.assign([TopicPartition(topic, partition, 0)])
    stored: list[Stored] = []
    try:
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"{topic}-{partition} never ends"
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return stored
            headers = tuple(message.headers() or ())
            stored.append(Stored(message.offset(), message.timestamp()[1], message.key(), message.value(), headers))
    finally:
        consumer.close()


def values(servers: str, topic: str, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in read_all(servers, topic, partition)]
