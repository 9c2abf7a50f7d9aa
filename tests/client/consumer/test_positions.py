"""Positions of a consumer: seek, reset, pause, lag."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.broker.making import batch, create_topic, produce, send_batch
from tests.client.running import run

from ottla.client.errors import OffsetOutOfRange, UnknownTopic
from ottla.core.ids import TopicPartition
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

from .reading import consuming, read, values

if TYPE_CHECKING:
    from tests.broker.raw_client import RawClient


@pytest.fixture
def at(raw: RawClient, name: str) -> TopicPartition:
    """The only partition of a topic with two batches of five messages each."""
    create_topic(raw, name)
    for first in (0, 5):
        produce(raw, name, *(b"%d" % number for number in range(first, first + 5)))
    return TopicPartition(name, 0)


def delete_before(raw: RawClient, at: TopicPartition, offset: int) -> None:
    part = DeleteRecordsPartition(partition_index=at.partition, offset=offset)
    topic = DeleteRecordsTopic(name=at.topic, partitions=(part,))
    raw.ask(DeleteRecordsRequest(topics=(topic,), timeout_ms=1000))


@pytest.mark.parametrize("offset", range(10))
def test_reading_starts_at_any_offset_even_inside_a_batch(servers: str, at: TopicPartition, offset: int) -> None:
    async def scenario() -> None:
        async with consuming(servers) as consumer:
            await consumer.assign([at])
            consumer.seek(at, offset)
            assert await values(consumer, 10 - offset) == [b"%d" % number for number in range(offset, 10)]

    run(scenario())


def test_seeking_back_and_forth(servers: str, at: TopicPartition) -> None:
    async def scenario() -> None:
        async with consuming(servers, at.topic) as consumer:
            assert await values(consumer, 3) == [b"0", b"1", b"2"]
            consumer.seek(at, 8)
            assert await values(consumer, 2) == [b"8", b"9"]
            consumer.seek_to_beginning(at)
            assert await consumer.position(at) == 0
            assert await values(consumer, 1) == [b"0"]
            consumer.seek_to_end()
            assert await consumer.position(at) == 10
            assert await consumer.poll(timeout_ms=20) == []
            consumer.seek_to_beginning()
            assert len(await read(consumer, 10)) == 10
            with pytest.raises(ValueError, match="cannot be negative, got -1"):
                consumer.seek(at, -1)

    run(scenario())


def test_a_seek_while_iterating_takes_effect_at_once(servers: str, at: TopicPartition) -> None:
    async def scenario() -> None:
        async with consuming(servers, at.topic) as consumer:
            seen = []
            async for record in consumer:
                seen.append(record.offset)
                if record.offset == 2 and len(seen) == 3:
                    consumer.seek(at, 7)
                if record.offset == 9:
                    break
            assert seen == [0, 1, 2, 7, 8, 9]

    run(scenario())


def test_the_position_is_that_of_the_next_message_to_be_handed_out(servers: str, at: TopicPartition) -> None:
    async def scenario() -> None:
        async with consuming(servers, at.topic) as consumer:
            assert await consumer.position(at) == 0
            async for record in consumer:
                assert await consumer.position(at) == record.offset + 1
                assert await consumer.lag(at) == 9 - record.offset
                if record.offset == 6:
                    break

    run(scenario())


def test_the_lag_is_known_before_the_first_message(servers: str, at: TopicPartition) -> None:
    async def scenario() -> None:
        async with consuming(servers, at.topic) as consumer:
            assert await consumer.lag(at) == 10

    run(scenario())


def test_a_paused_partition_is_not_read_and_loses_nothing(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name, partitions=2)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    for partition in range(2):
        produce(raw, name, *(b"%d" % number for number in range(5)), partition=partition)

    async def scenario() -> None:
        async with consuming(servers, name) as consumer:
            async for record in consumer:
                if record.partition == first.partition and record.offset == 1:
                    break
            consumer.pause(first)
            assert consumer.paused == {first}
            assert await consumer.position(first) == 2
            left = 5 - await consumer.position(second)
            assert {record.partition for record in await read(consumer, left)} <= {1}
            assert await consumer.poll(timeout_ms=20) == []
            consumer.resume(first)
            assert consumer.paused == frozenset()
            assert await values(consumer, 3) == [b"2", b"3", b"4"]
            consumer.pause()
            assert consumer.paused == {first, second}

    run(scenario())


def test_latest_starts_with_new_records(servers: str, raw: RawClient, at: TopicPartition) -> None:
    async def scenario() -> None:
        async with consuming(servers, at.topic, auto_offset_reset="latest") as consumer:
            assert await consumer.position(at) == 10
            await asyncio.to_thread(produce, raw, at.topic, b"new")
            assert await values(consumer, 1) == [b"new"]

    run(scenario())


def test_without_a_reset_policy_a_missing_offset_is_an_error(servers: str, at: TopicPartition) -> None:
    async def scenario() -> None:
        async with consuming(servers, at.topic, auto_offset_reset="none") as consumer:
            with pytest.raises(OffsetOutOfRange, match=r"has no valid offset.*seek"):
                await consumer.poll()
            assert await consumer.poll(timeout_ms=20) == []
            consumer.seek(at, 9)
            assert await values(consumer, 1) == [b"9"]

    run(scenario())


def test_an_offset_out_of_range_is_reset_by_policy(servers: str, raw: RawClient, at: TopicPartition) -> None:
    delete_before(raw, at, 7)

    async def scenario(policy: str) -> list[bytes]:
        async with consuming(servers, auto_offset_reset=policy) as consumer:
            await consumer.assign([at])
            consumer.seek(at, 2)
            if policy == "latest":
                while await consumer.position(at) != 10:
                    assert await consumer.poll(timeout_ms=10) == []
                return []
            return await values(consumer, 3)

    assert run(scenario("earliest")) == [b"7", b"8", b"9"]
    assert run(scenario("latest")) == []
    with pytest.raises(OffsetOutOfRange):
        run(scenario("none"))


def test_buffered_messages_are_returned_after_the_log_start_moved_past_them(
    servers: str, raw: RawClient, at: TopicPartition
) -> None:
    async def scenario() -> None:
        async with consuming(servers, at.topic, consumer_max_bytes=1) as consumer:
            assert await values(consumer, 2) == [b"0", b"1"]
            await asyncio.to_thread(delete_before, raw, at, 10)
            await asyncio.to_thread(produce, raw, at.topic, b"10")
            rest = await values(consumer, 3)
            assert rest == [b"2", b"3", b"4"]
            while (last := await values(consumer, 1)) != [b"10"]:
                assert last[0] in (b"5", b"6", b"7", b"8", b"9")

    run(scenario())


def test_offsets_are_looked_up_by_time_and_at_both_ends(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name, partitions=2)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    for time_ms in (1000, 2000, 3000):
        send_batch(raw, name, batch(b"x", timestamp_ms=time_ms))

    async def scenario() -> None:
        async with consuming(servers) as consumer:
            assert await consumer.beginning_offsets(first, second) == {first: 0, second: 0}
            assert await consumer.end_offsets(first, second) == {first: 3, second: 0}
            assert await consumer.offsets_for_times({first: 1500, second: 0}) == {first: 1, second: None}
            assert await consumer.offsets_for_times({first: 3001}) == {first: None}
            assert await consumer.end_offsets() == {}
            with pytest.raises(UnknownTopic, match="nowhere"):
                await consumer.end_offsets(TopicPartition("nowhere", 0))

    run(scenario())
