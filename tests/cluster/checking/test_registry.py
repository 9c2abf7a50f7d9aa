"""The schema registry of a cluster while its nodes are killed and frozen: no id twice, no acknowledged schema lost."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.broker.raw_client import RawClient
from tests.registry.registering import Registering, check, schema_of

from ottla.client.admin.configs import ConfigResource
from ottla.client.blocking.admin import Admin
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from .processes import SESSION_MS, Node, Processes, Topology, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.cluster.server import ZooKeeperServer

ROUNDS = 20 if os.environ.get("LONG_CLUSTER_TEST") else 2
SETTINGS = (
    "cluster.default_replication_factor=3",
    "cluster.internal_replication_factor=3",
    "transactions.state_topic_partitions=3",
    "broker.offsets_topic_partitions=3",
)


@pytest.fixture
def processes(zookeeper_server: ZooKeeperServer, tmp_path: Path) -> Iterator[Processes]:
    path = f"{zookeeper_server.address}/registry-{os.getpid()}-{tmp_path.name}"
    with Processes(tmp_path / "cluster", path, topology=Topology(settings=SETTINGS, http_port=0)) as running:
        yield running


def leader_of_schemas(processes: Processes) -> Node | None:
    for node in processes.nodes.values():
        if node.is_running and not node.is_frozen:
            with RawClient(node.address) as client:
                wanted = MetadataRequestTopic(name="_schemas")
                [topic] = client.ask(MetadataRequest(topics=(wanted,)), version=9).topics
            leader = processes.nodes.get(topic.partitions[0].leader_id) if topic.partitions else None
            return leader if leader is not None and leader.is_running and not leader.is_frozen else None
    return None


def found_leader(processes: Processes) -> Node:
    until(lambda: leader_of_schemas(processes) is not None, "a leader of _schemas")
    leader = leader_of_schemas(processes)
    assert leader is not None
    return leader


def is_read(node: Node, acknowledged: dict[str, int]) -> bool:
    answer = httpx.get(f"{node.schema_registry}/schemas", timeout=30)
    return answer.status_code == 200 and {each["subject"] for each in answer.json()} >= acknowledged.keys()


@pytest.mark.timeout(60 + 60 * ROUNDS)
def test_no_id_is_given_twice_and_no_acknowledged_schema_is_lost_in_fail_overs(processes: Processes) -> None:
    nodes = list(processes.nodes.values())
    urls = [lambda node=node: node.schema_registry for node in nodes] * 2
    registering = Registering("s", urls)
    with registering:
        registering.wait_for(10)
        for fault in itertools.islice(itertools.cycle(("kill", "freeze")), ROUNDS):
            leader = found_leader(processes)
            if fault == "kill":
                leader.kill()
                registering.wait_for(10)  # at the nodes that are left
                leader.start()
                leader.wait_until_ready()
            else:
                leader.freeze()
                until(lambda: leader_of_schemas(processes) is not None, "another leader", 10 * SESSION_MS / 1000)
                leader.thaw()
            registering.wait_for(10)
    assert len(set(registering.acknowledged.values())) == len(registering.acknowledged)
    for node in nodes:
        until(lambda node=node: is_read(node, registering.acknowledged), f"node {node.number} to have read all")  # type: ignore[misc]
        check(node.schema_registry, registering.acknowledged)


@pytest.mark.timeout(120)
def test_every_node_registers_and_finds_what_others_registered_at_once(processes: Processes) -> None:
    nodes = list(processes.nodes.values())
    for turn, node in enumerate(nodes * 2):
        subject = f"turn-{turn}"
        answer = httpx.post(
            f"{node.schema_registry}/subjects/{subject}/versions", json={"schema": schema_of(subject)}, timeout=30
        )
        assert (answer.status_code, answer.json()["id"]) == (200, turn + 1)
        for other in nodes:
            assert httpx.get(f"{other.schema_registry}/schemas/ids/{turn + 1}", timeout=30).status_code == 200
            assert httpx.get(f"{other.schema_registry}/subjects/{subject}/versions/latest").json()["id"] == turn + 1


@pytest.mark.timeout(180)
def test_a_schema_is_acknowledged_only_once_the_isr_has_it(processes: Processes) -> None:
    first = next(iter(processes.nodes.values()))
    assert is_registered(first, "first", 30)
    with Admin([node.address for node in processes.nodes.values()]) as admin:
        admin.alter_configs(ConfigResource.topic("_schemas"), {"min.insync.replicas": "2"})
    leader = found_leader(processes)
    assert is_registered(leader, "second", 30)  # the leader is the writer from here on
    followers = [node for node in processes.nodes.values() if node is not leader]
    for node in followers:
        node.freeze()
    assert not is_registered(leader, "third", 1.5)
    for node in followers:
        node.thaw()
    until(lambda: is_registered(found_leader(processes), "fourth", 5), "a registration")
    check(found_leader(processes).schema_registry, {"first": 1, "second": 2})


def is_registered(node: Node, subject: str, timeout_s: float) -> bool:
    body = {"schema": schema_of(subject)}
    try:
        url = f"{node.schema_registry}/subjects/{subject}/versions"
        return httpx.post(url, json=body, timeout=timeout_s).status_code == 200
    except httpx.HTTPError:
        return False
