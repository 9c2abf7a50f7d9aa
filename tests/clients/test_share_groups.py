"""Share groups with librdkafka: delivery and acknowledgement by consumers that share a partition."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.client.producer.reading import values

from .adapters.base import PATIENCE_S
from .making import create_topic
from .processes import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDS = 300
CONSUMERS = 3


def produce(servers: str, topic: str, *payloads: bytes) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for payload in payloads:
        producer.produce(topic, payload)
    assert producer.flush(PATIENCE_S) == 0


def configure(servers: str, group: str, **configs: str | int) -> None:
    """Set group configs (underscores for dots). The group starts at the earliest offset, so no test waits for it."""
    entries = [
        ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in {"share_auto_offset_reset": "earliest", **configs}.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


@contextmanager
def consuming(servers: str, group: str, topic: str, *, mode: str = "explicit") -> Iterator[ShareConsumer]:
    consumer = ShareConsumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "share.acknowledgement.mode": mode,
            "log_level": 0,
            "reconnect.backoff.max.ms": 100,
        }
    )
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def poll(consumer: ShareConsumer) -> list[Message]:
    """The next records; fails if none arrive."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        if found := [message for message in consumer.poll(0.5) if message.error() is None]:
            return found
    raise AssertionError("nothing came")


def acknowledge(consumer: ShareConsumer, messages: list[Message], kind: AcknowledgeType) -> None:
    for message in messages:
        consumer.acknowledge(message, kind)
    assert all(error is None for error in consumer.commit_sync(PATIENCE_S).values())


def test_consumers_that_share_a_partition_together_get_everything_and_nothing_twice(servers: str, topic: str) -> None:
    configure(servers, topic, share_partition_max_record_locks=20)
    got: list[list[bytes]] = [[] for _ in range(CONSUMERS)]

    def consume(mine: list[bytes]) -> None:
        with consuming(servers, topic, topic) as consumer:
            while sum(map(len, got)) < RECORDS:
                messages = [message for message in consumer.poll(0.2) if message.error() is None]
                acknowledge(consumer, messages, AcknowledgeType.ACCEPT)
                mine += [message.value() or b"" for message in messages]

    threads = [threading.Thread(target=consume, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for start in range(0, RECORDS, 10):
        produce(servers, topic, *(b"%d" % number for number in range(start, start + 10)))
    for thread in threads:
        thread.join(3 * PATIENCE_S)
        assert not thread.is_alive()
    assert sorted(int(value) for mine in got for value in mine) == list(range(RECORDS))
    assert sum(bool(mine) for mine in got) > 1, "only one of them got anything"


def test_released_records_are_redelivered_up_to_the_limit(servers: str, topic: str) -> None:
    configure(servers, topic, share_delivery_count_limit=3)
    produce(servers, topic, b"again and again")
    with consuming(servers, topic, topic) as consumer:
        for _ in range(3):
            [message] = poll(consumer)
            assert message.value() == b"again and again"
            acknowledge(consumer, [message], AcknowledgeType.RELEASE)
        produce(servers, topic, b"next")
        [message] = poll(consumer)
        assert message.value() == b"next"
        acknowledge(consumer, [message], AcknowledgeType.ACCEPT)


def test_rejected_records_become_dead_letters(servers: str, topic: str) -> None:
    configure(servers, topic, dead_letter_topic=f"{topic}-dead")
    produce(servers, topic, b"bad")
    with consuming(servers, topic, topic) as consumer:
        acknowledge(consumer, poll(consumer), AcknowledgeType.REJECT)
        assert values(servers, f"{topic}-dead") == [b"bad"]


def test_an_unacknowledged_record_is_redelivered_when_its_lock_expires(servers: str, topic: str) -> None:
    configure(servers, topic, share_record_lock_duration_ms=300)
    produce(servers, topic, b"slow")
    with consuming(servers, topic, topic) as slow, consuming(servers, topic, topic) as other:
        assert [message.value() for message in poll(slow)] == [b"slow"]
        again = poll(other)
        assert [message.value() for message in again] == [b"slow"]
        acknowledge(other, again, AcknowledgeType.ACCEPT)


def test_the_next_poll_accepts_the_previous_records(servers: str, topic: str) -> None:
    configure(servers, topic)
    produce(servers, topic, b"a", b"b", b"c")
    got = []
    with consuming(servers, topic, topic, mode="implicit") as consumer:
        while len(got) < 3:
            got += [message.value() for message in poll(consumer)]
        consumer.commit_sync(PATIENCE_S)
    produce(servers, topic, b"d")
    with consuming(servers, topic, topic, mode="implicit") as consumer:
        assert [message.value() for message in poll(consumer)] == [b"d"]
    assert got == [b"a", b"b", b"c"]


@pytest.mark.timeout(90)
def test_a_broker_kill_neither_redelivers_accepted_records_nor_loses_others(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        create_topic(server.address, "jobs")
        configure(server.address, "workers", share_partition_max_record_locks=20)
        accepted: set[int] = set()
        produce(server.address, "jobs", *(b"%d" % number for number in range(60)))
        with consuming(server.address, "workers", "jobs") as consumer:
            accepted |= _take(consumer, accepted, 20)
            # Acquired, and not acknowledged when the broker dies.
            poll(consumer)
            server.restart("kill")
        with consuming(server.address, "workers", "jobs") as consumer:
            accepted |= _take(consumer, accepted, 60 - len(accepted))
    assert accepted == set(range(60))


def _take(consumer: ShareConsumer, known: set[int], count: int) -> set[int]:
    taken: set[int] = set()
    while len(taken) < count:
        messages = poll(consumer)
        numbers = {int(message.value() or b"") for message in messages}
        assert not numbers & (known | taken), "accepted, and delivered again"
        acknowledge(consumer, messages, AcknowledgeType.ACCEPT)
        taken |= numbers
    return taken
