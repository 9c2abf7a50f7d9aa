"""Descriptions of ended transactions and unused share groups by both brokers."""

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

import ottla
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin
from interop.raw_client import RawClient, wait_for_coordinator
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

TOPIC = "described"
PATIENCE_S = 20


@pytest.fixture(scope="module")
def both(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RawClient]]:
    with (
        KafkaBroker(kafka, tmp_path_factory.mktemp("kafka")) as theirs,
        ottla.Broker(tmp_path_factory.mktemp("ottla")) as ours,
        RawClient(theirs.bootstrap) as their_client,
        RawClient(ours.bootstrap_servers) as our_client,
    ):
        clients = [their_client, our_client]
        for client in clients:
            Admin(client.bootstrap).create(TOPIC, 1)
            wait_for_coordinator(client)
        yield clients


def until(ask: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:  # noqa: ANN401
    deadline = time.monotonic() + PATIENCE_S
    while not holds(answer := ask()):
        assert time.monotonic() < deadline, answer
    return answer


def ended_transaction(client: RawClient, *, is_commit: bool) -> tuple[str, bool]:
    """Its state, and whether the time of its start is the one that was told while it was under way."""
    name = uuid.uuid4().hex
    producer = Producer({"bootstrap.servers": client.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(TOPIC, b"v")
    producer.flush(PATIENCE_S)

    def described() -> Any:  # noqa: ANN401
        return client.ask(DescribeTransactionsRequest(transactional_ids=(name,)), 0).transaction_states[0]

    started_ms = described().transaction_start_time_ms
    producer.commit_transaction() if is_commit else producer.abort_transaction()
    ended = until(described, lambda one: one.transaction_state.startswith("Complete"))
    return ended.transaction_state, ended.transaction_start_time_ms == started_ms > 0


@pytest.mark.parametrize("is_commit", [True, False])
def test_both_describe_the_start_of_an_ended_transaction(both: list[RawClient], is_commit: bool) -> None:
    theirs, ours = (ended_transaction(client, is_commit=is_commit) for client in both)
    assert ours == theirs == ("CompleteCommit" if is_commit else "CompleteAbort", True)


def offsets_of_new_share_group(client: RawClient) -> list[tuple[int, int]]:
    group, member = uuid.uuid4().hex, uuid.uuid4().hex
    joining = ShareGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=0, subscribed_topic_names=(TOPIC,)
    )
    assert client.ask(joining, 1).error_code == 0
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)

    def topics() -> Any:  # noqa: ANN401
        return client.ask(DescribeShareGroupOffsetsRequest(groups=(asked,)), 1).groups[0].topics

    [topic] = until(topics, bool)
    return [(part.start_offset, part.lag) for part in topic.partitions]


def test_both_show_no_offsets_of_a_share_group_that_has_read_nothing(both: list[RawClient]) -> None:
    theirs, ours = (offsets_of_new_share_group(client) for client in both)
    assert ours == theirs == [(-1, -1)]
