"""A cluster as seen by Ottla's and other clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, NewTopic
from msgspec.structs import replace

import ottla
from ottla import Admin
from ottla.broker.embedded import EmbeddedBroker
from ottla.client.admin import topics as admin_topics
from ottla.client.admin.configs import ConfigResource
from ottla.client.errors import BrokerError
from ottla.client.view import TopicView
from ottla.core.errors import ConfigError, DataDirError, ErrorCode
from ottla.core.ids import TopicPartition

from .brokers import brokers, settings, until

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.broker.settings import Settings


def create(servers: str, *topics: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics(list(topics)).values():
        created.result(20)


def create_on(servers: str, name: str, *replicas: list[int]) -> None:
    """A partition for each list of nodes."""
    with Admin(servers) as admin:
        created = admin.create_topics([admin_topics.NewTopic(name=name, assignments=dict(enumerate(replicas)))])
        assert created == {name: None}


def test_every_broker_returns_the_same_metadata(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 3) as nodes:
        create(nodes[1].bootstrap_servers, NewTopic("t", 6, 3))
        until(lambda: all("t" in node.broker.topics.by_name for node in nodes))
        told = [AdminClient({"bootstrap.servers": node.bootstrap_servers}).list_topics(timeout=10) for node in nodes]

        for each in told:
            assert {node.id: f"{node.host}:{node.port}" for node in each.brokers.values()} == {
                number: node.bootstrap_servers for number, node in enumerate(nodes, 1)
            }
            assert each.controller_id == told[0].controller_id
            partitions = each.topics["t"].partitions.values()
            assert sorted(part.leader for part in partitions) == [1, 1, 2, 2, 3, 3]
            assert all(sorted(part.replicas) == sorted(part.isrs) == [1, 2, 3] for part in partitions)
        with Admin(nodes[0].bootstrap_servers) as admin:
            assert [each.rack for each in admin.describe_cluster().brokers] == ["rack-1", "rack-2", "rack-3"]


def test_the_coordinators_of_groups_are_spread_over_all_nodes(zookeeper: str, tmp_path: Path) -> None:
    def usual(node_id: int) -> Settings:
        given = settings(zookeeper, node_id, f"rack-{node_id}")
        return given._replace(broker=replace(given.broker, offsets_topic_partitions=0))

    with EmbeddedBroker(tmp_path / "1", usual(1)) as first, EmbeddedBroker(tmp_path / "2", usual(2)) as second:
        until(lambda: len(first.broker.topology.node_ids) == 2)
        with Admin(first.bootstrap_servers) as admin:
            assert admin.group_offsets("nobody") == {}
            [topic] = admin.describe_topics(["__consumer_offsets"]).values()
            assert isinstance(topic, TopicView)
            assert sorted(part.leader for part in topic.partitions.values()) == [1] * 6 + [2] * 6
            told = admin.describe_configs(ConfigResource.broker(2))
            assert told["offsets.topic.num.partitions"].value == "12"
            assert told["offsets.topic.replication.factor"].value == "2"
            assert told["default.replication.factor"].value == "2"
            assert told["broker.rack"].value == second.broker.settings.cluster.rack


def test_impossible_requests_are_refused_with_kafkas_messages(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 2) as nodes:
        servers = nodes[0].bootstrap_servers
        with pytest.raises(KafkaException, match="only 2 broker"):
            create(servers, NewTopic("wide", 1, 3))
        create_on(servers, "chosen", [2, 1], [1])
        with Admin(servers) as admin:
            assert {index: part.replicas for index, part in admin.describe_topic("chosen").partitions.items()} == {
                0: (2, 1),
                1: (1,),
            }
            with pytest.raises(BrokerError, match="already exists"):
                admin.create_topic("chosen")


def test_topic_changes_reach_every_broker(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 2) as nodes:
        first, second = nodes
        with Admin(first.bootstrap_servers) as admin:
            admin.create_topic("t", partitions=1)
            admin.create_partitions("t", 3)
            admin.alter_configs(ConfigResource.topic("t"), {"retention.ms": "1234"})
            until(lambda: "t" in second.broker.topics.by_name)
            state = second.broker.topics.by_name["t"]
            until(lambda: len(state.partitions) == 3 and state.entry.configs == {"retention.ms": "1234"})
            admin.alter_configs(ConfigResource.broker(None), {"message.max.bytes": "4321"})
            until(lambda: state.config.log.max_message_bytes == 4321)
            admin.delete_topic("t")
        until(lambda: "t" not in second.broker.topics.by_name)
        until(lambda: not list((tmp_path / "1").glob("t-*")) and not list((tmp_path / "2").glob("t-*")))


def test_an_automatically_created_topic_is_replicated(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 2) as nodes:
        producer = Producer({"bootstrap.servers": nodes[0].bootstrap_servers, "acks": "all"})
        producer.produce("new", b"value")
        assert producer.flush(20) == 0

        with Admin(nodes[1].bootstrap_servers) as admin:
            until(lambda: "new" in admin.list_topics())
            assert len(admin.describe_topic("new").partitions[0].replicas) == 2


def test_a_group_continues_when_its_coordinator_leaves(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 3) as nodes:
        servers = ",".join(node.bootstrap_servers for node in nodes)
        create(servers, NewTopic("t", 1, 3))
        group = {"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False}
        consumer = Consumer(group)
        consumer.commit(offsets=[ConfluentPartition("t", 0, 42)], asynchronous=False)
        consumer.close()

        coordinator = next(node for node in nodes if not node.broker.groups.error_for("g"))
        coordinator.__exit__(None, None, None)
        left = [node for node in nodes if node is not coordinator]
        until(lambda: any(not node.broker.groups.error_for("g") for node in left))
        other = Consumer(group | {"bootstrap.servers": ",".join(node.bootstrap_servers for node in left)})
        assert [each.offset for each in other.committed([ConfluentPartition("t", 0)], timeout=20)] == [42]
        other.close()
        coordinator.__enter__()


def test_consumer_group_members_continue_when_their_coordinator_leaves(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 3) as nodes:
        servers = ",".join(node.bootstrap_servers for node in nodes)
        create(servers, NewTopic("t", 2, 3))
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "group.protocol": "consumer"})
        consumer.subscribe(["t"])

        def has_all() -> bool:
            consumer.poll(0.05)
            return len(consumer.assignment()) == 2

        until(has_all)
        coordinator = next(node for node in nodes if not node.broker.groups.error_for("g"))
        before = coordinator.broker.groups.rules.consumers.describe("g")
        coordinator.__exit__(None, None, None)
        left = [node for node in nodes if node is not coordinator]
        until(lambda: any(not node.broker.groups.error_for("g") for node in left))
        successor = next(node for node in left if not node.broker.groups.error_for("g"))
        after = successor.broker.groups.rules.consumers.describe("g")
        assert (after.group_epoch, after.members) == (before.group_epoch, before.members)
        consumer.commit(offsets=[ConfluentPartition("t", 0, 42)], asynchronous=False)
        assert has_all()
        consumer.close()
        coordinator.__enter__()


def test_a_partition_moves_with_its_records(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 3) as nodes:
        servers = ",".join(node.bootstrap_servers for node in nodes)
        create_on(servers, "t", [1])
        producer = Producer({"bootstrap.servers": servers, "acks": "all"})
        for number in range(100):
            producer.produce("t", str(number).encode())
        assert producer.flush(20) == 0

        with Admin(servers) as admin:
            at = TopicPartition("t", 0)
            assert admin.reassign_partitions({at: [2, 3]}) == {at: None}
            until(lambda: admin.list_reassignments() == {})
            moved = admin.describe_topic("t").partitions[0]
            assert (moved.leader, moved.replicas, set(moved.isr)) == (2, (2, 3), {2, 3})
            refused = admin.reassign_partitions({at: [9]})[at]
            assert refused is not None
            assert refused.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
            refused = admin.reassign_partitions({at: None})[at]
            assert refused is not None
            assert refused.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            assert admin.latest_offsets([at])[at].offset == 100  # type: ignore[union-attr]
        until(lambda: not (tmp_path / "1" / "t-0").exists())


def test_the_preferred_leader_leads_again_after_its_return(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 2) as nodes:
        servers = ",".join(node.bootstrap_servers for node in nodes)
        create_on(servers, "t", [2, 1])
        nodes[1].__exit__(None, None, None)
        with Admin(nodes[0].bootstrap_servers) as admin:
            assert admin.describe_topic("t").partitions[0].leader == 1
            nodes[1].__enter__()
            until(lambda: set(admin.describe_topic("t").partitions[0].isr) == {1, 2})
            at = TopicPartition("t", 0)
            assert admin.elect_leaders() == {at: None}
            assert admin.describe_topic("t").partitions[0].leader == 2
            assert admin.elect_leaders() == {}


def test_a_folder_of_another_cluster_or_node_is_refused(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 1):
        pass
    for other in (settings(f"{zookeeper}-other", 1), settings(zookeeper, 5)):
        with pytest.raises(DataDirError, match="belongs to"), EmbeddedBroker(tmp_path / "1", other):
            pass


def test_without_zookeeper_a_broker_does_not_start(tmp_path: Path) -> None:
    given = settings("127.0.0.1:1", 1)
    nowhere = given._replace(cluster=replace(given.cluster, connect_timeout_ms=100))

    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:1"), EmbeddedBroker(tmp_path / "1", nowhere):
        pass


def test_a_standalone_broker_answers_like_a_cluster_of_one() -> None:
    with ottla.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t")
        at = TopicPartition("t", 0)
        assert admin.list_reassignments() == {}
        assert admin.elect_leaders() == {}
        assert admin.reassign_partitions({at: [0]}) == {at: None}
        refused = admin.reassign_partitions({at: [1]})[at]
        assert refused is not None
        assert refused.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
