"""Kill a group's coordinator: its offsets are replicated, and another node takes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import ottla

from .processes import Processes, until

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.cluster.server import ZooKeeperServer

GROUP = "workers"
TOPIC = "jobs"
PATIENCE_S = 30


def consumer(servers: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "log_level": 0,
        }
    )


def coordinator_of(admin: AdminClient) -> int:
    described = admin.describe_consumer_groups([GROUP], request_timeout=PATIENCE_S)[GROUP].result(PATIENCE_S)
    number: int = described.coordinator.id
    return number


def take(member: Consumer, count: int) -> list[bytes]:
    taken: list[bytes] = []

    def has_all() -> bool:
        taken.extend(each.value() for each in member.consume(count - len(taken), 0.5) if each.error() is None)
        return len(taken) >= count

    until(has_all, f"{count} records")
    return taken


@pytest.mark.timeout(200)
def test_committed_offsets_and_membership_survive_the_coordinator(
    zookeeper_server: ZooKeeperServer, tmp_path: Path
) -> None:
    with Processes(tmp_path, f"{zookeeper_server.address}/groups-{tmp_path.name}") as processes:
        servers = processes.servers
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(PATIENCE_S)
        with ottla.Producer(servers) as producer:
            for number in range(20):
                producer.send(TOPIC, b"%d" % number)
        member = consumer(servers)
        member.subscribe([TOPIC])
        assert take(member, 10) == [b"%d" % number for number in range(10)]
        member.commit(offsets=[TopicPartition(TOPIC, 0, 10)], asynchronous=False)

        processes.nodes[coordinator_of(admin)].kill()

        assert take(member, 10) == [b"%d" % number for number in range(10, 20)]
        until(lambda: commits(member, 20), "a commit to be taken")
        member.close()
        other = consumer(servers)
        [committed] = other.committed([TopicPartition(TOPIC, 0)], timeout=PATIENCE_S)
        other.close()
        assert committed.offset == 20


def commits(member: Consumer, offset: int) -> bool:
    member.poll(0.1)
    try:
        member.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    except Exception:  # noqa: BLE001 - whatever librdkafka says while there is no coordinator
        return False
    return True
