"""Transactions as seen by producers and readers, before and since KIP-890."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

import ottla
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode
from ottla.net.config import NetConfig
from ottla.storage.config import LogConfig
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

from .making import create_topic, delete_topic, produce
from .raw_client import RawClient
from .transacting import NEW, OLD, Transactional, committed_fetch, fetched, visible

if TYPE_CHECKING:
    from pathlib import Path

both_flows = pytest.mark.parametrize("flow", [OLD, NEW])


def test_a_transactional_id_has_a_coordinator(client: RawClient) -> None:
    [found] = client.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=("t",))).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 0)
    [nobody] = client.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=("",))).coordinators
    assert nobody.error_code == ErrorCode.INVALID_REQUEST


@both_flows
def test_records_become_visible_at_commit(client: RawClient, topic: str, flow: str) -> None:
    produce(client, topic, b"before")
    producer = Transactional(client, topic, flow)
    producer.write(topic, b"a", b"b")
    produce(client, topic, b"behind")

    assert visible(client, topic) == [b"before"]
    assert fetched(client, topic).last_stable_offset == 1
    producer.commit()
    assert visible(client, topic) == [b"before", b"a", b"b", b"behind"]
    assert fetched(client, topic).last_stable_offset == 5


@both_flows
def test_an_aborted_transaction_is_listed_with_its_first_offset(client: RawClient, topic: str, flow: str) -> None:
    producer = Transactional(client, topic, flow)
    producer.write(topic, b"a")
    producer.abort()
    data = fetched(client, topic)
    assert [one.first_offset for one in data.aborted_transactions or ()] == [0]
    producer.write(topic, b"b")
    producer.commit()
    # After the aborted transaction there is nothing to filter.
    assert fetched(client, topic, offset=2).aborted_transactions == ()


def test_aborted_transactions_are_listed_in_order_of_their_start(client: RawClient, topic: str) -> None:
    first, second, third = (Transactional(client, f"{topic}-{number}") for number in range(3))
    for one in (first, second, third):
        one.write(topic, one.id.encode())
    third.abort()
    second.commit()
    first.abort()
    aborted = fetched(client, topic).aborted_transactions or ()
    assert [(one.producer_id, one.first_offset) for one in aborted] == [(first.producer_id, 0), (third.producer_id, 2)]


@both_flows
def test_a_waiting_reader_is_woken_by_the_commit(
    client: RawClient, broker: ottla.Broker, topic: str, flow: str
) -> None:
    producer = Transactional(client, topic, flow)
    producer.write(topic, b"a")
    with RawClient(broker.bootstrap_servers) as reader:
        waiting = reader.send(committed_fetch(topic, max_wait_ms=10_000), 12)
        producer.commit()
        [data] = reader.receive(waiting).responses[0].partitions
    assert data.records


def test_the_latest_offset_for_read_committed_is_the_last_stable_offset(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic)
    produce(client, topic, b"x")
    producer.write(topic, b"a")
    wanted = ListOffsetsTopic(name=topic, partitions=(ListOffsetsPartition(partition_index=0, timestamp=-1),))
    for isolation_level, end in ((0, 2), (1, 1)):
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=(wanted,))
        assert client.ask(request).topics[0].partitions[0].offset == end
    producer.abort()


@both_flows
def test_a_new_producer_fences_its_predecessor(client: RawClient, topic: str, flow: str) -> None:
    zombie = Transactional(client, topic, flow)
    zombie.write(topic, b"zombie")
    successor = Transactional(client, topic, flow)
    assert successor.epoch > zombie.epoch

    assert zombie.send(topic, b"more") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.add(topic) == ErrorCode.PRODUCER_FENCED
    assert zombie.add(topic, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.end(is_commit=True, version=3) == ErrorCode.PRODUCER_FENCED
    assert zombie.end(is_commit=True, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    successor.write(topic, b"mine")
    successor.commit()
    data = fetched(client, topic)
    assert len(data.aborted_transactions or ()) == 1


def test_before_kip_890_partitions_must_be_added_first(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic)
    assert producer.send(topic, b"a", version=9) == ErrorCode.INVALID_TXN_STATE
    assert producer.send(topic, b"a", version=11) == ErrorCode.TRANSACTION_ABORTABLE
    assert fetched(client, topic).high_watermark == 0


def test_a_transaction_accepts_nothing_after_its_end(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic)
    producer.write(topic, b"a")
    producer.commit()
    assert producer.send(topic, b"late") == ErrorCode.INVALID_TXN_STATE


def test_if_one_partition_is_unknown_none_is_added(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=topic,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=(
            AddPartitionsToTxnTopic(name=topic, partitions=(0, 7)),
            AddPartitionsToTxnTopic(name="__transaction_state", partitions=(0,)),
        ),
    )
    results = client.ask(request, 3).results_by_topic_v3_and_below
    errors = [part.partition_error_code for result in results for part in result.results_by_partition]
    assert errors == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ]
    assert producer.end(is_commit=True) == ErrorCode.INVALID_TXN_STATE


def test_brokers_can_verify_that_a_partition_is_in_a_transaction(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic)

    def verified(*, verify_only: bool) -> int:
        asked = AddPartitionsToTxnTransaction(
            transactional_id=topic,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=(AddPartitionsToTxnTopic(name=topic, partitions=(0,)),),
        )
        [result] = client.ask(AddPartitionsToTxnRequest(transactions=(asked,))).results_by_transaction
        return result.topic_results[0].results_by_partition[0].partition_error_code

    assert verified(verify_only=True) == ErrorCode.TRANSACTION_ABORTABLE
    assert verified(verify_only=False) == ErrorCode.NONE
    assert verified(verify_only=True) == ErrorCode.NONE


@pytest.mark.parametrize("timeout_ms", [0, 900_001])
def test_a_timeout_above_the_maximum_is_refused(client: RawClient, name: str, timeout_ms: int) -> None:
    answer = client.ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms))
    assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_a_producer_id_without_an_epoch_is_an_invalid_request(client: RawClient, name: str) -> None:
    asked = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000, producer_id=5)
    assert client.ask(asked).error_code == ErrorCode.INVALID_REQUEST


@both_flows
def test_a_transaction_is_aborted_at_its_timeout(
    client: RawClient, broker: ottla.Broker, topic: str, flow: str
) -> None:
    producer = Transactional(client, topic, flow, timeout_ms=300)
    with RawClient(broker.bootstrap_servers) as reader:
        producer.write(topic, b"late")
        waiting = reader.send(committed_fetch(topic, max_wait_ms=10_000), 12)
        [data] = reader.receive(waiting).responses[0].partitions
    assert [one.first_offset for one in data.aborted_transactions or ()] == [0]
    assert producer.end(is_commit=True, version=3) == ErrorCode.PRODUCER_FENCED


def test_a_producer_whose_transaction_timed_out_continues_after_aborting_it(
    client: RawClient, broker: ottla.Broker, topic: str
) -> None:
    producer = Transactional(client, topic, NEW, timeout_ms=1)
    with RawClient(broker.bootstrap_servers) as reader:
        producer.write(topic, b"late")
        reader.receive(reader.send(committed_fetch(topic, max_wait_ms=10_000), 12))
    assert producer.end(is_commit=True) == ErrorCode.INVALID_TXN_STATE
    producer.abort()
    assert producer.send(topic, b"again") == ErrorCode.NONE


@both_flows
def test_a_deleted_topic_does_not_block_the_commit_of_the_others(client: RawClient, topic: str, flow: str) -> None:
    create_topic(client, f"{topic}-doomed")
    producer = Transactional(client, topic, flow)
    producer.write(f"{topic}-doomed", b"x")
    producer.write(topic, b"a")
    delete_topic(client, f"{topic}-doomed")
    producer.commit()
    assert visible(client, topic) == [b"a"]


@both_flows
@pytest.mark.parametrize("flush", ["interval", "ack"])
def test_transaction_states_survive_a_restart(tmp_path: Path, flow: str, flush: Literal["interval", "ack"]) -> None:
    settings = Settings(log=LogConfig(flush=flush), net=NetConfig(port=0))
    with ottla.Broker(tmp_path, settings) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "t")
        done = Transactional(client, "done", flow)
        done.write("t", b"done")
        done.commit()
        under_way = Transactional(client, "open", flow)
        under_way.write("t", b"open")
        aborted = Transactional(client, "aborted", flow)
        aborted.write("t", b"aborted")
        aborted.abort()
    with ottla.Broker(tmp_path, settings) as broker, RawClient(broker.bootstrap_servers) as client:
        assert visible(client, "t") == [b"done"]
        under_way.client = client
        under_way.write("t", b"more")
        under_way.commit()
        data = fetched(client, "t")
        assert [one.producer_id for one in data.aborted_transactions or ()] == [aborted.producer_id]
        assert data.last_stable_offset == data.high_watermark
