"""A node with a damaged replica of an internal topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from tests.broker.raw_client import RawClient

from ottla import Admin
from ottla.broker.topics import CONSUMER_OFFSETS
from ottla.client.admin import topics as admin_topics
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.groups.records import partition_for
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

from .brokers import brokers, until

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.broker.embedded import EmbeddedBroker

AT = TopicPartition(CONSUMER_OFFSETS, partition_for("g", 3))


def commit(nodes: list[EmbeddedBroker], offset: int) -> None:
    servers = ",".join(node.bootstrap_servers for node in nodes)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g"})

    def is_coordinated() -> bool:
        try:
            consumer.committed([ConfluentPartition("t", 0)], timeout=1)
        except KafkaException:
            return False
        return True

    until(is_coordinated)
    for each in range(1, offset + 1):
        consumer.commit(offsets=[ConfluentPartition("t", 0, each)], asynchronous=False)
    consumer.close()


def committed(node: EmbeddedBroker) -> tuple[int, list[int]]:
    group = OffsetFetchRequestGroup(group_id="g", topics=None)
    with RawClient(node.bootstrap_servers) as client:
        [answer] = client.ask(OffsetFetchRequest(groups=(group,)), 8).groups
    return answer.error_code, [part.committed_offset for topic in answer.topics for part in topic.partitions]


def flip_a_bit(folder: Path) -> None:
    [file] = (folder / str(AT)).glob("*.log")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def produce(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    producer.produce("t", b"x", partition=0)
    assert producer.flush(20) == 0


def test_another_in_sync_replica_takes_over_the_groups_of_a_damaged_one(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 2) as nodes, Admin(nodes[0].bootstrap_servers) as admin:
        admin.create_topics([admin_topics.NewTopic(name="t", assignments={0: [1, 2]})])
        commit(nodes, 5)
        until(lambda: len(admin.describe_topic(CONSUMER_OFFSETS).partitions[AT.partition].isr) == 2)
        if admin.describe_topic(CONSUMER_OFFSETS).partitions[AT.partition].replicas[0] != 2:
            assert admin.reassign_partitions({AT: [2, 1]}) == {AT: None}
            until(lambda: admin.list_reassignments() == {})
        nodes[1].__exit__(None, None, None)
        flip_a_bit(tmp_path / "2")
        nodes[1].__enter__()
        until(lambda: len(admin.describe_topic(CONSUMER_OFFSETS).partitions[AT.partition].isr) == 2)

        admin.elect_leaders([AT])  # the damaged one is the preferred leader

        until(lambda: committed(nodes[0]) == (ErrorCode.NONE, [5]))
        until(lambda: admin.describe_topic(CONSUMER_OFFSETS).partitions[AT.partition].isr == (1,))
        produce(nodes[0].bootstrap_servers)


def test_if_the_only_replica_is_damaged_only_its_groups_are_unavailable(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 2) as nodes, Admin(nodes[0].bootstrap_servers) as admin:
        admin.create_topics([admin_topics.NewTopic(name="t", assignments={0: [2]})])
        commit(nodes, 5)
        assert admin.reassign_partitions({AT: [2]}) == {AT: None}
        until(lambda: admin.list_reassignments() == {})
        nodes[1].__exit__(None, None, None)
        flip_a_bit(tmp_path / "2")
        nodes[1].__enter__()

        until(lambda: committed(nodes[1])[0] == ErrorCode.COORDINATOR_NOT_AVAILABLE)
        produce(nodes[1].bootstrap_servers)
        assert committed(nodes[1]) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])
