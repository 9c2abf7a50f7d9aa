"""Reading from a real broker: records, order, latency."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.broker.making import batch, create_topic, produce, send_batch
from tests.client.running import LOOPS, run

from ottla.client.client import Client
from ottla.client.errors import ClientClosed, ClientError, SerializationFailed, UnknownTopic
from ottla.client.serializers import decode_json, decode_text
from ottla.core.ids import TopicPartition
from ottla.records.encode import BatchBuilder
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

from .reading import FOR_EVER_MS, PATIENCE_MS, consuming, read, soon, values

if TYPE_CHECKING:
    from tests.broker.raw_client import RawClient

    from ottla.client.consumer.consumer import Consumer


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("codec", range(5))
def test_records_are_read_as_written(servers: str, raw: RawClient, name: str, codec: int, loop: str) -> None:
    create_topic(raw, name)
    builder = BatchBuilder(codec)
    builder.append(1700, b"key", b"value", [("header", b"1"), ("null", None)])
    builder.append(1701, None, None)
    send_batch(raw, name, bytes(builder.build()))

    async def scenario() -> None:
        async with consuming(servers, name) as consumer:
            first, second = await read(consumer, 2)
            assert (first.topic, first.partition, first.offset, first.timestamp) == (name, 0, 0, 1700)
            assert (first.key, first.value) == (b"key", b"value")
            assert first.headers == (("header", b"1"), ("null", None))
            assert not first.is_log_append_time
            assert (second.offset, second.key, second.value, second.headers) == (1, None, None, ())

    run(scenario(), LOOPS[loop])


def test_all_partitions_are_read_and_each_in_order(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name, partitions=3)
    for number in range(30):
        produce(raw, name, b"%d" % number, partition=number % 3)

    async def scenario() -> None:
        async with consuming(servers, name) as consumer:
            records = await read(consumer, 30, at_a_time=7)
            for partition in range(3):
                assert [int(each.value) for each in records if each.partition == partition] == [
                    *range(partition, 30, 3)
                ]

    run(scenario())


def test_iteration_continues_where_it_stopped(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)
    produce(raw, name, *(b"%d" % number for number in range(10)))
    at = TopicPartition(name, 0)

    async def scenario() -> None:
        async with consuming(servers, name) as consumer:
            seen = []
            async for record in consumer:
                seen.append(record.value)
                if len(seen) == 4:
                    break
            assert await consumer.position(at) == 4
            async for record in consumer:
                seen.append(record.value)
                if len(seen) == 7:
                    break
            assert await values(consumer, 3) == [b"7", b"8", b"9"]
            assert seen == [b"%d" % number for number in range(7)]

    run(scenario())


def test_a_poll_returns_at_most_max_records_or_nothing_at_its_timeout(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)
    produce(raw, name, *(b"%d" % number for number in range(5)))

    async def scenario() -> None:
        async with consuming(servers, name) as consumer:
            sizes = [len(await consumer.poll(2, PATIENCE_MS)) for _ in range(3)]
            assert sizes == [2, 2, 1]
            assert await soon(consumer.poll(2, 10)) == []
            assert await soon(consumer.poll(2, 0)) == []
            with pytest.raises(ValueError, match="max_records must be at least 1"):
                await consumer.poll(0)

    run(scenario())


def test_the_newest_message_of_a_quiet_topic_arrives_at_once(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name, partitions=2)

    async def scenario() -> None:
        async with consuming(servers, name, consumer_max_wait_ms=FOR_EVER_MS) as consumer:
            assert await consumer.poll(timeout_ms=50) == []
            for number in range(6):
                await asyncio.to_thread(produce, raw, name, b"%d" % number, partition=number % 2)
                assert await values(consumer, 1) == [b"%d" % number]

    run(scenario())


def test_nothing_waits_for_the_end_of_a_long_poll(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name, partitions=2)
    produce(raw, name, *(b"%d" % number for number in range(10)))
    at = TopicPartition(name, 0)

    async def scenario() -> None:
        async with consuming(servers, name, consumer_max_wait_ms=FOR_EVER_MS) as consumer:
            await read(consumer, 10)
            assert await consumer.poll(timeout_ms=50) == []
            for offset in (3, 8, 0):
                consumer.seek(at, offset)
                assert (await soon(consumer.poll(1)))[0].offset == offset

    run(scenario())


def test_a_busy_partition_does_not_wait_for_quiet_ones(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name, partitions=3)
    for _ in range(40):
        produce(raw, name, *[b"x" * 1000] * 10, partition=1)

    async def scenario() -> None:
        options = {"consumer_max_wait_ms": FOR_EVER_MS, "consumer_max_bytes": 20_000}
        async with consuming(servers, name, **options) as consumer:
            records = await soon(read(consumer, 400, at_a_time=3))
            assert [record.offset for record in records] == [*range(400)]

    run(scenario())


def test_a_batch_larger_than_a_buffer_is_delivered(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name, partitions=2)
    for partition in range(2):
        produce(raw, name, b"x" * 50_000, b"y" * 50_000, partition=partition)
        produce(raw, name, b"small", partition=partition)

    async def scenario() -> None:
        async with consuming(servers, name, consumer_max_bytes=100) as consumer:
            assert sorted(map(len, await values(consumer, 6))) == [5, 5, 50_000, 50_000, 50_000, 50_000]

    run(scenario())


def test_partitions_added_later_are_read_from_the_beginning(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)

    async def scenario() -> None:
        async with consuming(servers, name, auto_offset_reset="latest") as consumer:
            assert await consumer.poll(timeout_ms=20) == []
            more = CreatePartitionsTopic(name=name, count=3, assignments=None)
            await asyncio.to_thread(
                raw.ask, CreatePartitionsRequest(topics=(more,), timeout_ms=1000, validate_only=False)
            )
            await asyncio.to_thread(produce, raw, name, b"first", partition=2)
            await consumer._router.refresh([name])
            assert await values(consumer, 1) == [b"first"]
            assert len(consumer.assignment) == 3

    run(scenario())


def test_a_pattern_also_matches_topics_created_later(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, f"{name}-a")
    produce(raw, f"{name}-a", b"a")

    async def scenario() -> None:
        async with consuming(servers) as consumer:
            await consumer.subscribe(pattern=f"{name}-.")
            assert await values(consumer, 1) == [b"a"]
            await asyncio.to_thread(create_topic, raw, f"{name}-b")
            await asyncio.to_thread(produce, raw, f"{name}-b", b"b")
            await consumer._router.refresh()
            assert await values(consumer, 1) == [b"b"]

    run(scenario())


def test_another_subscription_replaces_the_first(servers: str, raw: RawClient, name: str) -> None:
    for topic in ("a", "b"):
        create_topic(raw, f"{name}-{topic}")
        produce(raw, f"{name}-{topic}", b"1", b"2")

    async def scenario() -> None:
        async with consuming(servers, f"{name}-a") as consumer:
            await read(consumer, 1)
            await consumer.subscribe(f"{name}-b")
            assert [record.topic for record in await read(consumer, 2)] == [f"{name}-b"] * 2
            await consumer.unsubscribe()
            assert consumer.assignment == frozenset()
            with pytest.raises(ClientError, match="no topics or partitions; subscribe"):
                await consumer.poll()

    run(scenario())


def test_an_unknown_topic_is_an_error_at_once(servers: str, name: str) -> None:
    async def scenario() -> None:
        with pytest.raises(UnknownTopic, match=name):
            async with consuming(servers, name):
                pass

    run(scenario())


def test_an_unknown_partition_cannot_be_assigned(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)

    async def scenario() -> None:
        async with consuming(servers) as consumer:
            with pytest.raises(UnknownTopic, match=rf"no partition {name}-7 \(the topic has 1\)"):
                await consumer.assign([TopicPartition(name, 7)])
            with pytest.raises(ClientError, match=f"{name}-0 is not assigned to this consumer; assigned: nothing"):
                consumer.seek(TopicPartition(name, 0), 0)

    run(scenario())


def test_a_reassigned_partition_keeps_its_position(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name, partitions=2)
    for partition in range(2):
        produce(raw, name, b"0", b"1", partition=partition)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)

    async def scenario() -> None:
        async with consuming(servers) as consumer:
            await consumer.assign([first])
            await read(consumer, 1)
            await consumer.assign([first, second])
            assert sorted((each.partition, each.offset) for each in await read(consumer, 3)) == [(0, 1), (1, 0), (1, 1)]
            await consumer.assign([second])
            assert consumer.assignment == {second}

    run(scenario())


def test_keys_and_values_are_deserialized(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)
    send_batch(raw, name, batch(b'{"a": 1}', b"[2]", key=b"k"))

    async def scenario() -> None:
        async with consuming(servers, name, key_deserializer=decode_text, value_deserializer=decode_json) as consumer:
            assert [(each.key, each.value) for each in await read(consumer, 2)] == [("k", {"a": 1}), ("k", [2])]

    run(scenario())


async def read_into(seen: list[int], consumer: Consumer[bytes, int]) -> None:
    while True:
        seen += await values(consumer, 1)


def test_a_message_that_cannot_be_deserialized_is_raised_once_and_can_be_skipped(
    servers: str, raw: RawClient, name: str
) -> None:
    create_topic(raw, name, partitions=2)
    produce(raw, name, b"1", b"no number", b"3")
    produce(raw, name, b"4", partition=1)
    at = TopicPartition(name, 0)

    async def scenario() -> None:
        async with consuming(servers, name, value_deserializer=int) as consumer:
            seen: list[int] = []
            with pytest.raises(SerializationFailed, match=f"{name}-0 at offset 1"):
                await read_into(seen, consumer)
            seen += await values(consumer, 2 - len(seen))
            assert sorted(seen) == [1, 4]
            assert await consumer.poll(timeout_ms=20) == []
            consumer.seek(at, await consumer.position(at) + 1)
            assert await values(consumer, 1) == [3]

    run(scenario())


def test_a_poll_that_is_cancelled_loses_nothing(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)

    async def scenario() -> None:
        async with consuming(servers, name) as consumer:
            seen: list[bytes] = []
            for number in range(20):
                await asyncio.to_thread(produce, raw, name, b"%d" % number)
                poll = asyncio.create_task(consumer.poll(1))
                for _ in range(number):  # cancelled at a different point each time
                    await asyncio.sleep(0)
                poll.cancel()
                with suppress(asyncio.CancelledError):
                    seen += [record.value for record in await poll]
            seen += await values(consumer, 20 - len(seen))
            assert seen == [b"%d" % number for number in range(20)]

    run(scenario())


def test_closing_wakes_waiting_calls_and_ends_the_consumer(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)

    async def scenario() -> None:
        async with consuming(servers, name) as consumer:
            waiting = asyncio.create_task(consumer.poll())
            await consumer.poll(timeout_ms=5)
            await consumer.close()
            with pytest.raises(ClientClosed, match="closed while it waited"):
                await soon(waiting)
            await consumer.close()
            with pytest.raises(ClientClosed, match="create a new one"):
                await consumer.poll()
            with pytest.raises(ClientClosed, match="create a new one"):
                consumer.seek_to_end()

    run(scenario())


def test_a_consumer_can_be_closed_twice_concurrently(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)

    async def scenario() -> None:
        async with consuming(servers, name, group=name) as consumer:
            await consumer.poll(timeout_ms=5)
            await asyncio.gather(consumer.close(), consumer.close())
            assert consumer.is_closed

    run(scenario())


def test_a_consumer_starts_at_its_first_poll(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)
    produce(raw, name, b"1")

    async def scenario() -> None:
        async with Client(servers) as client:
            consumer = client.consumer(name, auto_offset_reset="earliest")
            with pytest.raises(ClientError, match="has not been started"):
                consumer.pause()
            assert await values(consumer, 1) == [b"1"]

    run(scenario())


def test_consumers_of_one_client_do_not_wait_for_each_other(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)
    create_topic(raw, f"{name}-quiet")

    async def scenario() -> None:
        async with (
            Client(servers) as client,
            client.consumer(f"{name}-quiet", consumer_max_wait_ms=FOR_EVER_MS) as quiet,
            client.consumer(name, auto_offset_reset="earliest", consumer_max_wait_ms=FOR_EVER_MS) as busy,
        ):
            assert await quiet.poll(timeout_ms=50) == []
            for number in range(3):
                await asyncio.to_thread(produce, raw, name, b"%d" % number)
                assert await values(busy, 1) == [b"%d" % number]

    run(scenario())


def test_many_partitions_are_read_in_timestamp_order(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name, partitions=3)
    for number in range(60):
        send_batch(raw, name, batch(b"%d" % number, timestamp_ms=1000 + number), partition=(number * 7) % 3)

    async def scenario() -> None:
        async with consuming(servers, name, ordered=True, consumer_max_bytes=200) as consumer:
            assert [int(each.value) for each in await read(consumer, 60, at_a_time=7)] == [*range(60)]
            consumer.seek_to_beginning()
            seen = []
            async for record in consumer:
                seen.append(int(record.value))
                if len(seen) == 60:
                    break
            assert seen == [*range(60)]
            assert await consumer.position(TopicPartition(name, 0)) == 20

    run(scenario())
