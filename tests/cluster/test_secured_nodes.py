"""Nodes that authenticate each other by certificates, with ACLs for replication."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from tests.broker.raw_client import RawClient
from tests.security.certificates import Authority

from ottla import Admin, Consumer, Producer, TopicPartition
from ottla.broker.embedded import EmbeddedBroker
from ottla.broker.topics import AUDIT
from ottla.client.admin.topics import NewTopic
from ottla.client.security import Security
from ottla.core.errors import ConfigError
from ottla.net.config import NetConfig
from ottla.net.security_config import SecurityConfig
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

from .brokers import settings, until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ottla.broker.settings import Settings


def secured(zookeeper: str, node_id: int, authority: Authority, *, principal: str = "node") -> Settings:
    server, node = authority.server(), authority.client(principal)
    given = settings(zookeeper, node_id)
    return given._replace(
        net=NetConfig(listeners=("PLAINTEXT://127.0.0.1:0", "SSL://127.0.0.1:0")),
        security=SecurityConfig(
            cert_file=server.cert,
            key_file=server.key,
            client_ca_file=authority.cert,
            client_certificates="required",
            principal_rules=("RULE:CN=([^,]+),.*/$1/", "DEFAULT"),
            acls=True,
            super_users=("User:node", "User:ANONYMOUS"),
        ),
        cluster=replace(
            given.cluster,
            node_listener="SSL",
            node_tls_ca=authority.cert,
            node_tls_cert=node.cert,
            node_tls_key=node.key,
        ),
    )


def test_nodes_replicate_over_tls_and_clients_see_their_own_listener(zookeeper: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(EmbeddedBroker(tmp_path / str(number), secured(zookeeper, number, authority)))
            for number in (1, 2)
        ]
        until(lambda: all(len(each.broker.topology.node_ids) == 2 for each in nodes))
        client = authority.client("node", file="client")
        login = Security(tls=True, ca_file=str(authority.cert), cert_file=str(client.cert), key_file=str(client.key))
        address = str(nodes[0].broker.listener.ports[1].address)
        with Admin(address, security=login) as admin, Producer(address, security=login) as producer:
            admin.create_topic("t", replication_factor=2, configs={"min.insync.replicas": "2"})
            producer.send("t", b"value").result(20)
            ports = {each.broker.listener.ports[1].address.port for each in nodes}
            assert {each.port for each in admin.describe_cluster().brokers} == ports
            assert len(admin.describe_topic("t").partitions[0].isr) == 2
            # Each node leads one of these, so that verification and end markers go between nodes.
            admin.create_topics([NewTopic(name="both", assignments={0: [1, 2], 1: [2, 1]})])
            with Producer(address, security=login, transactional_id="id") as writer, writer.transaction():
                writer.send("both", b"value", partition=0)
                writer.send("both", b"value", partition=1)
            ends = [each.broker.topics.partition("both", number) for number, each in enumerate(nodes)]
            until(lambda: [each.last_stable_offset for each in ends] == [2, 2])


def test_a_listener_for_nodes_that_does_not_exist_is_refused(zookeeper: str, tmp_path: Path) -> None:
    given = settings(zookeeper, 1)
    wrong = given._replace(cluster=replace(given.cluster, node_listener="SASL_SSL"))

    with pytest.raises(ConfigError, match="node_listener"), EmbeddedBroker(tmp_path / "1", wrong):
        pass


def test_all_nodes_show_the_same_scram_challenge_for_an_unknown_user(zookeeper: str, tmp_path: Path) -> None:
    challenges = set()
    for number in (1, 2):
        given = settings(zookeeper, number)
        listeners = ("PLAINTEXT://127.0.0.1:0", "SASL_PLAINTEXT://127.0.0.1:0")
        with EmbeddedBroker(tmp_path / str(number), given._replace(net=NetConfig(listeners=listeners))) as node:
            address = node.broker.listener.ports[1].address
            with RawClient(f"127.0.0.1:{address.port}") as client:
                client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"))
                first = client.ask(SaslAuthenticateRequest(auth_bytes=b"n,,n=nobody,r=x"))
            challenges.add(first.auth_bytes.partition(b",")[2])
    assert len(challenges) == 1


def test_every_node_writes_its_audit_log_to_the_topic(zookeeper: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    client = authority.client("node", file="client")
    login = Security(tls=True, ca_file=str(authority.cert), cert_file=str(client.cert), key_file=str(client.key))
    with ExitStack() as stack:
        nodes = []
        for number in (1, 2):
            given = secured(zookeeper, number, authority)
            security = replace(given.security, audit_targets=("topic",), audit_reads=True)
            nodes.append(stack.enter_context(EmbeddedBroker(tmp_path / str(number), given._replace(security=security))))
        until(lambda: all(len(each.broker.topology.node_ids) == 2 for each in nodes))
        for number, node in enumerate(nodes):
            with RawClient(str(node.broker.listener.ports[0].address)) as raw:
                wanted = CreatableTopic(
                    name=f"t{number}", num_partitions=1, replication_factor=1, assignments=(), configs=()
                )
                raw.ask(CreateTopicsRequest(topics=(wanted,), timeout_ms=20_000))
        options: dict[str, Any] = {"security": login, "auto_offset_reset": "earliest"}
        found: set[int] = set()
        with Consumer(str(nodes[0].broker.listener.ports[1].address), **options) as consumer:
            until(lambda: all(AUDIT in each.broker.topics.by_name for each in nodes))
            consumer.assign([TopicPartition(AUDIT, 0)])
            until(lambda: found.update(_nodes(consumer.poll(timeout_ms=500))) or found == {1, 2})


def _nodes(records: Sequence[Any]) -> set[int]:
    return {json.loads(record.value)["node"] for record in records}
