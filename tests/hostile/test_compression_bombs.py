"""Decompression bombs: wherever a broker decompresses batches, other clients are still served."""

from __future__ import annotations

import time
from functools import cache
from random import Random
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.broker.making import batch, create_topic, send_batch, values_in
from tests.broker.sharing import ShareMember
from tests.records.making import GZIP, LZ4, ZSTD, record
from tests.records.making import batch as any_batch

from ottla.core.errors import ErrorCode
from ottla.records.compression import compress
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from tests.broker.raw_client import RawClient

    from .probed import Probed

MIB = 1 << 20
MOST_HELD_S = 0.1
MOST_GROWN = 150 * MIB
"""Two batches of the largest size that is allowed, compressed again, and what the allocator keeps."""
LATE_MS = time.time_ns() // 1_000_000


NOISE = Random(1).randbytes(50_000)
"""Which does not compress, so that the ratio is not what is refused."""


@cache
def bomb(size: int, codec: int = ZSTD, *, count: int = 1, start: bytes = b"", max_timestamp: int = 1) -> bytes:
    """A batch whose records decompress to this many bytes."""
    value = start + bytes(size // count - len(start))
    records = b"".join(record(value=value, key=b"k", offset_delta=at) for at in range(count))
    packed = bytes(compress(codec, records))
    return bytes(any_batch(packed, count, attributes=codec, base_timestamp=1, max_timestamp=max_timestamp))


def check(probed: Probed) -> None:
    cost = probed.cost()
    assert cost.held_s < MOST_HELD_S
    assert cost.grown_bytes < MOST_GROWN


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
@pytest.mark.parametrize("config", [("cleanup.policy", "compact"), ("compression.type", "snappy")], ids=str)
def test_producing_a_bomb_is_refused_without_blocking_others(
    probed: Probed, client: RawClient, config: tuple[str, str], codec: int
) -> None:
    topic = f"{config[0]}-{codec}"
    create_topic(client, topic, configs=dict([config]))
    made = bomb(100 * MIB, codec)
    probed.begin()
    code = send_batch(client, topic, made).error_code
    check(probed)
    assert code == ErrorCode.INVALID_RECORD
    assert send_batch(client, topic, batch(b"v", key=b"k")).base_offset == 0


@pytest.mark.parametrize("config", [("cleanup.policy", "compact"), ("compression.type", "lz4")], ids=str)
def test_a_large_valid_batch_is_accepted_without_blocking_others(
    probed: Probed, client: RawClient, config: tuple[str, str]
) -> None:
    topic = f"large-{config[0]}"
    create_topic(client, topic, configs={**dict([config]), "max.message.bytes": "2000000"})
    probed.begin()
    result = send_batch(client, topic, bomb(3 * MIB, GZIP, count=3))
    check(probed)
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert [len(value or b"") for value in values_in(client, topic)] == [MIB] * 3


def test_many_bombs_in_one_request_are_handled_one_after_the_other(probed: Probed, client: RawClient) -> None:
    create_topic(client, "many", partitions=40, configs={"cleanup.policy": "compact"})
    made = bomb(30 * MIB)
    parts = tuple(PartitionProduceData(index=index, records=made) for index in range(40))
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=(TopicProduceData(name="many", partition_data=parts),)
    )
    probed.begin()
    [answer] = client.ask(request, 12).responses
    check(probed)
    # The ratio of each is too high.
    assert {one.error_code for one in answer.partition_responses} == {ErrorCode.INVALID_RECORD}


def test_decompression_is_limited_per_request(probed: Probed, client: RawClient) -> None:
    create_topic(client, "sum", partitions=40, configs={"cleanup.policy": "compact"})
    made = bomb(20 * MIB, GZIP, start=NOISE)
    parts = tuple(PartitionProduceData(index=index, records=made) for index in range(40))
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(TopicProduceData(name="sum", partition_data=parts),))
    probed.begin()
    [answer] = client.ask(request, 12).responses
    check(probed)
    codes = [one.error_code for one in answer.partition_responses]
    assert codes == [ErrorCode.NONE] * 12 + [ErrorCode.INVALID_RECORD] * 28


@pytest.mark.parametrize("size", [20 * MIB, 40 * MIB])
def test_a_share_group_skips_bombs(probed: Probed, client: RawClient, size: int) -> None:
    topic = f"shared-{size}"
    topic_id = create_topic(client, topic)
    member = ShareMember(client, f"group-{size}", topic, topic_id)
    member.fetch()
    for _ in range(12):
        send_batch(client, topic, bomb(size, GZIP, start=NOISE))
    probed.begin()
    found: set[int] = set()
    while len(found) < 12:
        for first, last, _ in member.fetch().ranges:
            found |= set(range(first, last + 1))
    check(probed)


def test_a_timestamp_lookup_in_bombs_does_not_block_others(probed: Probed, client: RawClient) -> None:
    create_topic(client, "times")
    # The header claims a late record, so that each batch is decompressed.
    small = bomb(100_000, GZIP, max_timestamp=LATE_MS)
    large = bomb(20 * MIB, GZIP, start=NOISE, max_timestamp=LATE_MS)
    for made in [small] * 100 + [large] * 5:
        assert send_batch(client, "times", made).error_code == ErrorCode.NONE
    wanted = ListOffsetsTopic(name="times", partitions=(ListOffsetsPartition(partition_index=0, timestamp=LATE_MS),))
    probed.begin()
    [topic] = client.ask(ListOffsetsRequest(replica_id=-1, topics=(wanted,))).topics
    check(probed)
    assert (topic.partitions[0].error_code, topic.partitions[0].offset) == (ErrorCode.NONE, -1)


def test_reading_bombs_over_rest_does_not_block_others(probed: Probed, client: RawClient) -> None:
    create_topic(client, "rest")
    for _ in range(10):
        send_batch(client, "rest", bomb(MIB, GZIP))
    send_batch(client, "rest", bomb(100 * MIB, GZIP))
    address = f"http://{probed.ready['http']}/v1/topics/rest/messages"
    probed.begin()
    found = httpx.get(address, params={"partition": 0, "offset": 0, "limit": 3})
    refused = httpx.get(address, params={"partition": 0, "offset": 10})
    check(probed)
    assert len(found.json()["messages"]) == 3
    assert "decompress to more than" in refused.text
