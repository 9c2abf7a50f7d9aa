"""Everything that a broker has of some topics, read from the start to the end."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from bench.soak.ledger import At
from bench.soak.verify import Stored

ANSWER_S = 30


def ends(consumer: Consumer, partitions: dict[str, int]) -> dict[At, int]:
    """The offset after the last record of each partition."""
    found = {}
    for topic, count in partitions.items():
        for partition in range(count):
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=ANSWER_S)
            found[At(topic, partition)] = end
    return found


def read_partition(consumer: Consumer, at: At) -> list[Stored]:
    start, end = consumer.get_watermark_offsets(TopicPartition(at.topic, at.partition), timeout=ANSWER_S)
    consumer.assign([TopicPartition(at.topic, at.partition, start)])
    stored: list[Stored] = []
    position = start
    while position < end:
        # It waits until it has as many as it was asked for.
        messages = consumer.consume(min(end - position, 10_000), timeout=ANSWER_S)
        if not messages:
            raise TimeoutError(f"{at}: nothing more came after {position}, though it ends at {end}")
        for message in messages:
            if message.error() is not None:
                raise RuntimeError(f"{at}: {message.error()}")
            stored.append(Stored(int(message.offset() or 0), message.value() or b""))
        position = stored[-1].offset + 1
    consumer.unassign()
    return stored
