"""Produce requests, sent raw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.records.making import batch as any_batch
from tests.records.making import record

from ottla.wire.apis import PRODUCE
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .making import Topic
    from .raw_client import RawClient

VERSIONS = range(PRODUCE.first, PRODUCE.last + 1)
EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
BY_ID_SINCE = 13
NOW = {"base_timestamp": 1_700_000_000_000, "max_timestamp": 1_700_000_000_000}


def request(topic: Topic, records: Mapping[int, bytes | None], version: int, acks: int = -1) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=index, records=part) for index, part in records.items())
    named = (
        TopicProduceData(topic_id=topic.id, partition_data=data)
        if version >= BY_ID_SINCE
        else TopicProduceData(name=topic.name, partition_data=data)
    )
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=(named,))


def produce(
    client: RawClient, topic: Topic, records: Mapping[int, bytes | None], version: int = PRODUCE.last, acks: int = -1
) -> dict[int, PartitionProduceResponse]:
    [answer] = client.ask(request(topic, records, version, acks), version).responses
    assert (answer.name, answer.topic_id) == (("", topic.id) if version >= BY_ID_SINCE else (topic.name, bytes(16)))
    return {result.index: result for result in answer.partition_responses}


def send(
    client: RawClient, topic: Topic, records: bytes | None, version: int = PRODUCE.last
) -> PartitionProduceResponse:
    return produce(client, topic, {0: records}, version)[0]


def numbered(sequence: int, *, count: int = 1, producer: int = 77, epoch: int = 0) -> bytes:
    payload = b"".join(record(offset_delta=delta) for delta in range(count))
    return bytes(any_batch(payload, count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, **NOW))
