"""Consumers that validate their position after a leader change (KIP-320)."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from select import select
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from ottla import Admin
from ottla.client.admin import topics as admin_topics
from ottla.core.ids import TopicPartition

from .brokers import brokers, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 20.0
AT = TopicPartition("t", 0)
READER = """
import sys
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "g", "auto.offset.reset": "latest"})
consumer.assign([TopicPartition("t", 0, 0)])
while True:
    message = consumer.poll(10)
    if message is not None and message.error() is None:
        print(message.value().decode(), flush=True)
"""


def produce(servers: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for value in values:
        producer.produce("t", value, partition=0)
    assert producer.flush(20) == 0


@contextmanager
def reader(servers: str) -> Iterator[subprocess.Popen[bytes]]:
    """A librdkafka consumer that reads from offset 0; if its position is out of range it reads only new records."""
    with subprocess.Popen([sys.executable, "-c", READER, servers], stdout=subprocess.PIPE, bufsize=0) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[bytes], count: int) -> list[str]:
    """The records that arrive in time."""
    assert process.stdout is not None
    found: list[str] = []
    while len(found) < count and select([process.stdout], [], [], PATIENCE_S)[0]:
        found.append(process.stdout.readline().decode().strip())
    return found


def test_no_record_is_skipped_after_deletion_and_a_leader_change(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 2) as nodes, Admin(nodes[0].bootstrap_servers) as admin:
        servers = ",".join(node.bootstrap_servers for node in nodes)
        created = admin.create_topics([admin_topics.NewTopic(name="t", assignments={0: [1, 2]})])
        assert created == {"t": None}
        produce(servers, b"1", b"2")
        with reader(servers) as consumer:
            assert lines(consumer, 2) == ["1", "2"]
            # It learns of the leader change only after the new leader has appended records.
            consumer.send_signal(signal.SIGSTOP)

            admin.delete_records({AT: 2})
            until(lambda: all(node.broker.topics.partition("t", 0).log.start_offset == 2 for node in nodes))
            assert admin.reassign_partitions({AT: [2, 1]}) == {AT: None}
            until(lambda: admin.list_reassignments() == {})
            admin.elect_leaders()
            until(lambda: admin.describe_topic("t").partitions[0].leader == 2)
            produce(servers, b"3", b"4", b"5")
            consumer.send_signal(signal.SIGCONT)

            assert lines(consumer, 3) == ["3", "4", "5"]
