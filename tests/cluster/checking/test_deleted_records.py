"""DeleteRecords on real processes and a real ZooKeeper: acknowledged deletions survive a failover."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.broker.raw_client import RawClient

from ottla.core.errors import ErrorCode
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from .processes import Processes, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .processes import Node

TOPIC = "t"
EARLIEST = -2


@pytest.fixture
def processes(zookeeper: str, tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path, zookeeper) as running:
        admin = AdminClient({"bootstrap.servers": running.servers, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(30)
        producer = Producer({"bootstrap.servers": running.servers, "acks": "all", "log_level": 0})
        for number in range(10):
            producer.produce(TOPIC, b"%d" % number, partition=0)
        assert producer.flush(30) == 0
        yield running


def delete(node: Node, offset: int, timeout_ms: int) -> DeleteRecordsPartitionResult:
    wanted = DeleteRecordsTopic(name=TOPIC, partitions=(DeleteRecordsPartition(partition_index=0, offset=offset),))
    with RawClient(node.address) as client:
        answer = client.ask(DeleteRecordsRequest(topics=(wanted,), timeout_ms=timeout_ms))
    return answer.topics[0].partitions[0]


def earliest(node: Node) -> tuple[int, int]:
    wanted = ListOffsetsTopic(name=TOPIC, partitions=(ListOffsetsPartition(partition_index=0, timestamp=EARLIEST),))
    with RawClient(node.address) as client:
        [listed] = client.ask(ListOffsetsRequest(replica_id=-1, topics=(wanted,))).topics[0].partitions
    return listed.error_code, listed.offset


def leader_by(processes: Processes, node: Node) -> Node | None:
    """The leader according to this node."""
    with RawClient(node.address) as client:
        [topic] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), version=9).topics
    return processes.nodes.get(topic.partitions[0].leader_id)


def in_sync_by(node: Node) -> int:
    with RawClient(node.address) as client:
        [topic] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), version=9).topics
    return len(topic.partitions[0].isr_nodes)


@pytest.mark.timeout(180)
def test_deleted_records_do_not_reappear_with_another_leader(processes: Processes) -> None:
    for offset in (3, 6):
        leader = leader_by(processes, processes.nodes[1])
        assert leader is not None
        other = next(node for node in processes.nodes.values() if node is not leader)
        answer = delete(leader, offset, 20_000)
        leader.kill()
        assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, offset)

        until(lambda: leader_by(processes, other) not in (None, leader), "another leader")
        elected = leader_by(processes, other)
        assert elected is not None
        assert earliest(elected) == (ErrorCode.NONE, offset)
        leader.start()
        leader.wait_until_ready()
        until(lambda: in_sync_by(other) == 3, "all to be in sync")


@pytest.mark.timeout(180)
def test_the_response_waits_for_the_isr_up_to_its_timeout(processes: Processes) -> None:
    leader = leader_by(processes, processes.nodes[1])
    assert leader is not None
    followers = [node for node in processes.nodes.values() if node is not leader]
    for node in followers:
        node.freeze()
    try:
        answer = delete(leader, 5, 500)
    finally:
        for node in followers:
            node.thaw()
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)

    answer = delete(leader, 5, 20_000)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 5)
