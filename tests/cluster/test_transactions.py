"""Transactions whose partitions, offsets and coordinator are on different nodes."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.broker.raw_client import RawClient
from tests.broker.transacting import NEW, OLD, Transactional

from ottla import Admin
from ottla.client.admin import topics as admin_topics
from ottla.core.errors import ErrorCode
from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest

from .brokers import brokers, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.broker.embedded import EmbeddedBroker

TOPIC = "accounts"
PATIENCE_S = 20.0


@pytest.fixture
def nodes(zookeeper: str, tmp_path: Path) -> Iterator[list[EmbeddedBroker]]:
    """Three nodes, each leading one partition of the topic."""
    with brokers(zookeeper, tmp_path, 3) as started:
        with Admin(servers(started)) as admin:
            wanted = admin_topics.NewTopic(name=TOPIC, assignments={0: [1, 2], 1: [2, 3], 2: [3, 1]})
            assert admin.create_topics([wanted]) == {TOPIC: None}
        until(lambda: all(TOPIC in node.broker.topics.by_name for node in started))
        yield started


def servers(nodes: list[EmbeddedBroker]) -> str:
    return ",".join(node.bootstrap_servers for node in nodes)


def producer(nodes: list[EmbeddedBroker], transactional_id: str, **settings: object) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": servers(nodes),
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "log_level": 0,
            **settings,
        }
    )
    made.init_transactions(PATIENCE_S)
    return made


def consumer(nodes: list[EmbeddedBroker], group: str = "reader", **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers(nodes),
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "log_level": 0,
            **settings,
        }
    )


def write(to: Producer, value: bytes) -> None:
    """Send to every partition, and so on every node."""
    for partition in range(3):
        to.produce(TOPIC, value, partition=partition)
    assert to.flush(PATIENCE_S) == 0


def committed(nodes: list[EmbeddedBroker], count: int) -> list[tuple[int, bytes]]:
    """Values read with read_committed, once this many and no more have arrived."""
    found: list[tuple[int, bytes]] = []
    with closing(consumer(nodes)) as reader:
        reader.assign([TopicPartition(TOPIC, partition, 0) for partition in range(3)])

        def has_all() -> bool:
            found.extend((each.partition(), each.value()) for each in reader.consume(100, 0.2) if each.error() is None)
            return len(found) >= count

        until(has_all)
        found.extend((each.partition(), each.value()) for each in reader.consume(100, 0.5) if each.error() is None)
    return sorted(found)


def on_all(*values: bytes) -> list[tuple[int, bytes]]:
    return sorted((partition, value) for partition in range(3) for value in values)


def test_committed_records_are_visible_on_every_node_and_aborted_ones_on_none(nodes: list[EmbeddedBroker]) -> None:
    for number in range(4):  # ids of different coordinators
        writer = producer(nodes, f"writer-{number}")
        writer.begin_transaction()
        write(writer, b"kept %d" % number)
        writer.commit_transaction(PATIENCE_S)
        writer.begin_transaction()
        write(writer, b"dropped")
        writer.abort_transaction(PATIENCE_S)

    assert committed(nodes, 12) == on_all(b"kept 0", b"kept 1", b"kept 2", b"kept 3")


def test_a_replaced_producer_is_fenced_and_leaves_nothing(nodes: list[EmbeddedBroker]) -> None:
    zombie = producer(nodes, "writer")
    zombie.begin_transaction()
    write(zombie, b"of a zombie")

    heir = producer(nodes, "writer")
    heir.begin_transaction()
    write(heir, b"of its heir")
    heir.commit_transaction(PATIENCE_S)

    with pytest.raises(KafkaException):
        zombie.commit_transaction(PATIENCE_S)
    assert committed(nodes, 3) == on_all(b"of its heir")


def test_offsets_are_committed_with_the_transaction(nodes: list[EmbeddedBroker]) -> None:
    writer = producer(nodes, "copier")
    with closing(consumer(nodes, "copiers")) as reader:
        reader.subscribe([TOPIC])
        until(lambda: reader.poll(0.1) is not None or reader.assignment())
        for offset, is_commit in ((7, True), (9, False)):
            writer.begin_transaction()
            write(writer, b"copy")
            moved = [TopicPartition(TOPIC, 1, offset)]
            writer.send_offsets_to_transaction(moved, reader.consumer_group_metadata(), PATIENCE_S)
            if is_commit:
                writer.commit_transaction(PATIENCE_S)
            else:
                writer.abort_transaction(PATIENCE_S)
        [found] = reader.committed([TopicPartition(TOPIC, 1)], timeout=PATIENCE_S)

    assert found.offset == 7


def test_a_transaction_continues_at_another_coordinator(nodes: list[EmbeddedBroker]) -> None:
    writer = producer(nodes, "writer")
    writer.begin_transaction()
    write(writer, b"before")
    coordinator = next(node for node in nodes if node.broker.transactions.rules.get("writer") is not None)

    coordinator.__exit__(None, None, None)
    write(writer, b"after")
    writer.commit_transaction(PATIENCE_S)

    left = [node for node in nodes if node is not coordinator]
    assert committed(left, 6) == on_all(b"before", b"after")
    coordinator.__enter__()


def test_a_transaction_is_aborted_at_its_timeout(nodes: list[EmbeddedBroker]) -> None:
    late = producer(nodes, "late", **{"transaction.timeout.ms": 1000})
    late.begin_transaction()
    write(late, b"too late")
    writer = producer(nodes, "writer")
    writer.begin_transaction()
    write(writer, b"in time")
    writer.commit_transaction(PATIENCE_S)

    assert committed(nodes, 3) == on_all(b"in time")
    with pytest.raises(KafkaException):
        late.commit_transaction(PATIENCE_S)


def test_followers_know_what_is_committed_and_what_is_aborted(nodes: list[EmbeddedBroker]) -> None:
    leader, follower = (node.broker.topics.partition(TOPIC, 0) for node in nodes[:2])
    dropping, writer = producer(nodes, "dropping"), producer(nodes, "writer")
    dropping.begin_transaction()
    write(dropping, b"dropped")
    writer.begin_transaction()
    write(writer, b"kept")
    writer.commit_transaction(PATIENCE_S)
    until(lambda: follower.high_watermark == leader.high_watermark == 3)
    assert (leader.last_stable_offset, follower.last_stable_offset) == (0, 0)

    dropping.abort_transaction(PATIENCE_S)

    until(lambda: follower.last_stable_offset == leader.last_stable_offset == 4)
    assert follower.log.aborted_transactions(0, 4) == leader.log.aborted_transactions(0, 4) != []


def test_administrators_see_transactions_wherever_they_are(nodes: list[EmbeddedBroker]) -> None:
    names = {f"writer-{number}" for number in range(6)}
    for name in names:
        writer = producer(nodes, name)
        writer.begin_transaction()
        writer.produce(TOPIC, b"x", partition=0)
        writer.commit_transaction(PATIENCE_S)

    kept = [set(listed(node)) for node in nodes]
    assert set.union(*kept) == names
    assert sum(map(len, kept)) == len(names)
    assert sum(bool(each) for each in kept) > 1
    for name in names:
        answers = [described(node, name) for node in nodes]
        assert sorted(answers) == [str(int(ErrorCode.NOT_COORDINATOR))] * 2 + ["CompleteCommit"]


def test_producers_are_described_by_the_partitions_leader(nodes: list[EmbeddedBroker]) -> None:
    writer = producer(nodes, "writer")
    writer.begin_transaction()
    write(writer, b"x")
    request = DescribeProducersRequest(topics=(TopicRequest(name=TOPIC, partition_indexes=(0,)),))

    answers = [ask(node, request).topics[0].partitions[0] for node in nodes]
    assert [each.error_code for each in answers] == [
        0,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
    assert [each.current_txn_start_offset for each in answers[0].active_producers] == [0]
    writer.abort_transaction(PATIENCE_S)


class Apart:
    """A transactional producer that sends requests to the current coordinator and partition leaders."""

    def __init__(self, nodes: list[EmbeddedBroker], transactional_id: str, flow: str) -> None:
        self._nodes = nodes
        coordinator = self._client(coordinator_of(nodes, transactional_id))
        self.producer = Transactional(coordinator, transactional_id, flow)
        self.coordinator = coordinator

    def _client(self, node: EmbeddedBroker) -> RawClient:
        return RawClient(node.bootstrap_servers)

    def send(self, value: bytes, partition: int) -> int:
        """Send to the partition's leader, which is the node at the same index in the list."""
        with self._client(self._nodes[partition]) as self.producer.client:
            error = self.producer.send(TOPIC, value, partition=partition)
        self.producer.client = self.coordinator
        return error

    def close(self) -> None:
        self.coordinator.close()


def coordinator_of(nodes: list[EmbeddedBroker], transactional_id: str) -> EmbeddedBroker:
    def found() -> list[EmbeddedBroker]:
        ask(nodes[0], FindCoordinatorRequest(key=transactional_id, key_type=1), 3)
        return [node for node in nodes if node.broker.transactions.error_for(transactional_id) is ErrorCode.NONE]

    until(found)
    return found()[0]


@pytest.mark.parametrize("flow", [OLD, NEW])
def test_remote_leaders_accept_only_writes_of_an_open_transaction(nodes: list[EmbeddedBroker], flow: str) -> None:
    with closing(Apart(nodes, "raw", flow)) as raw:
        for partition in range(3):
            if flow == OLD:
                assert raw.send(b"not added", partition) == ErrorCode.INVALID_TXN_STATE
                assert raw.producer.add(TOPIC, partition) == ErrorCode.NONE
            assert raw.send(b"kept", partition) == ErrorCode.NONE
        raw.producer.commit()
        if flow == OLD:
            assert raw.send(b"late", 0) == ErrorCode.INVALID_TXN_STATE
        else:
            assert raw.send(b"of the next", 0) == ErrorCode.NONE
            raw.producer.abort()

    assert committed(nodes, 3) == on_all(b"kept")


def test_a_producer_of_an_older_epoch_is_refused_by_remote_leaders(nodes: list[EmbeddedBroker]) -> None:
    with closing(Apart(nodes, "raw", NEW)) as zombie, closing(Apart(nodes, "raw", NEW)) as heir:
        for partition in range(3):
            assert zombie.send(b"of a zombie", partition) == ErrorCode.INVALID_PRODUCER_EPOCH
            assert heir.send(b"of its heir", partition) == ErrorCode.NONE
        heir.producer.commit()

    assert committed(nodes, 3) == on_all(b"of its heir")


def test_a_node_that_is_not_the_coordinator_says_so(nodes: list[EmbeddedBroker]) -> None:
    coordinator = coordinator_of(nodes, "writer")
    request = InitProducerIdRequest(transactional_id="writer", transaction_timeout_ms=1000)

    answers = {node is coordinator: ask(node, request, 4).error_code for node in nodes}

    assert answers == {True: ErrorCode.NONE, False: ErrorCode.NOT_COORDINATOR}


def test_producer_ids_of_different_nodes_are_different(nodes: list[EmbeddedBroker]) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)

    told = [ask(node, request, 4).producer_id for node in nodes for _ in range(3)]

    assert len(set(told)) == len(told)
    assert min(told) >= 0


def ask(node: EmbeddedBroker, request: Any, version: int = 0) -> Any:
    with RawClient(node.bootstrap_servers) as client:
        return client.ask(request, version)


def listed(node: EmbeddedBroker) -> list[str]:
    return [
        each.transactional_id
        for each in ask(node, ListTransactionsRequest(state_filters=(), producer_id_filters=())).transaction_states
    ]


def described(node: EmbeddedBroker, name: str) -> str:
    [found] = ask(node, DescribeTransactionsRequest(transactional_ids=(name,))).transaction_states
    return found.transaction_state if found.error_code == ErrorCode.NONE else str(found.error_code)
