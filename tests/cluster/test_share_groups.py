"""Share groups in a cluster, where partition leader, share coordinator and group coordinator are different nodes."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer
from tests.broker.raw_client import RawClient
from tests.broker.sharing import ACCEPT, REJECT, RELEASE, set_group_config
from tests.clients.test_share_groups import configure

from ottla import Admin
from ottla.broker.settings import Settings
from ottla.client.admin.topics import NewTopic
from ottla.core.errors import ErrorCode
from ottla.share.config import ShareConfig
from ottla.testing import EphemeralBroker, EphemeralCluster
from ottla.wire.messages import alter_share_group_offsets as altering
from ottla.wire.messages import read_share_group_state as reading
from ottla.wire.messages import write_share_group_state as writing
from ottla.wire.messages.delete_groups import DeleteGroupsRequest

from .sharing import GROUP, PATIENCE_S, TOPIC, Asking, until

if TYPE_CHECKING:
    from collections.abc import Iterator

TEN = [str(number) for number in range(10)]


@pytest.fixture
def cluster() -> Iterator[EphemeralCluster]:
    with EphemeralCluster() as started:
        yield started


@pytest.fixture
def asking(cluster: EphemeralCluster) -> Iterator[Asking]:
    with ExitStack() as stack:
        yield Asking(cluster, stack)


@contextmanager
def consuming(cluster: EphemeralCluster) -> Iterator[ShareConsumer]:
    consumer = ShareConsumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": GROUP,
            "share.acknowledgement.mode": "explicit",
            "log_level": 0,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 10,
            "topic.metadata.refresh.fast.interval.ms": 20,
            "topic.metadata.refresh.interval.ms": 200,
        }
    )
    consumer.subscribe([TOPIC])
    try:
        yield consumer
    finally:
        consumer.close()


def accept(consumers: list[ShareConsumer], count: int) -> list[bytes]:
    """Accept records until this many were received; returns their values."""
    found: list[bytes] = []
    give_up_at_s = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < give_up_at_s, found
        for consumer in consumers:
            for message in consumer.poll(0.1):
                assert message.error() is None, message.error()
                found.append(message.value() or b"")
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
            consumer.commit_sync()
    return found


def test_consumers_together_receive_the_records_of_all_leaders(cluster: EphemeralCluster) -> None:
    cluster.create_topic(TOPIC, partitions=3)
    assert {cluster.leader_of(TOPIC, each).id for each in range(3)} == {0, 1, 2}
    configure(cluster.bootstrap_servers, GROUP)
    sent = {partition: [f"{partition}-{number}" for number in range(20)] for partition in range(3)}
    for partition, values in sent.items():
        cluster.produce(TOPIC, *values, partition=partition)
    with consuming(cluster) as one, consuming(cluster) as another:
        got = accept([one, another], 60)
    assert sorted(got) == sorted(value.encode() for values in sent.values() for value in values)


def test_consumers_continue_when_a_node_dies(cluster: EphemeralCluster) -> None:
    cluster.create_topic(TOPIC, partitions=3)
    configure(cluster.bootstrap_servers, GROUP)
    for partition in range(3):
        cluster.produce(TOPIC, f"before-{partition}", partition=partition)
    with consuming(cluster) as consumer:
        before = accept([consumer], 3)
        cluster.kill(1)
        for partition in range(3):
            cluster.produce(TOPIC, f"after-{partition}", partition=partition)
        after = accept([consumer], 3)
    assert sorted(before) == [b"before-0", b"before-1", b"before-2"]
    assert sorted(after) == [b"after-0", b"after-1", b"after-2"]


def test_the_next_leader_delivers_only_unaccepted_records(asking: Asking) -> None:
    cluster = asking.cluster
    cluster.create_topic(TOPIC)
    cluster.produce(TOPIC, *TEN)
    member = asking.member()
    assert asking.fetch(member).offsets == list(range(10))
    assert member.acknowledge(0, 4, ACCEPT) == ErrorCode.NONE
    assert member.acknowledge(7, 7, RELEASE) == ErrorCode.NONE
    cluster.kill(cluster.leader_of(TOPIC))
    asking.follow(member)
    delivered = asking.fetch(member)
    assert delivered.offsets == [5, 6, 7, 8, 9]
    # The others count as delivered if the old leader could still record the loss of the member.
    assert [count for first, last, count in delivered.ranges if first <= 7 <= last] == [2]
    assert member.acknowledge(5, 9, ACCEPT) == ErrorCode.NONE
    assert until(lambda: asking.described(asking.coordinator())[1] or None) == {0: (10, 0)}


def test_acknowledging_continues_when_the_share_coordinator_dies(asking: Asking) -> None:
    cluster = asking.cluster
    cluster.create_topic(TOPIC)
    cluster.produce(TOPIC, *TEN)
    asking.member("first")
    leader = cluster.leader_of(TOPIC)
    group = next(name for name in (f"g{number}" for number in range(50)) if asking.state_leader(name) is not leader)
    member = asking.member(group)
    assert asking.fetch(member).offsets == list(range(10))
    assert member.acknowledge(0, 4, ACCEPT) == ErrorCode.NONE
    cluster.kill(asking.state_leader(group))
    assert member.acknowledge(5, 8, ACCEPT) == ErrorCode.NONE
    assert asking.described(asking.coordinator(group), group) == (ErrorCode.NONE, {0: (9, 1)})


def test_a_former_leader_can_write_no_state(asking: Asking) -> None:
    asking.cluster.create_topic(TOPIC)
    member = asking.member()
    asking.cluster.produce(TOPIC, *TEN)
    assert asking.fetch(member).offsets == list(range(10))
    coordinator = asking.at(asking.state_leader(GROUP))

    def read(leader_epoch: int) -> int:
        part = reading.PartitionData(partition=0, leader_epoch=leader_epoch)
        topic = reading.ReadShareGroupStateTopic(topic_id=asking.topic_id, partitions=(part,))
        answer = coordinator.ask(reading.ReadShareGroupStateRequest(group_id=GROUP, topics=(topic,)))
        return answer.results[0].partitions[0].error_code

    def write(state_epoch: int, leader_epoch: int) -> int:
        part = writing.PartitionData(
            partition=0, state_epoch=state_epoch, leader_epoch=leader_epoch, start_offset=0, state_batches=()
        )
        topic = writing.WriteShareGroupStateTopic(topic_id=asking.topic_id, partitions=(part,))
        answer = coordinator.ask(writing.WriteShareGroupStateRequest(group_id=GROUP, topics=(topic,)))
        return answer.results[0].partitions[0].error_code

    assert read(100) == ErrorCode.NONE
    assert member.acknowledge(0, 0, ACCEPT) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert write(0, 99) == ErrorCode.FENCED_LEADER_EPOCH
    assert write(1, 100) == ErrorCode.FENCED_STATE_EPOCH
    assert write(0, 100) == ErrorCode.NONE
    assert read(99) == ErrorCode.FENCED_LEADER_EPOCH


def test_altered_offsets_apply_at_every_leader(asking: Asking) -> None:
    asking.cluster.create_topic(TOPIC)
    asking.cluster.produce(TOPIC, *TEN)
    member = asking.member()
    assert asking.fetch(member).offsets == list(range(10))
    assert member.acknowledge(0, 9, ACCEPT) == ErrorCode.NONE
    asking.leave(member)
    part = altering.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=6)
    topic = altering.AlterShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=(part,))
    moved = asking.coordinator().ask(altering.AlterShareGroupOffsetsRequest(group_id=GROUP, topics=(topic,)))
    assert moved.error_code == ErrorCode.NONE
    assert moved.responses[0].partitions[0].error_code == ErrorCode.NONE
    assert asking.described(asking.coordinator())[1] == {0: (6, 4)}
    assert asking.fetch(asking.member()).offsets == [6, 7, 8, 9]


def test_a_deleted_group_starts_from_scratch(asking: Asking) -> None:
    asking.cluster.create_topic(TOPIC)
    asking.cluster.produce(TOPIC, *TEN)
    member = asking.member()
    asking.fetch(member)
    assert member.acknowledge(0, 9, ACCEPT) == ErrorCode.NONE
    asking.leave(member)
    [deleted] = asking.coordinator().ask(DeleteGroupsRequest(groups_names=(GROUP,))).results
    assert deleted.error_code == ErrorCode.NONE
    assert asking.fetch(asking.member()).offsets == list(range(10))


def test_dead_letters_can_go_to_a_topic_led_by_another_node(asking: Asking) -> None:
    cluster = asking.cluster
    cluster.create_topic(TOPIC)
    other = next(node.id for node in cluster.nodes if node is not cluster.leader_of(TOPIC))
    with Admin(cluster.bootstrap_servers) as admin:
        assert admin.create_topics([NewTopic(name="dead", assignments={0: [other]})]) == {"dead": None}
    cluster.produce(TOPIC, *TEN)
    member = asking.member()
    assert set_group_config(asking.coordinator(), GROUP, dead_letter_topic="dead") == ErrorCode.NONE
    assert asking.fetch(member).offsets == list(range(10))
    assert member.acknowledge(3, 4, REJECT) == ErrorCode.NONE
    assert [record.value for record in cluster.records("dead")] == [b"3", b"4"]


def test_a_snapshot_truncates_older_changes_on_all_nodes_and_survives_its_node() -> None:
    settings = Settings(share=ShareConfig(state_updates_per_snapshot=4))
    with EphemeralCluster(settings=settings) as cluster, ExitStack() as stack:
        asking = Asking(cluster, stack)
        cluster.create_topic(TOPIC)
        cluster.produce(TOPIC, *TEN)
        member = asking.member()
        assert asking.fetch(member).offsets == list(range(10))
        for offset in range(1, 10):
            assert member.acknowledge(offset, offset, ACCEPT) == ErrorCode.NONE
        coordinator = asking.state_leader(GROUP)
        log = asking.state_partition(coordinator, GROUP).log
        until(lambda: True if log.next_offset - log.start_offset < 8 else None)
        others = [asking.state_partition(node, GROUP).log for node in cluster.nodes if node is not coordinator]
        until(lambda: True if all(each.start_offset == log.start_offset for each in others) else None)
        cluster.kill(coordinator)
        assert asking.described(asking.coordinator())[1] == {0: (0, 1)}


def test_a_standalone_broker_keeps_share_state_locally() -> None:
    with EphemeralBroker() as broker, RawClient(broker.bootstrap_servers) as client:
        part = reading.PartitionData(partition=0, leader_epoch=0)
        topic = reading.ReadShareGroupStateTopic(topic_id=bytes(16), partitions=(part,))
        answer = client.ask(reading.ReadShareGroupStateRequest(group_id=GROUP, topics=(topic,)))
    assert answer.results[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
