"""Three nodes in one process that can be killed and restarted."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from .clients import poll, send

if TYPE_CHECKING:
    from ottla.testing import EphemeralCluster

QUICK = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 10,
    "topic.metadata.refresh.fast.interval.ms": 20,
    "log_level": 0,
}


def producer(cluster: EphemeralCluster) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, **QUICK})


def values(cluster: EphemeralCluster, topic: str) -> list[object]:
    return [record.value for record in cluster.records(topic)]


def test_a_topic_is_on_all_three_nodes(ottla_cluster: EphemeralCluster) -> None:
    ottla_cluster.create_topic("t", partitions=3)
    described = AdminClient({"bootstrap.servers": ottla_cluster.bootstrap_servers}).list_topics("t", timeout=20)
    assert sorted(described.brokers) == [0, 1, 2]
    assert [sorted(one.replicas) for one in described.topics["t"].partitions.values()] == [[0, 1, 2]] * 3
    assert {one.leader for one in described.topics["t"].partitions.values()} == {0, 1, 2}
    assert ottla_cluster.produce("t", "a", "b", partition=2) == 0
    assert [(record.partition, record.value) for record in ottla_cluster.records("t")] == [(2, b"a"), (2, b"b")]


def test_acknowledged_records_survive_the_leader_and_clients_find_the_next(ottla_cluster: EphemeralCluster) -> None:
    ottla_cluster.create_topic("t", configs={"min.insync.replicas": "2"})
    client = producer(ottla_cluster)
    send(client, "t", b"a")
    leader = ottla_cluster.leader_of("t")
    ottla_cluster.kill(leader)
    send(client, "t", b"b")
    assert ottla_cluster.leader_of("t") is not leader
    assert not leader.is_running
    assert values(ottla_cluster, "t") == [b"a", b"b"]

    ottla_cluster.restart(leader)
    ottla_cluster.wait_until_in_sync("t")
    send(client, "t", b"c")
    assert values(ottla_cluster, "t") == [b"a", b"b", b"c"]


def test_with_too_few_nodes_nothing_is_acknowledged(ottla_cluster: EphemeralCluster) -> None:
    ottla_cluster.create_topic("t", configs={"min.insync.replicas": "3"})
    client = producer(ottla_cluster)
    send(client, "t", b"a")
    follower = next(node for node in ottla_cluster.nodes if node is not ottla_cluster.leader_of("t"))
    ottla_cluster.kill(follower)
    client.produce("t", b"b")
    ottla_cluster.leader_of("t").requests.wait_for(2, api="Produce", topic="t")
    assert len(client) == 1
    ottla_cluster.restart(follower)
    assert client.flush(20) == 0
    assert values(ottla_cluster, "t") == [b"a", b"b"]


def test_a_group_continues_when_its_coordinator_dies(ottla_cluster: EphemeralCluster) -> None:
    ottla_cluster.create_topic("t")
    ottla_cluster.produce("t", "a")
    settings = {"bootstrap.servers": ottla_cluster.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    with closing(Consumer({**settings, **QUICK, "enable.auto.commit": False})) as reader:
        reader.subscribe(["t"])
        assert poll(reader) == b"a"
        reader.commit(asynchronous=False)
        [coordinator] = [node for node in ottla_cluster.nodes if node.requests.of(api="JoinGroup", group="g")]
        ottla_cluster.kill(coordinator)
        ottla_cluster.produce("t", "b")
        assert poll(reader) == b"b"


def test_each_node_has_its_own_faults(ottla_cluster: EphemeralCluster) -> None:
    ottla_cluster.create_topic("t")
    leader = ottla_cluster.leader_of("t")
    fault = leader.faults.error("NOT_LEADER_OR_FOLLOWER", api="Produce", topic="t", times=1)
    send(producer(ottla_cluster), "t", b"a")
    assert fault.struck == 1


def test_an_unknown_node_is_an_error(ottla_cluster: EphemeralCluster) -> None:
    ottla_cluster.kill(1)
    with pytest.raises(RuntimeError, match="node 1 is not running"):
        ottla_cluster.kill(1)
    assert "not running" in repr(ottla_cluster.nodes[1])
    with pytest.raises(LookupError, match="no node 9; existing: 0, 1, 2"):
        ottla_cluster.kill(9)
    with pytest.raises(TimeoutError, match="no topic 'nothing'"):
        ottla_cluster.leader_of("nothing", timeout_s=0.01)
