"""`ottla serve --workers N` as real processes, and what tests look at."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cli.serving import Serve

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_S = 60.0


def serve(folder: Path, count: int = 2, *arguments: str) -> Serve:
    return Serve(folder, "--workers", str(count), *arguments)


def create(servers: str, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics([NewTopic(name, partitions)]).values():
        created.result(PATIENCE_S)


def leaders(servers: str, topic: str) -> list[int]:
    """Of each partition in turn, once each has one: a worker may hear of what another did a moment later."""
    admin = AdminClient({"bootstrap.servers": servers})

    def told() -> list[int]:
        partitions = admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        return [partitions[index].leader for index in sorted(partitions)]

    until(lambda: (found := told()) and -1 not in found)
    return told()


def produce(servers: str, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for value in values:
        producer.produce(topic, key=value, value=value)
    assert producer.flush(PATIENCE_S) == 0


def consume(servers: str, topic: str, count: int, group: str = "g") -> list[str]:
    """This many values, and all of them from the beginning."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    try:
        while len(values) < count and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                values.append(message.value().decode())
    finally:
        consumer.close()
    return values


def workers_of(served: Serve) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = served.ready["workers"]
    return told


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def until(holds: Callable[[], object]) -> None:
    """Poll for a condition that other processes bring about."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.02)
