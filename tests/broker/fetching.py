"""Fetch requests, sent raw."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from ottla.records.reader import RecordReader
from ottla.wire.apis import FETCH
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    import ottla
    from ottla.broker.partition import Partition

    from .making import Topic
    from .raw_client import RawClient

VERSIONS = range(FETCH.first, FETCH.last + 1)
EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
BY_ID_SINCE = 13
MIB = 1 << 20
LONG_MS = 30_000

T = TypeVar("T")


def wanted(offset: int = 0, partition: int = 0, **more: int) -> FetchPartition:
    return FetchPartition(**{"partition": partition, "fetch_offset": offset, "partition_max_bytes": MIB} | more)


def request(topic: Topic, parts: Iterable[FetchPartition], version: int, **more: int) -> FetchRequest:
    partitions = tuple(parts)
    named = (
        FetchTopic(topic_id=topic.id, partitions=partitions)
        if version >= BY_ID_SINCE
        else FetchTopic(topic=topic.name, partitions=partitions)
    )
    return FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 50 * MIB} | more, topics=(named,))


def fetch(
    client: RawClient, topic: Topic, *parts: FetchPartition, version: int = FETCH.last, **more: int
) -> list[PartitionData]:
    answer = client.ask(request(topic, parts, version, **more), version)
    assert (answer.error_code, answer.session_id) == (0, 0)
    [answered] = answer.responses
    assert (answered.topic, answered.topic_id) == (
        ("", topic.id) if version >= BY_ID_SINCE else (topic.name, bytes(16))
    )
    return list(answered.partitions)


def offsets(data: PartitionData) -> list[int]:
    return [each.offset for each in RecordReader(bytes(data.records or b""))]


def partition_of(broker: ottla.Broker, topic: Topic, index: int = 0) -> Partition:
    return broker.broker.topics.by_name[topic.name].partitions[index]


def in_the_loop(broker: ottla.Broker, work: Coroutine[Any, Any, T]) -> T:
    """Run a callable on the broker's event loop."""
    assert broker._loop is not None
    return asyncio.run_coroutine_threadsafe(work, broker._loop).result(10)


def has_waits(broker: ottla.Broker, topic: Topic, partition: int = 0) -> bool:
    return bool(broker.broker.topics.by_name[topic.name].partitions[partition].waits)
