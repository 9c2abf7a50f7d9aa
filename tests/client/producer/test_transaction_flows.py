"""Requests of the transactional producer by the broker's transaction.version (KIP-890)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.client.running import run

from ottla.broker.handlers import api_versions
from ottla.client.client import Client
from ottla.client.errors import ClientError, ProducerFenced, TransactionFailed
from ottla.client.group.interface import Committed, GroupProgress
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.records.batch import read_header
from ottla.testing import broker
from ottla.wire.messages.api_versions import FinalizedFeatureKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.testing.ephemeral import EphemeralBroker

ABOUT_TRANSACTIONS = {"AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "Produce", "EndTxn", "InitProducerId"}


@pytest.fixture
def served() -> Iterator[EphemeralBroker]:
    with broker() as served:
        served.create_topic("t")
        yield served


@pytest.fixture
def older(served: EphemeralBroker, monkeypatch: pytest.MonkeyPatch) -> EphemeralBroker:
    """A broker that announces the previous transaction.version."""
    announced = FinalizedFeatureKey(name="transaction.version", max_version_level=1, min_version_level=1)
    monkeypatch.setattr(api_versions, "_FINALIZED", (announced,))
    return served


def asked(served: EphemeralBroker) -> list[tuple[str, int]]:
    return [(each.api, each.version) for each in served.requests if each.api in ABOUT_TRANSACTIONS]


def epochs(served: EphemeralBroker) -> list[int]:
    return [
        read_header(part.records).producer_epoch
        for each in served.requests.of(api="Produce")
        for topic in each.body.topic_data  # type: ignore[attr-defined]
        for part in topic.partition_data
    ]


def write_twice(served: EphemeralBroker) -> None:
    progress = GroupProgress("group", {TopicPartition("t", 0): Committed(1)})

    async def scenario() -> None:
        async with Client(served.bootstrap_servers) as client, client.producer(transactional_id="id") as producer:
            for number in range(2):
                async with producer.transaction():
                    await producer.send("t", b"%d" % number)
                    await producer.send_offsets(progress)

    run(scenario())


def test_with_transaction_version_2_partitions_are_not_added_first(served: EphemeralBroker) -> None:
    write_twice(served)

    [first, *others] = asked(served)
    assert first[0] == "InitProducerId"
    assert sorted(others) == sorted([("TxnOffsetCommit", 5), ("Produce", 12), ("EndTxn", 5)] * 2)
    assert epochs(served) == [0, 1]


def test_with_transaction_version_1_partitions_are_added_first(older: EphemeralBroker) -> None:
    write_twice(older)

    [first, *others] = asked(older)
    assert first[0] == "InitProducerId"
    announced = [("AddOffsetsToTxn", 3), ("AddPartitionsToTxn", 3)]
    assert sorted(others) == sorted([*announced, ("TxnOffsetCommit", 4), ("Produce", 11), ("EndTxn", 4)] * 2)
    assert epochs(older) == [0, 0]


def test_a_timed_out_transaction_is_lost_and_the_next_one_works(served: EphemeralBroker) -> None:
    async def scenario() -> None:
        async with Client(served.bootstrap_servers) as client, client.producer(transactional_id="id") as producer:
            with pytest.raises(ClientError) as lost:  # noqa: PT012
                async with producer.transaction():
                    await (await producer.send("t", b"in time"))
                    served.clock.advance(producer_timeout_s)
                    await (await producer.send("t", b"too late"))
            assert lost.value.code is ErrorCode.INVALID_PRODUCER_EPOCH  # type: ignore[attr-defined]
            async with producer.transaction():
                await producer.send("t", b"good")

    producer_timeout_s = 3600
    run(scenario())
    assert [record.value for record in served.records("t") if record.value != b"in time"] == [b"good"]


def test_aborting_a_failed_transaction_detects_fencing(served: EphemeralBroker) -> None:
    async def scenario() -> None:
        async with (
            Client(served.bootstrap_servers) as client,
            client.producer(transactional_id="id") as zombie,
            client.producer(transactional_id="id"),
        ):
            with pytest.raises(ProducerFenced):
                async with zombie.transaction():
                    await (await zombie.send("t", b"zombie"))
            with pytest.raises(ProducerFenced):
                async with zombie.transaction():
                    await zombie.send("t", b"zombie")

    run(scenario())
    assert [record.value for record in served.records("t")] == []


def test_aborting_before_anything_was_written_keeps_the_producer_usable(served: EphemeralBroker) -> None:
    async def scenario() -> None:
        async with Client(served.bootstrap_servers) as client, client.producer(transactional_id="id") as producer:
            served.faults.error(ErrorCode.MESSAGE_TOO_LARGE, api="Produce", times=1)
            with pytest.raises(TransactionFailed):
                async with producer.transaction():
                    await producer.send("t", b"refused")
            async with producer.transaction():
                await producer.send("t", b"good")

    run(scenario())
    assert [record.value for record in served.records("t")] == [b"good"]
