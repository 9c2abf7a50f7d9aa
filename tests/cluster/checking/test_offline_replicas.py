"""Disk failures of single partitions, on real processes and a real ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.broker.raw_client import RawClient

from ottla.cluster.state import NO_NODE
from ottla.core.errors import ErrorCode
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from .processes import Processes, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .processes import Node

PARTITIONS = 4
PATIENCE_S = 30.0


@pytest.fixture
def processes(zookeeper: str, tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path, zookeeper, module="tests.cluster.checking.failing_disk") as running:
        yield running


def create(processes: Processes, topic: str, configs: dict[str, str] | None = None) -> None:
    admin = AdminClient({"bootstrap.servers": processes.servers, "log_level": 0})
    created = admin.create_topics([NewTopic(topic, PARTITIONS, 3, config=configs or {})])
    created[topic].result(PATIENCE_S)

    def is_known_everywhere() -> bool:
        return all(len(told(node, topic)) == PARTITIONS for node in processes.nodes.values())

    until(is_known_everywhere, "every node to know the topic")


def told(node: Node, topic: str) -> dict[int, Any]:
    """Leader, ISR and offline replicas of each partition, according to a node."""
    with RawClient(node.address) as client:
        [found] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), version=9).topics
    return {each.partition_index: each for each in found.partitions}


def produced(processes: Processes, topic: str, partition: int, timeout_ms: int = 20_000) -> KafkaError | None:
    errors: list[KafkaError | None] = []
    producer = Producer(
        {"bootstrap.servers": processes.servers, "acks": "all", "delivery.timeout.ms": timeout_ms, "log_level": 0}
    )
    producer.produce(topic, b"v", partition=partition, on_delivery=lambda error, _: errors.append(error))
    producer.flush(timeout_ms / 1000 + 5)
    [error] = errors
    return error


def all_in_sync(node: Node, topic: str) -> bool:
    return all(len(each.isr_nodes) == len(each.replica_nodes) for each in told(node, topic).values())


@pytest.mark.timeout(180)
def test_a_partition_that_a_follower_cannot_open_does_not_stop_the_others(processes: Processes) -> None:
    create(processes, "many")
    for partition in range(PARTITIONS):
        assert produced(processes, "many", partition) is None
    node, other = processes.nodes[2], processes.nodes[1]
    node.stop()
    broken = node.folder / "many-0" / f"{0:020}.log"
    kept = broken.rename(node.folder.with_name("kept.log"))
    broken.mkdir()
    node.start()
    node.wait_until_ready()

    def only_one_lags() -> bool:
        isrs = {partition: set(each.isr_nodes) for partition, each in told(other, "many").items()}
        return isrs == {0: {1, 3}, 1: {1, 2, 3}, 2: {1, 2, 3}, 3: {1, 2, 3}}

    until(only_one_lags, "the other partitions to be in sync")
    until(lambda: told(other, "many")[0].offline_replicas == (2,), "node 1 to know that the replica is offline")
    for partition in range(PARTITIONS):
        assert produced(processes, "many", partition) is None
    said = node.log_path.read_text()
    assert said.count("many-0: replica on broker 2 is offline") == 1, said

    broken.rmdir()
    kept.rename(broken)
    until(lambda: all_in_sync(other, "many"), "the partition to be opened again")
    assert told(other, "many")[0].offline_replicas == ()


@pytest.mark.timeout(180)
def test_a_leader_whose_fsync_fails_hands_over(processes: Processes) -> None:
    create(processes, "handed", {"flush.messages": "1"})
    leader = processes.nodes[told(processes.nodes[1], "handed")[0].leader_id]
    other = next(node for node in processes.nodes.values() if node is not leader)
    assert produced(processes, "handed", 0) is None
    listed = leader.folder.with_name(f"{leader.folder.name}.eio")
    listed.write_text("handed-0")

    assert produced(processes, "handed", 0) is None

    now = told(other, "handed")
    assert now[0].leader_id != leader.number
    assert leader.number not in now[0].isr_nodes
    until(lambda: leader.number in told(other, "handed")[0].offline_replicas, "it to be reported")
    assert all(leader.number in now[each].isr_nodes for each in range(1, PARTITIONS))

    listed.unlink()
    until(lambda: all_in_sync(other, "handed"), "it to be opened again, without a restart")
    assert told(other, "handed")[0].offline_replicas == ()


@pytest.mark.timeout(180)
def test_a_leader_that_cannot_open_its_log_hands_over(processes: Processes) -> None:
    create(processes, "opened")
    for partition in range(PARTITIONS):
        assert produced(processes, "opened", partition) is None
    leader = processes.nodes[told(processes.nodes[1], "opened")[0].leader_id]
    other = next(node for node in processes.nodes.values() if node is not leader)
    for node in processes.nodes.values():
        node.kill()
    broken = leader.folder / "opened-0" / f"{0:020}.log"
    kept = broken.rename(leader.folder.with_name("kept.log"))
    broken.mkdir()
    leader.start()
    leader.wait_until_ready()
    for node in processes.nodes.values():
        if node is not leader:
            node.start()
    for node in processes.nodes.values():
        node.wait_until_ready()

    assert produced(processes, "opened", 0) is None
    until(lambda: told(other, "opened")[0].leader_id not in (-1, leader.number), "another leader")
    assert leader.number not in told(other, "opened")[0].isr_nodes
    broken.rmdir()
    kept.rename(broken)
    until(lambda: all_in_sync(other, "opened"), "the partition to be opened again")


@pytest.mark.timeout(180)
def test_the_last_in_sync_replica_stays_and_its_partition_is_offline(processes: Processes) -> None:
    create(processes, "last", {"flush.messages": "1", "min.insync.replicas": "1"})
    leader = processes.nodes[told(processes.nodes[1], "last")[0].leader_id]
    others = [node for node in processes.nodes.values() if node is not leader]
    for node in others:
        node.kill()
    until(lambda: told(leader, "last")[0].isr_nodes == (leader.number,), "it to be the last in sync")
    assert produced(processes, "last", 0) is None
    listed = leader.folder.with_name(f"{leader.folder.name}.eio")
    listed.write_text("last-0")

    assert produced(processes, "last", 0, timeout_ms=4000) is not None
    for node in others:
        node.start()
    for node in others:
        node.wait_until_ready()
        until(lambda: told(node, "last")[0].offline_replicas == (leader.number,), "it to be reported")
        assert told(node, "last")[0].leader_id == NO_NODE
        assert told(node, "last")[0].isr_nodes == (leader.number,)

    listed.unlink()
    until(lambda: all_in_sync(others[0], "last"), "it to be opened again, without a restart")
    assert told(others[0], "last")[0].error_code == ErrorCode.NONE
    assert produced(processes, "last", 0) is None
