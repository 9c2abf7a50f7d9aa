"""End markers of transactions: late duplicates and timestamp lookups, at a real broker and Ottla."""

import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from tests.broker.transacting import NEW, OLD, Transactional, visible

import ottla
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin
from interop.kafka_wire import ask
from ottla.core.errors import ErrorCode
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

MAX_TIMESTAMP = -3
NUMBERS = count(1)
NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class Wire:
    """Sends requests, and retries while the coordinator is not ready or a transaction is still ending."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def ask(self, request: Any, version: int | None = None) -> Any:  # noqa: ANN401
        while True:
            answer = ask(self.bootstrap, request, request.API.last if version is None else version)
            if getattr(answer, "error_code", ErrorCode.NONE) not in NOT_YET:
                return answer


@pytest.fixture(scope="module")
def both(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    folder = tmp_path_factory.mktemp("both")
    with KafkaBroker(kafka, folder) as broker, ottla.Broker(folder / "ottla") as ours:
        yield broker.bootstrap, ours.bootstrap_servers


def producer_on(bootstrap: str, name: str, flow: str) -> Transactional:
    name = f"{name}-{next(NUMBERS)}"
    Admin(bootstrap).create(name)
    wire: Any = Wire(bootstrap)
    found = wire.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=(name,)), 4)
    while found.coordinators[0].error_code:
        found = wire.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=(name,)), 4)
    return Transactional(wire, name, flow)


def write(producer: Transactional, value: bytes) -> None:
    """A new topic may have no leader yet, and the transaction before may not have ended on all partitions."""
    if producer.flow == OLD:
        until_taken(lambda: producer.add(producer.id))
    until_taken(lambda: producer.send(producer.id, value))


def until_taken(attempt: Callable[[], int]) -> None:
    while (error := attempt()) in NOT_YET:
        pass
    assert error == ErrorCode.NONE


def commit(producer: Transactional) -> None:
    """And wait until the partition has its marker, which a real broker writes after its answer; at a later time."""
    now_ms = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= now_ms:
        pass
    until_taken(lambda: producer.end(is_commit=True))
    described = DescribeTransactionsRequest(transactional_ids=(producer.id,))
    while producer.client.ask(described).transaction_states[0].transaction_state != "CompleteCommit":
        pass


def marker_of(producer: Transactional, version: int, *, is_commit: bool) -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=is_commit,
        topics=(WritableTxnMarkerTopic(name=producer.id, partition_indexes=(0,)),),
        coordinator_epoch=0,
        transaction_version=version,
    )
    return WriteTxnMarkersRequest(markers=(marker,))


def late_markers(bootstrap: str, flow: str, version: int) -> list[object]:
    producer = producer_on(bootstrap, f"late-{flow}-{version}", flow)
    wire: Any = producer.client
    write(producer, b"first")
    commit(producer)
    late = marker_of(producer, version, is_commit=False)
    told: list[object] = []
    for value in (None, b"second"):  # doubled at once, and while the next transaction is open
        if value is not None:
            write(producer, value)
        [answer] = wire.ask(late).markers
        told += [answer.topics[0].partitions[0].error_code, visible(wire, producer.id)]
    commit(producer)
    return [*told, visible(wire, producer.id)]


@pytest.mark.parametrize(("flow", "version"), [(NEW, 2), (NEW, 1), (OLD, 1), (OLD, 0)])
def test_late_duplicates_of_an_end_marker_have_the_same_effect(both: tuple[str, str], flow: str, version: int) -> None:
    theirs, ours = (late_markers(bootstrap, flow, version) for bootstrap in both)
    assert ours == theirs


def times(bootstrap: str, flow: str, deleted: int) -> list[tuple[int, ...]]:
    """The newest record, which is a marker, what its time leads to, and what a later one does."""
    producer = producer_on(bootstrap, f"times-{flow}-{deleted}", flow)
    wire: Any = producer.client
    for value in (b"a", b"b"):
        write(producer, value)
        commit(producer)
    if deleted:
        part = DeleteRecordsPartition(partition_index=0, offset=deleted)
        topic = DeleteRecordsTopic(name=producer.id, partitions=(part,))
        wire.ask(DeleteRecordsRequest(topics=(topic,), timeout_ms=30_000))
    newest = found(wire, producer.id, MAX_TIMESTAMP)
    return [newest[1:], found(wire, producer.id, newest[0])[1:], found(wire, producer.id, newest[0] + 1)]


def found(wire: Wire, topic: str, timestamp: int) -> tuple[int, int, int]:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wanted,)),))
    [answer] = wire.ask(request, 9).topics[0].partitions
    return answer.timestamp, answer.offset, answer.error_code


@pytest.mark.parametrize("flow", [OLD, NEW])
@pytest.mark.parametrize("deleted", [0, 1, 3])
def test_timestamp_lookups_find_end_markers_like_records(both: tuple[str, str], flow: str, deleted: int) -> None:
    theirs, ours = (times(bootstrap, flow, deleted) for bootstrap in both)
    assert ours == theirs
