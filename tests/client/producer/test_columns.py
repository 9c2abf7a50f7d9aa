"""Producing tables: partitioning and order of rows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.broker import making
from tests.broker.raw_client import RawClient
from tests.client.running import run

import ottla
from ottla.client.client import Client
from ottla.client.errors import ClientClosed, DeliveryFailed, RecordTooLarge, UnknownTopic
from ottla.client.producer.columns import BatchMetadata
from ottla.core.errors import ErrorCode
from ottla.records.murmur2 import partition_of

from .fakes import Leader, producing
from .reading import Stored, read_all, values

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ottla.Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker.bootstrap_servers


def send(servers: str, topic: str, table: Any, partitions: int = 1, **options: Any) -> list[BatchMetadata]:
    with RawClient(servers) as raw:
        making.create_topic(raw, topic, partitions)

    async def scenario() -> list[BatchMetadata]:
        async with Client(servers) as client, client.producer(**options) as producer:
            return await (await producer.send_arrow(topic, table))

    return run(scenario())


def test_every_column_arrives(servers: str) -> None:
    headers = pa.array([[("a", b"1")], []], pa.map_(pa.string(), pa.binary())).cast(
        pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())]))
    )
    table = pa.table(
        {
            "value": pa.array([b"v", None], pa.binary()),
            "key": pa.array([None, "k"], pa.string()),
            "timestamp": pa.array([1000, 2000], pa.timestamp("ms")),
            "headers": headers,
        }
    )

    keyless, keyed = BatchMetadata("columns", 0, 0, 1), BatchMetadata("columns", 0, 1, 1)
    assert send(servers, "columns", table) == [keyless, keyed]
    assert read_all(servers, "columns") == [
        Stored(0, 1000, None, b"v", (("a", b"1"),)),
        Stored(1, 2000, b"k", None, ()),
    ]


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_keys_are_partitioned_like_single_records_in_order(servers: str, compression: Any) -> None:
    topic = f"keys-{compression}"
    keys = [b"%d" % (i % 37) for i in range(5000)]
    table = pa.table({"value": [b"%d" % i for i in range(5000)], "key": keys})

    placed = send(servers, topic, table, partitions=5, compression=compression, producer_max_bytes=8192)

    assert sum(each.count for each in placed) == 5000
    for partition in range(5):
        expected = [b"%d" % i for i in range(5000) if partition_of(keys[i], 5) == partition]
        assert values(servers, topic, partition) == expected


def test_a_partition_column_sets_the_partition(servers: str) -> None:
    table = pa.table({"value": [b"0", b"1", b"2", b"3"], "partition": [2, 0, 2, 0], "key": [b"k"] * 4})

    send(servers, "explicit", table, partitions=3)

    assert [values(servers, "explicit", partition) for partition in range(3)] == [[b"1", b"3"], [], [b"0", b"2"]]


def test_a_custom_partitioner_is_called_for_each_row(servers: str) -> None:
    table = pa.table({"value": [b"a", b"b"], "key": [b"x", None]})

    send(servers, "custom", table, partitions=3, partitioner=lambda key, _partitions: 1 if key else 2)

    assert [values(servers, "custom", partition) for partition in range(3)] == [[], [b"a"], [b"b"]]


def test_rows_without_a_key_are_spread_by_batch(servers: str) -> None:
    table = pa.table({"value": [b"%d" % i for i in range(4000)]})

    placed = send(servers, "anywhere", table, partitions=3, producer_max_bytes=1024)

    assert {each.partition for each in placed} == {0, 1, 2}
    stored = [int(value or b"") for partition in range(3) for value in values(servers, "anywhere", partition)]
    assert sorted(stored) == list(range(4000))


def test_a_record_sent_before_the_table_comes_before_it(servers: str) -> None:
    async def scenario() -> None:
        async with Client(servers) as client, client.producer() as producer:
            await producer.send("mixed", b"before")
            await producer.send_arrow("mixed", pa.record_batch({"value": [b"table"]}))
            await producer.send("mixed", b"after")

    run(scenario())

    assert values(servers, "mixed") == [b"before", b"table", b"after"]


def test_an_empty_table_sends_nothing(servers: str) -> None:
    assert send(servers, "empty", pa.table({"value": pa.array([], pa.binary())})) == []


@pytest.mark.parametrize("partition", [-2, 1])
def test_a_partition_that_does_not_exist_is_refused_before_anything_is_sent(servers: str, partition: int) -> None:
    topic = f"refused{partition}"
    table = pa.table({"value": [b"0", b"1"], "partition": [0, partition]})

    with pytest.raises(UnknownTopic, match="a row has a partition that does not exist"):
        send(servers, topic, table)

    assert values(servers, topic) == []


def test_a_table_without_values_is_refused(servers: str) -> None:
    with pytest.raises(ValueError, match="no column 'value'"):
        send(servers, "valueless", pa.table({"key": [b"k"]}))


def test_a_row_larger_than_a_buffer_is_refused(servers: str) -> None:
    with pytest.raises(RecordTooLarge, match="raise producer_max_bytes"):
        send(servers, "too-large", pa.table({"value": [b"x" * 2000]}), producer_max_bytes=1024)


def test_a_large_table_waits_for_room_and_ends_when_the_producer_closes() -> None:
    async def scenario() -> None:
        leader = Leader()
        gate = asyncio.Event()
        leader.before_answer = lambda _request: gate.wait()
        async with producing(leader, producer_max_bytes=1024) as producer:
            table = pa.table({"value": [b"x" * 500] * 10})
            sending = asyncio.ensure_future(producer.send_arrow("t", table))
            await leader.arrivals.get()
            assert not sending.done()
            closing = asyncio.ensure_future(producer.close())
            await asyncio.sleep(0)
            gate.set()
            with pytest.raises(ClientClosed):
                await sending
            await closing

    run(scenario())


def test_a_failure_is_raised_when_the_table_is_awaited_or_by_flush() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader) as producer:
            leader.refusals = [ErrorCode.INVALID_RECORD]
            await producer.send_arrow("t", pa.table({"value": [b"1", b"2"]}))
            with pytest.raises(DeliveryFailed, match="could not deliver 2 records"):
                await producer.flush()
            leader.refusals = [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE]
            delivery = await producer.send_arrow("t", pa.table({"value": [b"1", b"2"]}))
            with pytest.raises(RecordTooLarge):
                await delivery
            assert delivery.is_done

        assert leader.logs["t", 0] == [b"1"]

    run(scenario())
