"""Late or duplicate end markers of transactions, while coordinators and leaders change."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from tests.broker.raw_client import RawClient
from tests.broker.transacting import NEW, OLD

from ottla import Admin
from ottla.broker.peers.transaction_requests import TransactionRequests
from ottla.broker.topics import TRANSACTION_STATE
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.internal_records import partition_for
from ottla.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

from .brokers import until
from .test_transactions import TOPIC, Apart, committed, coordinator_of, nodes, servers

if TYPE_CHECKING:
    from ottla.broker.embedded import EmbeddedBroker

__all__ = ["nodes"]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[WritableTxnMarker]:
    """The markers that coordinators have sent to other nodes."""
    found: list[WritableTxnMarker] = []
    original = TransactionRequests.write_markers

    async def write_markers(
        self: TransactionRequests, node: int, producer: tuple[int, int], marker: Any, places: Any
    ) -> Any:
        found.extend(
            WritableTxnMarker(
                producer_id=producer[0],
                producer_epoch=producer[1],
                transaction_result=marker.is_commit,
                topics=(WritableTxnMarkerTopic(name=at.topic, partition_indexes=(at.partition,)),),
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
            for at in places
        )
        return await original(self, node, producer, marker, places)

    monkeypatch.setattr(TransactionRequests, "write_markers", write_markers)
    return found


def move_leader(nodes: list[EmbeddedBroker], at: TopicPartition) -> None:
    with Admin(servers(nodes)) as admin:
        leader, other = admin.describe_topic(at.topic).partitions[at.partition].replicas
        assert admin.reassign_partitions({at: [other, leader]}) == {at: None}
        until(lambda: admin.list_reassignments() == {})
        admin.elect_leaders([at])
        until(lambda: admin.describe_topic(at.topic).partitions[at.partition].leader == other)


def leader_of(nodes: list[EmbeddedBroker], at: TopicPartition) -> EmbeddedBroker:
    def found() -> list[EmbeddedBroker]:
        partitions = [(node, node.broker.topics.partition(at.topic, at.partition)) for node in nodes]
        return [node for node, each in partitions if each.leads]

    until(found)
    return found()[0]


def deliver(nodes: list[EmbeddedBroker], marker: WritableTxnMarker) -> int:
    """Send a request to the current leader of the partition; returns the response."""
    at = TopicPartition(marker.topics[0].name, marker.topics[0].partition_indexes[0])
    with RawClient(leader_of(nodes, at).bootstrap_servers) as client:
        [result] = client.ask(WriteTxnMarkersRequest(markers=(marker,))).markers
    error: int = result.topics[0].partitions[0].error_code
    return error


def write(raw: Apart, nodes: list[EmbeddedBroker], value: bytes, partition: int) -> None:
    """Write in the producer's transaction, at the current coordinator and leader."""
    with RawClient(coordinator_of(nodes, raw.producer.id).bootstrap_servers) as coordinator:
        raw.producer.client = coordinator
        if raw.producer.flow == OLD:
            until(lambda: raw.producer.add(TOPIC, partition) == ErrorCode.NONE)
    with RawClient(leader_of(nodes, TopicPartition(TOPIC, partition)).bootstrap_servers) as leader:
        raw.producer.client = leader
        until(lambda: raw.producer.send(TOPIC, value, partition=partition) == ErrorCode.NONE)


def commit(raw: Apart, nodes: list[EmbeddedBroker]) -> None:
    with RawClient(coordinator_of(nodes, raw.producer.id).bootstrap_servers) as coordinator:
        raw.producer.client = coordinator
        raw.producer.commit()


def coordinated_at(transactional_id: str) -> TopicPartition:
    return TopicPartition(TRANSACTION_STATE, partition_for(transactional_id, 3))


def partition_led_elsewhere(nodes: list[EmbeddedBroker], transactional_id: str) -> int:
    """A partition of the topic whose markers go over the network before and after the coordinator changes."""
    at = coordinated_at(transactional_id)
    broker = nodes[0].broker
    assert broker.replication is not None
    keepers = broker.replication.replica_of(broker.topics.partition(at.topic, at.partition))
    assert keepers is not None
    assert keepers.state is not None
    return next(number for number in range(3) if number + 1 not in keepers.state.replicas)


@pytest.mark.parametrize("changes", ["none", "leader", "coordinator", "both"])
def test_a_late_duplicate_marker_does_not_end_the_next_transaction(
    nodes: list[EmbeddedBroker], sent: list[WritableTxnMarker], changes: str
) -> None:
    with closing(Apart(nodes, "raw", NEW)) as raw:
        partition = partition_led_elsewhere(nodes, "raw")
        write(raw, nodes, b"first", partition)
        commit(raw, nodes)
        [late] = sent
        assert deliver(nodes, late) == ErrorCode.NONE  # a duplicate, before anything else is open
        if changes in ("leader", "both"):
            move_leader(nodes, TopicPartition(TOPIC, partition))
        if changes in ("coordinator", "both"):
            move_leader(nodes, coordinated_at("raw"))
        write(raw, nodes, b"second", partition)

        assert deliver(nodes, late) == ErrorCode.INVALID_PRODUCER_EPOCH

        assert committed(nodes, 1) == [(partition, b"first")]
        commit(raw, nodes)
        assert committed(nodes, 2) == [(partition, b"first"), (partition, b"second")]


def test_before_kip_890_a_late_duplicate_from_a_former_coordinator_is_refused(
    nodes: list[EmbeddedBroker], sent: list[WritableTxnMarker]
) -> None:
    with closing(Apart(nodes, "raw", OLD)) as raw:
        partition = partition_led_elsewhere(nodes, "raw")
        write(raw, nodes, b"first", partition)
        commit(raw, nodes)
        [late] = sent
        move_leader(nodes, coordinated_at("raw"))
        write(raw, nodes, b"second", partition)
        commit(raw, nodes)
        move_leader(nodes, TopicPartition(TOPIC, partition))
        write(raw, nodes, b"third", partition)

        assert deliver(nodes, late) == ErrorCode.TRANSACTION_COORDINATOR_FENCED

        assert len(committed(nodes, 2)) == 2
        commit(raw, nodes)
        assert len(committed(nodes, 3)) == 3
