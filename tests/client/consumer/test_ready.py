"""Which partition is next, and how errors are raised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.client.consumer.ready import ReadyQueues
from ottla.client.errors import BrokerError, SerializationFailed
from ottla.core.errors import ErrorCode

from .making import A, B, C, batch, fill, queue

if TYPE_CHECKING:
    from ottla.client.consumer.partition_queue import PartitionQueue


def line_of(*queues: PartitionQueue) -> ReadyQueues:
    ready = ReadyQueues(lambda _: None)
    for each in queues:
        ready.add(each)
    return ready


def places(records: list[object]) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in records]  # type: ignore[attr-defined]


def test_partitions_take_turns() -> None:
    queues = [queue(at) for at in (A, B, C)]
    for each in queues:
        fill(each, batch(0, 4))
    ready = line_of(*queues)

    assert [places(ready.take(2)) for _ in range(4)] == [
        [(0, 0), (0, 1)],
        [(1, 0), (1, 1)],
        [(2, 0), (2, 1)],
        [(0, 2), (0, 3)],
    ]


def test_one_call_takes_from_as_many_partitions_as_needed() -> None:
    queues = [queue(at) for at in (A, B)]
    for each in queues:
        fill(each, batch(0, 2))

    assert places(line_of(*queues).take(10)) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_an_empty_partition_is_not_in_the_queue() -> None:
    empty, full = queue(A), queue(B)
    fill(full, batch(0))
    ready = line_of(empty, full)

    assert places(ready.take(9)) == [(1, 0)]
    assert ready.take(9) == []
    assert ready.first() is None


def test_a_paused_partition_is_skipped_and_returns_when_resumed() -> None:
    one = queue(A)
    fill(one, batch(0))
    ready = line_of(one)
    one.is_paused = True
    assert ready.take(9) == []

    one.is_paused = False
    ready.add(one)
    ready.add(one)

    assert places(ready.take(9)) == [(0, 0)]


def test_a_partition_with_room_notifies_the_fetcher() -> None:
    told: list[PartitionQueue] = []
    ready = ReadyQueues(told.append)
    one = queue(A, max_buffers=2)
    fill(one, batch(0, 2))
    fill(one, batch(2))
    ready.add(one)

    ready.take(1)
    assert told == []
    ready.take(1)
    assert told == [one]


def test_an_error_is_raised_once_and_the_others_continue() -> None:
    bad, good = queue(A, value_deserializer=int, offset=0), queue(B)
    fill(bad, batch(0))
    damaged = bytearray(batch(0))
    damaged[-2] = ord("x")
    bad.seek(0)
    fill(bad, bytes(damaged))
    fill(good, batch(0))
    ready = line_of(bad, good)

    with pytest.raises(BrokerError, match=r"t-0 at offset 0.*checksum.*seek past it") as raised:
        ready.take(9)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE
    assert places(ready.take(9)) == [(1, 0)]
    assert ready.take(9) == []


def test_a_deserializer_error_names_the_record() -> None:
    def refuse(data: bytes) -> bytes:
        if data == b"1":
            raise ValueError("not this one")
        return data

    one = queue(A, value_deserializer=refuse)
    fill(one, batch(0, 3))
    ready = line_of(one)

    assert places(ready.take(9)) == [(0, 0)]
    with pytest.raises(
        SerializationFailed, match=r"t-0 at offset 1: the deserializer failed with ValueError\('not this one'\)"
    ):
        ready.take(9)
    assert one.position == 1


def test_records_before_an_error_are_returned_first() -> None:
    good, bad = queue(A), queue(B, value_deserializer=lambda _: 1 // 0)
    fill(good, batch(0, 2))
    fill(bad, batch(0))
    ready = line_of(good, bad)

    assert places(ready.take(9)) == [(0, 0), (0, 1)]
    with pytest.raises(SerializationFailed):
        ready.take(9)
