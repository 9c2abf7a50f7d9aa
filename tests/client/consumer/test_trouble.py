"""Leader changes, malformed responses and errors in a consumer."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.client.fake_broker import ALL_VERSIONS, serving, topic
from tests.client.running import run

from ottla.client.client import Client
from ottla.client.errors import AuthorizationFailed, BrokerError, OffsetOutOfRange, UnknownTopic, UnsupportedByBroker
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.apis import FETCH
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

from .fake_leader import QUICK, FakeLeader
from .making import batch
from .reading import read, values
from .test_transactions import end, of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ottla.client.consumer.consumer import Consumer

AT = TopicPartition("t", 0)


@asynccontextmanager
async def reading(*brokers: FakeLeader, **options: Any) -> AsyncIterator[Consumer[Any, Any]]:
    for broker in brokers:
        broker.topics = brokers[0].topics or {"t": topic("t")}
    async with (
        serving(*brokers),
        Client(brokers[0].address, **QUICK) as client,
        client.consumer("t", **{"auto_offset_reset": "earliest", "consumer_max_wait_ms": 5, **options}) as consumer,
    ):
        yield consumer


RETRIABLE = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
]


@pytest.mark.parametrize("code", RETRIABLE, ids=str)
def test_a_transient_error_is_retried_silently(code: ErrorCode) -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 3))
        leader.refusals = [code, code]
        async with reading(leader) as consumer:
            assert len(await read(consumer, 3)) == 3

    run(scenario())


def test_a_partition_is_followed_to_its_new_leader() -> None:
    async def scenario() -> None:
        old, new = FakeLeader(batch(0, 2)), FakeLeader(batch(0, 2), batch(2, 2), node_id=1)
        async with reading(old, new) as consumer:
            assert await values(consumer, 2) == [b"0", b"1"]
            old.refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100
            for broker in (old, new):
                broker.topics = {"t": topic("t", leaders=(1,), epoch=1)}
            assert await values(consumer, 2) == [b"2", b"3"]
            assert {fetch.current_leader_epoch for fetch in old.fetches} == {0}
            assert {fetch.current_leader_epoch for fetch in new.fetches} == {1}
            assert new.fetches[0].fetch_offset == 2

    run(scenario())


@pytest.mark.parametrize("refusal", [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER], ids=str)
def test_a_partition_that_moves_during_a_fetch_is_followed_afterwards(refusal: ErrorCode) -> None:
    async def scenario() -> None:
        old, new = FakeLeader(batch(0, 2)), FakeLeader(batch(0, 2), batch(2, 2), node_id=1)
        async with reading(old, new) as consumer:
            assert await values(consumer, 2) == [b"0", b"1"]
            is_asked, may_answer = asyncio.Event(), asyncio.Event()

            async def hold(_: FetchRequest) -> FetchResponse:
                is_asked.set()
                await may_answer.wait()
                answer = PartitionData(
                    partition_index=0, error_code=refusal, high_watermark=2, aborted_transactions=None, records=b""
                )
                return FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=(answer,)),))

            old.handlers[FetchRequest] = hold
            await is_asked.wait()
            for broker in (old, new):
                broker.topics = {"t": topic("t", leaders=(1,), epoch=1)}
            await consumer._router.refresh()  # by another task: the fetcher is not notified
            may_answer.set()
            assert await values(consumer, 2) == [b"2", b"3"]

    run(scenario())


def test_a_broken_connection_is_reopened_and_nothing_is_read_twice() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 2))
        async with reading(leader) as consumer:
            seen = await values(consumer, 2)
            for offset in (2, 3, 4):
                leader.cut_connections()
                leader.batches.append(batch(offset))
                seen += await values(consumer, 1)
            assert seen == [b"0", b"1", b"2", b"3", b"4"]

    run(scenario())


def test_a_deleted_topic_is_reported_once_and_read_again_if_re_created() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 1))
        async with reading(leader) as consumer:
            assert await values(consumer, 1) == [b"0"]
            known, leader.topics = leader.topics, {}
            leader.refusals = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3
            leader.batches.append(batch(1))
            with pytest.raises(UnknownTopic, match="t-0"):
                await consumer.poll(timeout_ms=20_000)
            assert await consumer.poll(timeout_ms=50) == []
            leader.topics = known
            leader.refusals = []
            assert await values(consumer, 1) == [b"1"]

    run(scenario())


def test_a_topic_deleted_before_its_first_offset_lookup_is_reported() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 1))
        leader.list_refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
        async with reading(leader) as consumer:
            known, leader.topics = leader.topics, {}
            with pytest.raises(UnknownTopic, match="t-0"):
                await consumer.poll(timeout_ms=20_000)
            leader.topics = known
            assert await values(consumer, 1) == [b"0"]

    run(scenario())


def test_a_topic_unknown_for_a_short_time_is_not_an_error() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 1))
        leader.refusals = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 4
        async with reading(leader) as consumer:
            assert await values(consumer, 1) == [b"0"]

    run(scenario())


def test_an_authorization_error_is_raised_once_and_retried_after_a_seek() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 1))
        leader.refusals = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        async with reading(leader) as consumer:
            with pytest.raises(AuthorizationFailed, match=r"t-0.*grant the user access"):
                await consumer.poll(timeout_ms=20_000)
            assert await consumer.poll(timeout_ms=20) == []
            consumer.seek(AT, 0)
            assert await values(consumer, 1) == [b"0"]

    run(scenario())


def test_an_offset_out_of_range_is_reset_by_lookup() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 2))
        async with reading(leader) as consumer:
            assert len(await read(consumer, 2)) == 2
            leader.refusals = [ErrorCode.OFFSET_OUT_OF_RANGE]
            assert [record.offset for record in await read(consumer, 2)] == [0, 1]

    run(scenario())


def test_without_a_policy_an_offset_out_of_range_is_raised() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 2))
        async with reading(leader, auto_offset_reset="none") as consumer:
            with pytest.raises(OffsetOutOfRange):
                await consumer.poll(timeout_ms=20_000)
            consumer.seek(AT, 0)
            leader.refusals = [ErrorCode.OFFSET_OUT_OF_RANGE]
            with pytest.raises(OffsetOutOfRange):
                await consumer.poll(timeout_ms=20_000)
            consumer.seek(AT, 1)
            assert await values(consumer, 1) == [b"1"]

    run(scenario())


def test_the_first_offset_lookup_is_retried() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 2))
        leader.list_refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH]
        async with reading(leader) as consumer:
            assert len(await read(consumer, 2)) == 2

    run(scenario())


def test_a_lookup_that_is_refused_is_raised() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 2))
        leader.list_refusals = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        async with reading(leader) as consumer:
            with pytest.raises(AuthorizationFailed):
                await consumer.position(AT)

    run(scenario())


def test_a_fetch_that_fails_as_a_whole_is_sent_again() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 2))
        leader.top_level_errors = [ErrorCode.FETCH_SESSION_ID_NOT_FOUND]
        async with reading(leader) as consumer:
            assert len(await read(consumer, 2)) == 2

    run(scenario())


def test_a_corrupt_batch_is_raised_once_and_can_be_skipped() -> None:
    damaged = bytearray(batch(2))
    damaged[-2] ^= 1

    async def scenario() -> None:
        leader = FakeLeader(batch(0, 2), bytes(damaged), batch(3))
        async with reading(leader) as consumer:
            assert await values(consumer, 2) == [b"0", b"1"]
            with pytest.raises(BrokerError, match=r"t-0 at offset 2.*checksum.*seek past it") as raised:
                await consumer.poll(timeout_ms=20_000)
            assert raised.value.code is ErrorCode.CORRUPT_MESSAGE
            assert await consumer.poll(timeout_ms=20) == []
            consumer.seek(AT, 3)
            assert await values(consumer, 1) == [b"3"]

    run(scenario())


def test_bytes_that_are_not_a_batch_are_raised_once() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 1))
        leader.refusals = [
            PartitionData(
                partition_index=0, error_code=0, high_watermark=9, aborted_transactions=None, records=b"\xff" * 100
            )
        ]
        async with reading(leader) as consumer:
            with pytest.raises(BrokerError, match="t-0 at offset 0"):
                await consumer.poll(timeout_ms=20_000)
            consumer.seek(AT, 0)
            assert await values(consumer, 1) == [b"0"]

    run(scenario())


def test_a_truncated_batch_is_fetched_again_with_a_larger_size() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 100), batch(100, 2))
        async with reading(leader, consumer_max_bytes=10) as consumer:
            assert [record.offset for record in await read(consumer, 102)] == [*range(102)]

    run(scenario())


def test_only_committed_records_are_read() -> None:
    async def scenario(isolation: str) -> list[int]:
        leader = FakeLeader(
            of(1, 0, 2), of(2, 2), batch(3), end(1, 4, is_commit=False), of(1, 5), end(2, 6, is_commit=True),
            end(1, 7, is_commit=True), batch(8),
        )  # fmt: skip
        leader.aborted = [AbortedTransaction(producer_id=1, first_offset=0)]
        async with reading(leader, isolation_level=isolation) as consumer:
            records = await read(consumer, 4 if isolation == "read_committed" else 6)
            assert await consumer.position(AT) == 9
            return [record.offset for record in records]

    assert run(scenario("read_committed")) == [2, 3, 5, 8]
    assert run(scenario("read_uncommitted")) == [0, 1, 2, 3, 5, 8]


def test_the_position_advances_past_aborted_records() -> None:
    async def scenario() -> None:
        leader = FakeLeader(of(1, 0, 2), end(1, 2, is_commit=False))
        leader.aborted = [AbortedTransaction(producer_id=1, first_offset=0)]
        async with reading(leader, isolation_level="read_committed") as consumer:
            while await consumer.position(AT) != 3:
                assert await consumer.poll(timeout_ms=5) == []

    run(scenario())


def test_a_consumer_reads_from_the_replica_that_its_leader_names() -> None:
    async def scenario() -> None:
        leader, near = FakeLeader(), FakeLeader(batch(0, 2), node_id=1)
        leader.refusals = [
            PartitionData(
                partition_index=0,
                error_code=0,
                high_watermark=2,
                aborted_transactions=None,
                preferred_read_replica=1,
                records=b"",
            )
        ]
        async with reading(leader, near, rack="here") as consumer:
            assert await values(consumer, 2) == [b"0", b"1"]
            leader.batches = [batch(0, 2), batch(2)]
            near.refusals = [ErrorCode.OFFSET_OUT_OF_RANGE]
            assert await values(consumer, 1) == [b"2"]

    run(scenario())


def test_an_unsupported_old_broker_is_reported() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0, 2))
        leader.versions = {**ALL_VERSIONS, FETCH.key: (0, 1)}
        async with reading(leader) as consumer:
            with pytest.raises(UnsupportedByBroker, match="supports Fetch versions 0 to 1"):
                await consumer.poll(timeout_ms=20_000)

    run(scenario())


def test_a_throttled_consumer_waits_for_throttle_time_ms() -> None:
    async def scenario() -> None:
        leader = FakeLeader(batch(0))
        async with reading(leader) as consumer:
            await read(consumer, 1)
            leader.throttle_ms = 60_000
            leader.batches.append(batch(1))
            await read(consumer, 1)
            before = len(leader.waits_ms)
            leader.batches.append(batch(2))
            assert await consumer.poll(timeout_ms=50) == []
            assert len(leader.waits_ms) == before

    run(scenario())
