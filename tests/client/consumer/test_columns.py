"""Records as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.broker.making import create_topic, produce
from tests.client.running import run

from ottla.client.consumer.columns import SCHEMA, take_columns
from ottla.client.consumer.ready import ReadyQueues
from ottla.client.errors import BrokerError, ClientError
from ottla.core.ids import TopicPartition

from .making import A, B, batch, fill, queue
from .reading import PATIENCE_MS, consuming, values

if TYPE_CHECKING:
    import pyarrow as pa
    from tests.broker.raw_client import RawClient

    from ottla.client.consumer.consumer import Consumer
    from ottla.client.consumer.partition_queue import PartitionQueue


def line_of(*queues: PartitionQueue) -> ReadyQueues:
    ready = ReadyQueues(lambda _: None)
    for each in queues:
        ready.add(each)
    return ready


def places(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def test_all_ready_records_are_returned_in_one_table() -> None:
    one, two = queue(A), queue(B, offset=6)
    fill(one, batch(0, 2))
    fill(one, batch(2))
    fill(two, batch(5, 3))

    table, starts = take_columns(line_of(one, two), 1 << 20, check_crcs=True)

    assert table.schema == SCHEMA
    assert places(table) == [(0, 0), (0, 1), (1, 6), (1, 7), (0, 2)]
    assert table["topic"].to_pylist() == ["t"] * 5
    assert table["value"].to_pylist() == [b"0", b"1", b"6", b"7", b"2"]
    assert starts == {A: 0, B: 6}
    assert (one.position, two.position) == (3, 8)


def test_a_limit_returns_only_the_first_buffer() -> None:
    one = queue(A)
    fill(one, batch(0, 2))
    fill(one, batch(2))
    ready = line_of(one)

    assert places(take_columns(ready, 1, check_crcs=True)[0]) == [(0, 0), (0, 1)]
    assert places(take_columns(ready, 1, check_crcs=True)[0]) == [(0, 2)]
    assert take_columns(ready, 1, check_crcs=True)[0].num_rows == 0


def test_records_before_a_corrupt_batch_are_returned_first_and_the_error_is_raised_once() -> None:
    one = queue(A)
    damaged = bytearray(batch(2))
    damaged[-2] ^= 1
    fill(one, batch(0, 2) + bytes(damaged))
    ready = line_of(one)

    assert places(take_columns(ready, 1 << 20, check_crcs=True)[0]) == [(0, 0), (0, 1)]
    with pytest.raises(BrokerError, match=r"t-0 at offset 2.*checksum"):
        take_columns(ready, 1 << 20, check_crcs=True)
    assert take_columns(ready, 1 << 20, check_crcs=True)[0].num_rows == 0


def test_checksum_validation_can_be_disabled() -> None:
    one = queue(A)
    damaged = bytearray(batch(0))
    damaged[-2] ^= 1
    fill(one, bytes(damaged))

    assert take_columns(line_of(one), 1 << 20, check_crcs=False)[0].num_rows == 1


async def rows(consumer: Consumer[bytes, bytes], count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        table = await consumer.fetch_arrow(timeout_ms=PATIENCE_MS)
        assert table.num_rows
        found += table["value"].to_pylist()
    return found


def test_a_consumer_can_alternate_between_columns_and_records(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)
    produce(raw, name, *(b"%d" % number for number in range(10)))

    async def scenario() -> None:
        async with consuming(servers, name) as consumer:
            assert await values(consumer, 2) == [b"0", b"1"]
            async for record in consumer:
                assert record.value == b"2"
                break
            assert await rows(consumer, 7) == [b"%d" % number for number in range(3, 10)]
            assert await consumer.position(TopicPartition(name, 0)) == 10
            empty = await consumer.fetch_arrow(timeout_ms=10)
            assert (empty.num_rows, empty.schema) == (0, SCHEMA)

    run(scenario())


def test_tables_of_many_partitions_have_every_record_once(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name, partitions=3)
    for number in range(60):
        produce(raw, name, b"%d" % number, partition=number % 3)

    async def scenario() -> None:
        async with consuming(servers, name) as consumer:
            assert sorted(map(int, await rows(consumer, 60))) == [*range(60)]

    run(scenario())


def test_columns_are_not_merged(servers: str, raw: RawClient, name: str) -> None:
    create_topic(raw, name)

    async def scenario() -> None:
        async with consuming(servers, name, ordered=True) as consumer:
            with pytest.raises(ClientError, match="does not merge"):
                await consumer.fetch_arrow()

    run(scenario())
