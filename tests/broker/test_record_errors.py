"""Produce responses name the records that caused a batch to be refused (KIP-467)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ErrorCode
from ottla.records.compression import Compression
from ottla.records.encode import BatchBuilder
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

from .making import create_topic

if TYPE_CHECKING:
    from .raw_client import RawClient

DAY_MS = 24 * 3600 * 1000
CODECS = [Compression.NONE, Compression.GZIP, Compression.ZSTD]


def produce(client: RawClient, topic: str, batch: bytearray, version: int = 12) -> PartitionProduceResponse:
    part = PartitionProduceData(index=0, records=bytes(batch))
    data = TopicProduceData(name=topic, partition_data=(part,))
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(data,))
    return client.ask(request, version).responses[0].partition_responses[0]


def indexes(refused: PartitionProduceResponse) -> list[int]:
    assert all(one.batch_index_error_message for one in refused.record_errors)
    return [one.batch_index for one in refused.record_errors]


@pytest.mark.parametrize("codec", CODECS)
def test_records_without_a_key_are_named_on_a_compacted_topic(client: RawClient, name: str, codec: Compression) -> None:
    create_topic(client, name, configs={"cleanup.policy": "compact"})
    builder = BatchBuilder(codec)
    for number in range(100):
        builder.append(time.time_ns() // 1_000_000, None if number % 10 == 3 else b"k%d" % number, b"v")
    refused = produce(client, name, builder.build())
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert indexes(refused) == [number for number in range(100) if number % 10 == 3]


@pytest.mark.parametrize("codec", CODECS)
def test_records_with_a_wrong_timestamp_are_named(client: RawClient, name: str, codec: Compression) -> None:
    create_topic(client, name, configs={"message.timestamp.before.max.ms": str(DAY_MS)})
    now_ms = time.time_ns() // 1_000_000
    builder = BatchBuilder(codec)
    for shift_days in (-3, 0, 2, 0, -2):
        builder.append(now_ms + shift_days * DAY_MS, b"k", b"v")
    refused = produce(client, name, builder.build())
    assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
    assert indexes(refused) == [0, 2, 4]


def test_older_versions_are_refused_without_naming_records(client: RawClient, name: str) -> None:
    create_topic(client, name, configs={"cleanup.policy": "compact"})
    builder = BatchBuilder()
    builder.append(0, None, b"v")
    refused = produce(client, name, builder.build(), version=7)
    assert (refused.error_code, refused.record_errors) == (ErrorCode.INVALID_RECORD, ())


def test_an_error_of_the_whole_batch_names_no_records(client: RawClient, topic: str) -> None:
    builder = BatchBuilder()
    builder.append(0, None, b"v")
    twice = builder.build() * 2
    refused = produce(client, topic, twice)
    assert (refused.error_code, refused.record_errors) == (ErrorCode.INVALID_RECORD, ())
