"""Loads of librdkafka, through confluent-kafka, with the client's defaults: each lasts until a deadline."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from bench.sides import Side

_GONE_WITHIN_S = 60

_UNPAUSED = {"queued.min.messages": 10_000_000, "queued.max.messages.kbytes": 1_000_000}
"""By default librdkafka stops fetching for a second whenever 100,000 records or 64 MiB wait for the application: a
broker that fills the queue faster than they are taken would be measured by that pause."""


def quiet(side: Side) -> dict[str, object]:
    return {"bootstrap.servers": side.bootstrap, "log_level": 0}


def create(side: Side, topic: str, partitions: int) -> None:
    admin = AdminClient(quiet(side))
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(30)


def delete(side: Side, topic: str) -> None:
    """Delete a topic, and wait until its files are gone."""
    admin = AdminClient(quiet(side))
    for future in admin.delete_topics([topic]).values():
        future.result(30)
    deadline = time.perf_counter() + _GONE_WITHIN_S
    while any((side.folder / "data").glob(f"{topic}-*")):
        if time.perf_counter() > deadline:
            raise TimeoutError(f"{side.name} did not remove the files of {topic} within {_GONE_WITHIN_S} s")
        time.sleep(0.05)


def produce(side: Side, topic: str, size: int, deadline: float) -> int:
    """The number of acknowledged records; raises if one is not."""
    refused: list[KafkaError] = []

    def only_errors(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(error)

    producer = Producer(
        {**quiet(side), "queue.buffering.max.messages": 1_000_000, "delivery.report.only.error": True},
    )
    producer.list_topics(topic, timeout=30)
    value = b"v" * size
    count = 0
    while time.perf_counter() < deadline:
        try:
            for _ in range(1_000):
                producer.produce(topic, value, on_delivery=only_errors)
                count += 1
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)
    left = producer.flush(120)
    if left or refused:
        free_gb = shutil.disk_usage(side.folder).free / 1e9
        why = refused[0] if refused else "no error yet"
        raise RuntimeError(
            f"{side.name}: {left} of {count} records of {topic} were not delivered within 120 s, and {len(refused)} "
            f"were refused ({why}); {free_gb:.1f} GB of the disk are free"
        )
    return count


def consume(side: Side, topic: str, partitions: int, deadline: float) -> int:
    """Read a topic from its beginning, again and again."""
    count = 0
    while time.perf_counter() < deadline:
        consumer = Consumer({**quiet(side), **_UNPAUSED, "group.id": "bench", "enable.auto.commit": False})
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, one), timeout=30)[1] for one in range(partitions)]
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        left = sum(ends)
        while left > 0 and time.perf_counter() < deadline:
            messages = consumer.consume(min(left, 10_000), timeout=30)
            assert messages, f"{left} records of {topic} did not come"
            left -= len(messages)
            count += len(messages)
        consumer.close()
    return count


def produce_one_us(side: Side, topic: str, deadline: float) -> list[float]:
    producer = Producer({**quiet(side), "linger.ms": 0})
    times = []
    while (start := time.perf_counter()) < deadline:
        producer.produce(topic, b"v" * 100)
        producer.flush(30)
        times.append((time.perf_counter() - start) * 1e6)
    return times[len(times) // 20 :]


def produce_to_consume_us(side: Side, topic: str, deadline: float) -> list[float]:
    producer = Producer({**quiet(side), "linger.ms": 0})
    consumer = Consumer({**quiet(side), "group.id": "trip", "enable.auto.commit": False})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.assign([TopicPartition(topic, 0, end)])
    times = []
    while (start := time.perf_counter()) < deadline:
        producer.produce(topic, b"v" * 100)
        producer.poll(0)
        assert consumer.poll(30) is not None
        times.append((time.perf_counter() - start) * 1e6)
    consumer.close()
    return times[len(times) // 20 :]
