"""Administration of transactions: describe, list, abort."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ErrorCode
from ottla.wire.messages import describe_producers
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

from .transacting import NEW, OLD, Transactional, visible

if TYPE_CHECKING:
    from .raw_client import RawClient


def listed(client: RawClient, **filters: object) -> dict[str, str]:
    asked = ListTransactionsRequest(**{"state_filters": (), "producer_id_filters": ()} | filters)  # type: ignore[arg-type]
    answer = client.ask(asked)
    assert answer.error_code == ErrorCode.NONE
    return {one.transactional_id: one.transaction_state for one in answer.transaction_states}


def test_an_open_transaction_is_described(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic, timeout_ms=5000)
    producer.write(topic, b"a")
    [described] = client.ask(DescribeTransactionsRequest(transactional_ids=(topic,))).transaction_states
    assert (described.error_code, described.transaction_state) == (ErrorCode.NONE, "Ongoing")
    assert (described.producer_id, described.producer_epoch) == (producer.producer_id, producer.epoch)
    assert described.transaction_timeout_ms == 5000
    assert described.transaction_start_time_ms > 0
    assert [(each.topic, each.partitions) for each in described.topics] == [(topic, (0,))]


@pytest.mark.parametrize(
    ("unknown", "error"), [("nobody", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), ("", ErrorCode.INVALID_REQUEST)]
)
def test_an_unknown_transactional_id_is_reported(client: RawClient, unknown: str, error: ErrorCode) -> None:
    [described] = client.ask(DescribeTransactionsRequest(transactional_ids=(unknown,))).transaction_states
    assert described.error_code == error


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_transaction_that_has_ended_is_shown_with_its_start(client: RawClient, topic: str, is_commit: bool) -> None:
    def described() -> tuple[str, int]:
        [one] = client.ask(DescribeTransactionsRequest(transactional_ids=(topic,))).transaction_states
        return one.transaction_state, one.transaction_start_time_ms

    producer = Transactional(client, topic)
    assert described() == ("Empty", -1)
    producer.write(topic, b"a")
    started_ms = described()[1]
    producer.commit() if is_commit else producer.abort()
    assert described() == ("CompleteCommit" if is_commit else "CompleteAbort", started_ms)


def test_transactions_are_listed_by_state_producer_age_and_name(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic)
    idle = Transactional(client, topic + "-idle")
    producer.write(topic, b"a")
    assert listed(client)[topic] == "Ongoing"
    assert topic + "-idle" not in listed(client, state_filters=("Ongoing",))
    assert listed(client, producer_id_filters=(idle.producer_id,)) == {topic + "-idle": "Empty"}
    assert listed(client, transactional_id_pattern=topic + "-i.*") == {topic + "-idle": "Empty"}
    assert topic not in listed(client, duration_filter=3_600_000)
    producer.commit()
    assert listed(client)[topic] == "CompleteCommit"


def test_unknown_filters_are_reported(client: RawClient) -> None:
    asked = ListTransactionsRequest(state_filters=("Ongoing", "Odd"), producer_id_filters=())
    assert client.ask(asked).unknown_state_filters == ("Odd",)
    broken = ListTransactionsRequest(state_filters=(), producer_id_filters=(), transactional_id_pattern="(")
    assert client.ask(broken).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def producers_of(client: RawClient, topic: str, partition: int = 0) -> describe_producers.PartitionResponse:
    wanted = describe_producers.TopicRequest(name=topic, partition_indexes=(partition,))
    [answer] = client.ask(describe_producers.DescribeProducersRequest(topics=(wanted,))).topics
    return answer.partitions[0]


def test_the_producers_of_a_partition_are_described(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic)
    producer.write(topic, b"a", b"b")
    [known] = producers_of(client, topic).active_producers
    assert (known.producer_id, known.producer_epoch, known.last_sequence) == (producer.producer_id, 0, 1)
    assert known.current_txn_start_offset == 0
    producer.commit()
    [known] = producers_of(client, topic).active_producers
    assert (known.current_txn_start_offset, known.coordinator_epoch) == (-1, 0)
    assert producers_of(client, topic, 7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_administrator_can_abort_a_hanging_transaction(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic)
    producer.write(topic, b"a")
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(0, 7)),),
        coordinator_epoch=0,
    )
    [result] = client.ask(WriteTxnMarkersRequest(markers=(marker,))).markers
    errors = [part.error_code for part in result.topics[0].partitions]
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert producers_of(client, topic).active_producers[0].current_txn_start_offset == -1
    assert visible(client, topic) == []


@pytest.mark.parametrize(("flow", "version"), [(NEW, 2), (OLD, 1)])
def test_a_late_duplicate_end_marker_is_fenced_by_its_epoch(
    client: RawClient, topic: str, flow: str, version: int
) -> None:
    producer = Transactional(client, topic, flow)
    producer.write(topic, b"first")
    producer.commit()
    late = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(0,)),),
        coordinator_epoch=0,
        transaction_version=version,
    )
    producer.write(topic, b"second")

    [result] = client.ask(WriteTxnMarkersRequest(markers=(late,))).markers

    # Before KIP-890 they cannot be told apart, in Kafka either.
    expected = ErrorCode.INVALID_PRODUCER_EPOCH if flow == NEW else ErrorCode.NONE
    assert result.topics[0].partitions[0].error_code == expected
    producer.commit()
    assert visible(client, topic) == ([b"first", b"second"] if flow == NEW else [b"first"])
