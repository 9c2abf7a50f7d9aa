"""Consumers with manual assignment: seek, reset, pause, offsets by time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .adapters.base import values
from .making import receive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.core.ids import TopicPartition

    from .adapters.base import Client, Consumer

DAY_MS = 86_400_000
T0 = 1_700_000_000_000


@pytest.fixture
def consumer(client: Client, servers: str, at: TopicPartition) -> Iterator[Consumer]:
    """A partition with ten records, one per day."""
    with client.producer(servers) as producer:
        for number in range(10):
            producer.send(at.topic, b"%d" % number, timestamp=T0 + number * DAY_MS)
        producer.flush()
    with client.consumer(servers) as consumer:
        consumer.assign(at)
        yield consumer


def test_a_consumer_seeks_backward_and_forward(consumer: Consumer, at: TopicPartition) -> None:
    assert len(receive(consumer, 10)) == 10
    consumer.seek(at, 3)
    assert values(receive(consumer, 7)) == [b"%d" % number for number in range(3, 10)]
    consumer.seek(at, 9)
    assert values(receive(consumer, 1)) == [b"9"]
    assert consumer.position(at) == 10


def test_an_offset_out_of_range_is_reset_by_policy(consumer: Consumer, at: TopicPartition) -> None:
    assert len(receive(consumer, 10)) == 10
    consumer.seek(at, 1_000)
    assert values(receive(consumer, 10)) == [b"%d" % number for number in range(10)]


def test_the_log_begins_at_zero_and_ends_after_its_last_record(consumer: Consumer, at: TopicPartition) -> None:
    assert consumer.begin_and_end(at) == (0, 10)


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [(0, 0), (T0, 0), (T0 + 1, 1), (T0 + 5 * DAY_MS, 5), (T0 + 9 * DAY_MS, 9), (T0 + 9 * DAY_MS + 1, None)],
)
def test_a_timestamp_resolves_to_the_first_record_that_is_not_older(
    consumer: Consumer, at: TopicPartition, timestamp: int, offset: int | None
) -> None:
    found = consumer.offset_for_time(at, timestamp)
    # librdkafka answers with the end of the log where there is no such record.
    assert found == offset or (offset is None and found == 10)


def test_a_paused_partition_returns_nothing_until_resumed(
    client: Client, servers: str, consumer: Consumer, at: TopicPartition
) -> None:
    assert len(receive(consumer, 10)) == 10
    consumer.pause(at)
    with client.producer(servers) as producer:
        producer.place(at.topic, b"unseen")
    # Twice as long as any fetch waits.
    assert consumer.poll(0.2) == []
    consumer.resume(at)
    assert values(receive(consumer, 1)) == [b"unseen"]
