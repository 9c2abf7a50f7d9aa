"""Common requests to a broker, one function each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from ottla.core.errors import ErrorCode
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .raw_client import RawClient

NAMES_UNTIL = {"produce": 12, "fetch": 12, "delete_topics": 5}
"""The last version of each API that names topics instead of using ids."""
_TOPIC_RESOURCE = 2


class Topic(NamedTuple):
    name: str
    id: bytes


def create_topic(client: RawClient, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> bytes:
    """Create a topic; return its id."""
    entries = tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items())
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=entries)
    [created] = client.ask(CreateTopicsRequest(topics=(topic,))).topics
    assert created.error_code == ErrorCode.NONE, created
    return created.topic_id


def delete_topic(client: RawClient, name: str) -> None:
    request = DeleteTopicsRequest(topic_names=(name,), timeout_ms=1000)
    [deleted] = client.ask(request, NAMES_UNTIL["delete_topics"]).responses
    assert deleted.error_code == ErrorCode.NONE, deleted


def set_topic_config(client: RawClient, topic: str, name: str, value: str) -> None:
    change = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=(change,))
    [changed] = client.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)).responses
    assert changed.error_code == ErrorCode.NONE, changed


def batch(*values: bytes, key: bytes | None = None, timestamp_ms: int | None = None, codec: int = 0) -> bytes:
    """A record batch of these values."""
    builder = BatchBuilder(codec)
    now_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
    for value in values:
        builder.append(now_ms, key, value)
    return bytes(builder.build())


def send_batch(
    client: RawClient, topic: str, records: bytes, partition: int = 0, acks: int = -1
) -> PartitionProduceResponse:
    """Produce a batch; the response may be an error."""
    data = PartitionProduceData(index=partition, records=records)
    request = ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )
    [answer] = client.ask(request, NAMES_UNTIL["produce"]).responses
    [result] = answer.partition_responses
    return result


def produce(client: RawClient, topic: str, *values: bytes, partition: int = 0) -> int:
    """Produce these values in one batch, which must succeed; return the offset of the first."""
    result = send_batch(client, topic, batch(*values), partition)
    assert result.error_code == ErrorCode.NONE, result
    return result.base_offset


def fetch_request(
    topic: str, offset: int = 0, partition: int = 0, *, max_wait_ms: int = 0, min_bytes: int = 1
) -> FetchRequest:
    """A sessionless fetch; send it in a version that names topics."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
    )


def fetch(client: RawClient, topic: str, offset: int = 0, partition: int = 0) -> PartitionData:
    """Fetch from one partition without waiting; the response may be an error."""
    answer = client.ask(fetch_request(topic, offset, partition), NAMES_UNTIL["fetch"])
    [data] = answer.responses[0].partitions
    return data


def values_in(client: RawClient, topic: str, offset: int = 0, partition: int = 0) -> list[bytes | None]:
    """The values that a consumer reads from `offset` on."""
    data = fetch(client, topic, offset, partition)
    assert data.error_code == ErrorCode.NONE, data
    return [record.value for record in RecordReader(bytes(data.records or b"")) if record.offset >= offset]


def partition_count(client: RawClient, topic: str) -> int:
    """How many partitions a topic has; 0 if it does not exist."""
    asked = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
    [described] = client.ask(asked).topics
    return len(described.partitions)


def ask_until(client: RawClient, is_so: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """Keep the broker's loop turning until a condition holds, without sleeping."""
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s, "the condition never held"
        client.ask(ApiVersionsRequest(), version=0)
