"""Fetch in every version: how much, and from where."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

import ottla
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode
from ottla.records.reader import RecordReader
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.fetch import FetchRequest

from .fetching import (
    BY_ID_SINCE,
    EACH_VERSION,
    LONG_MS,
    VERSIONS,
    fetch,
    offsets,
    wanted,
)
from .making import Topic, batch, create_topic, produce, send_batch
from .raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path


# Records


@EACH_VERSION
def test_records_are_returned_as_they_were_sent(client: RawClient, filled: Topic, version: int) -> None:
    [data] = fetch(client, filled, wanted(), version=version)
    assert (data.error_code, data.partition_index, data.high_watermark) == (ErrorCode.NONE, 0, 10)
    assert data.last_stable_offset == 10
    assert data.log_start_offset == (0 if version >= 5 else -1)
    assert data.preferred_read_replica == -1
    assert data.aborted_transactions is None
    values = [each.value for each in RecordReader(bytes(data.records or b""))]
    assert values == [b"%d" % number * 1000 for number in range(10)]


@EACH_VERSION
def test_a_fetch_at_the_log_end_is_valid_and_empty(client: RawClient, filled: Topic, version: int) -> None:
    [data] = fetch(client, filled, wanted(10), version=version)
    assert (data.error_code, data.high_watermark, data.records) == (ErrorCode.NONE, 10, b"")


@EACH_VERSION
def test_a_fetch_from_the_middle_of_a_batch_gets_the_whole_batch(
    client: RawClient, filled: Topic, version: int
) -> None:
    [data] = fetch(client, filled, wanted(3), version=version)
    assert offsets(data) == [2, 3, 4, 5, 6, 7, 8, 9]


@EACH_VERSION
@pytest.mark.parametrize("offset", [11, -1, -2, (1 << 63) - 1, -(1 << 63)])
def test_offsets_below_the_start_and_past_the_end_are_out_of_range(
    client: RawClient, filled: Topic, version: int, offset: int
) -> None:
    bad, good = fetch(client, filled, wanted(offset), wanted(partition=1), version=version, max_wait_ms=LONG_MS)
    assert (bad.error_code, bad.high_watermark, bad.records) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, b"")
    assert (good.error_code, offsets(good)) == (ErrorCode.NONE, [0])


def test_deleted_offsets_are_out_of_range(client: RawClient, made: Topic) -> None:
    produce(client, made.name, b"a", b"b", b"c")
    doomed = DeleteRecordsPartition(partition_index=0, offset=2)
    client.ask(
        DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=made.name, partitions=(doomed,)),), timeout_ms=1000)
    )
    assert fetch(client, made, wanted(1))[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    [data] = fetch(client, made, wanted(2))
    assert (data.error_code, data.log_start_offset, offsets(data)) == (ErrorCode.NONE, 2, [0, 1, 2])


@EACH_VERSION
def test_unknown_partitions_and_topics_are_refused(client: RawClient, filled: Topic, version: int) -> None:
    bad, worse, good = fetch(
        client, filled, wanted(partition=3), wanted(partition=-1), wanted(partition=1), version=version
    )
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (bad.error_code, worse.error_code, good.error_code) == (unknown, unknown, ErrorCode.NONE)
    [data] = fetch(client, Topic("no-such-topic", secrets.token_bytes(16)), wanted(), version=version)
    assert data.error_code == (ErrorCode.UNKNOWN_TOPIC_ID if version >= BY_ID_SINCE else unknown)
    [data] = fetch(client, Topic("", bytes(16)), wanted(), version=version)
    assert data.error_code == (ErrorCode.UNKNOWN_TOPIC_ID if version >= BY_ID_SINCE else unknown)


@EACH_VERSION
def test_an_empty_fetch_is_answered_at_once(client: RawClient, version: int) -> None:
    answer = client.ask(FetchRequest(max_wait_ms=LONG_MS, min_bytes=1, topics=()), version)
    assert answer.responses == ()


# Limits


@EACH_VERSION
def test_a_partitions_byte_limit_returns_whole_batches(client: RawClient, filled: Topic, version: int) -> None:
    [data] = fetch(client, filled, wanted(partition_max_bytes=5000), version=version)
    assert offsets(data) == [0, 1, 2, 3]


@EACH_VERSION
@pytest.mark.parametrize("limit", [1, 0, -1, -(2**31)])
def test_the_first_batch_is_returned_whatever_its_size(
    client: RawClient, filled: Topic, version: int, limit: int
) -> None:
    first, second, third = fetch(
        client,
        filled,
        wanted(4, partition_max_bytes=limit),
        wanted(partition=1, partition_max_bytes=limit),
        wanted(partition=2),
        version=version,
    )
    assert (offsets(first), offsets(second), offsets(third)) == ([4, 5], [], [0])
    first, second, third = fetch(
        client, filled, wanted(4), wanted(partition=1), wanted(partition=2), version=version, max_bytes=limit
    )
    assert (offsets(first), offsets(second), offsets(third)) == ([4, 5], [], [])


@EACH_VERSION
def test_the_first_non_empty_partition_counts_as_the_first(client: RawClient, filled: Topic, version: int) -> None:
    parts = (wanted(10), wanted(99, partition=1), wanted(partition=2, partition_max_bytes=1))
    answers = fetch(client, filled, *parts, version=version)
    assert [offsets(data) for data in answers] == [[], [], [0]]


@EACH_VERSION
def test_the_response_limit_is_shared_by_its_partitions(client: RawClient, filled: Topic, version: int) -> None:
    small, large, other = fetch(
        client, filled, wanted(partition=1), wanted(), wanted(partition=2), version=version, max_bytes=4500
    )
    assert (offsets(small), offsets(large), offsets(other)) == ([0], [0, 1, 2, 3], [0])
    # Partitions beyond the limit are still validated.
    _, _, bad = fetch(client, filled, wanted(), wanted(), wanted(99, partition=2), version=version, max_bytes=1)
    assert bad.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_broker_has_a_limit_too(tmp_path: Path) -> None:
    settings = Settings()
    settings = settings._replace(
        net=replace(settings.net, port=0), broker=replace(settings.broker, fetch_max_bytes=2500)
    )
    with ottla.Broker(tmp_path, settings) as broker, RawClient(broker.bootstrap_servers) as client:
        topic = Topic("t", create_topic(client, "t"))
        for _ in range(5):
            produce(client, "t", bytes(1000))
        assert offsets(fetch(client, topic, wanted())[0]) == [0, 1]


def test_responses_shrink_while_slow_readers_hold_much_memory(tmp_path: Path) -> None:
    settings = Settings()
    settings = settings._replace(net=replace(settings.net, port=0, max_held_bytes=40_000))
    with ottla.Broker(tmp_path, settings) as broker, RawClient(broker.bootstrap_servers) as client:
        topic = Topic("t", create_topic(client, "t"))
        for _ in range(50):
            produce(client, "t", bytes(1000))
        assert len(fetch(client, topic, wanted())[0].records or b"") < 10_000


# Leader epochs


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 9])
def test_another_leader_epoch_is_refused(client: RawClient, filled: Topic, version: int) -> None:
    known, future, past = fetch(
        client,
        filled,
        wanted(current_leader_epoch=0),
        wanted(partition=1, current_leader_epoch=1),
        wanted(partition=2, current_leader_epoch=-2),
        version=version,
    )
    assert known.error_code == ErrorCode.NONE
    assert (future.error_code, past.error_code) == (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 12])
def test_a_diverging_log_gets_its_last_common_epoch_and_no_records(
    client: RawClient, broker: ottla.Broker, made: Topic, version: int
) -> None:
    produce(client, made.name, b"a", b"b")
    broker.broker.topics.partition(made.name, 0).leader_epoch = 7
    produce(client, made.name, b"c")
    [same] = fetch(client, made, wanted(2, last_fetched_epoch=0), version=version)
    assert (same.diverging_epoch.epoch, offsets(same)[:1]) == (-1, [2])
    for offset, epoch in ((3, 0), (2, 3)):
        asked = wanted(offset, last_fetched_epoch=epoch)
        [diverging] = fetch(client, made, asked, version=version, max_wait_ms=LONG_MS)
        assert (diverging.error_code, diverging.records) == (ErrorCode.NONE, b"")
        assert (diverging.diverging_epoch.epoch, diverging.diverging_epoch.end_offset) == (0, 2)
    [later] = fetch(client, made, wanted(2, last_fetched_epoch=8), version=version)
    assert later.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_log_from_elsewhere_keeps_its_leader_epoch(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "t")
        produce(client, "t", b"a")
        broker.broker.topics.partition("t", 0).leader_epoch = 7
        produce(client, "t", b"b")
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        assert send_batch(client, "t", batch(b"c")).base_offset == 2
        assert broker.broker.topics.partition("t", 0).leader_epoch == 7
        assert broker.broker.topics.partition("t", 0).log.epochs.entries == [(0, 0), (7, 1)]


def test_a_large_fetch_returns_large_batches(client: RawClient, made: Topic) -> None:
    for number in range(8):
        produce(client, made.name, bytes([number]) * 1_000_000)
    data, other = fetch(client, made, wanted(partition_max_bytes=2**31 - 1), wanted(partition=1), max_bytes=2**31 - 1)
    assert offsets(data) == list(range(8))
    assert other.records == b""
