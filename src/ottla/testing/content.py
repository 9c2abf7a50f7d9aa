"""Writing and reading topics in tests, through the broker's handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.interfaces.fetched import fetch, records_in
from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.core.errors import UnknownTopicOrPartition
from ottla.records.encode import BatchBuilder
from ottla.testing.recording import read_head, read_records
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ottla.broker.broker import Broker
    from ottla.broker.interfaces.in_process_requests import LocalClient
    from ottla.broker.partition import Partition
    from ottla.records.encode import Headers
    from ottla.records.reader import Record

_PRODUCE_BY_NAME: Final = 12
_ALL: Final = -1
_TIMEOUT_MS: Final = 30_000
_READ_BYTES: Final = 8 << 20


async def create(
    client: LocalClient, name: str, partitions: int, configs: Mapping[str, str] | None, replication_factor: int = -1
) -> None:
    """Create a topic through the broker's handlers, so that invalid topics are rejected."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS, validate_only=False)
    [result] = (await client.ask(request)).topics
    raise_refusal(result.error_code, result.error_message)


async def write(  # noqa: PLR0913
    broker: Broker,
    client: LocalClient,
    topic: str,
    partition: int,
    values: Iterable[bytes | str | None],
    *,
    key: bytes | str | None,
    headers: Headers,
) -> int:
    if topic not in broker.topics.by_name:
        broker.check_topic_name(topic)
        broker.create_topic(topic)
    return await append(broker, client, topic, partition, values, key=key, headers=headers)


async def append(  # noqa: PLR0913
    broker: Broker,
    client: LocalClient,
    topic: str,
    partition: int,
    values: Iterable[bytes | str | None],
    *,
    key: bytes | str | None,
    headers: Headers,
) -> int:
    builder = BatchBuilder()
    for value in values:
        builder.append(broker.clock.now_ms(), _encoded(key), _encoded(value), headers)
    if not builder.count:
        raise ValueError("no values to produce")
    return await _append(client, topic, partition, builder)


async def _append(client: LocalClient, topic: str, partition: int, builder: BatchBuilder) -> int:
    data = PartitionProduceData(index=partition, records=memoryview(builder.build()))
    request = ProduceRequest(
        acks=_ALL, timeout_ms=_TIMEOUT_MS, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )
    answer = await client.ask(request, _PRODUCE_BY_NAME)
    [result] = answer.responses[0].partition_responses
    raise_refusal(result.error_code, result.error_message)
    return int(result.base_offset)


async def replay(broker: Broker, client: LocalClient, file: Path, topic: str | None) -> int:
    """Write the recorded records one by one; returns their number."""
    head = read_head(file)
    topic = topic or head.topic
    if topic not in broker.topics.by_name:
        broker.create_topic(topic, head.partitions)
    count = 0
    for one in read_records(file):
        builder = BatchBuilder()
        builder.append(one.timestamp_ms, one.key, one.value, one.headers)
        await _append(client, topic, one.partition, builder)
        count += 1
    return count


def _encoded(given: bytes | str | None) -> bytes | None:
    return given.encode() if isinstance(given, str) else given


async def read_all(broker: Broker, client: LocalClient, topic: str) -> list[Record]:
    state = broker.topics.by_name.get(topic)
    if state is None:
        raise UnknownTopicOrPartition(f"no topic {topic!r}; existing: {sorted(broker.topics.by_name)}")
    return [record for partition in state.partitions for record in await read_partition(client, partition)]


async def read_partition(client: LocalClient, partition: Partition) -> list[Record]:
    found: list[Record] = []
    offset, end = partition.log.start_offset, partition.last_stable_offset
    while offset < end:
        [data] = await fetch(client, partition.at.topic, {partition.at.partition: offset}, max_bytes=_READ_BYTES)
        raise_refusal(data.error_code)
        for piece in records_in(data, offset, partition.at.topic):
            found += piece.records
            offset = piece.next_offset
    return found
