"""DeleteRecords (21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.serving import Serve
from tests.faults.failing import failing

from ottla.core.errors import ErrorCode
from ottla.wire import apis
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

from .making import batch as make_batch
from .making import create_topic, fetch, produce, send_batch, values_in
from .raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.testing import EphemeralBroker

HIGH_WATERMARK = -1
EARLIEST = -2


def asking(topic: str, *before: tuple[int, int]) -> DeleteRecordsRequest:
    """Pairs of a partition and the offset before which records are deleted."""
    partitions = tuple(DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in before)
    return DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=partitions),), timeout_ms=1000)


def delete(client: RawClient, topic: str, offset: int, partition: int = 0) -> DeleteRecordsPartitionResult:
    [answer] = client.ask(asking(topic, (partition, offset))).topics
    assert answer.name == topic
    [result] = answer.partitions
    return result


def earliest(client: RawClient, topic: str) -> int:
    wanted = ListOffsetsTopic(name=topic, partitions=(ListOffsetsPartition(partition_index=0, timestamp=EARLIEST),))
    [listed] = client.ask(ListOffsetsRequest(replica_id=-1, topics=(wanted,))).topics[0].partitions
    return listed.offset


@pytest.mark.parametrize("version", range(apis.DELETE_RECORDS.first, apis.DELETE_RECORDS.last + 1))
def test_every_version_deletes_records_before_an_offset(client: RawClient, topic: str, version: int) -> None:
    produce(client, topic, b"0", b"1", b"2")
    [answer] = client.ask(asking(topic, (0, 1)), version).topics

    [result] = answer.partitions
    assert (result.partition_index, result.low_watermark, result.error_code) == (0, 1, ErrorCode.NONE)
    assert values_in(client, topic, 1) == [b"1", b"2"]
    assert fetch(client, topic, 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert earliest(client, topic) == 1


def test_minus_one_deletes_all_records(client: RawClient, topic: str) -> None:
    produce(client, topic, b"0", b"1")

    assert delete(client, topic, HIGH_WATERMARK).low_watermark == 2
    assert values_in(client, topic, 2) == []
    assert produce(client, topic, b"2") == 2


def test_deleting_deleted_records_again_succeeds(client: RawClient, topic: str) -> None:
    produce(client, topic, b"0", b"1", b"2")
    delete(client, topic, 2)

    result = delete(client, topic, 1)
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 2)


@pytest.mark.parametrize("offset", [4, 1 << 62, -2])
def test_an_offset_that_is_not_in_the_log_is_out_of_range(client: RawClient, topic: str, offset: int) -> None:
    produce(client, topic, b"0", b"1", b"2")

    result = delete(client, topic, offset)
    assert (result.error_code, result.low_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert earliest(client, topic) == 0


def test_an_unknown_partition_does_not_fail_the_others(client: RawClient, topic: str) -> None:
    produce(client, topic, b"0")
    [answer] = client.ask(asking(topic, (7, 0), (0, 1), (-1, 0))).topics

    assert [(one.partition_index, one.error_code) for one in answer.partitions] == [
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, ErrorCode.NONE),
        (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert delete(client, "no-such", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_named_twice_is_truncated_once(client: RawClient, topic: str) -> None:
    produce(client, topic, b"0", b"1", b"2")
    [answer] = client.ask(asking(topic, (0, 1), (0, 2))).topics

    assert [(one.partition_index, one.low_watermark) for one in answer.partitions] == [(0, 2)]


@pytest.mark.parametrize(
    ("policy", "code"), [("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", ErrorCode.NONE)]
)
def test_records_of_a_compact_only_topic_cannot_be_deleted(
    client: RawClient, name: str, policy: str, code: ErrorCode
) -> None:
    create_topic(client, name, configs={"cleanup.policy": policy})
    assert send_batch(client, name, make_batch(b"v", key=b"k")).error_code == ErrorCode.NONE

    assert delete(client, name, HIGH_WATERMARK).error_code == code


def test_records_of_internal_topics_cannot_be_deleted(client: RawClient) -> None:
    create_topic(client, "__consumer_offsets")

    assert delete(client, "__consumer_offsets", HIGH_WATERMARK).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_deleted_records_stay_deleted_after_a_restart(ottla: EphemeralBroker) -> None:
    with RawClient(ottla.bootstrap_servers) as client:
        create_topic(client, "orders")
        produce(client, "orders", b"0", b"1")
        delete(client, "orders", 1)

    ottla.restart()
    with RawClient(ottla.bootstrap_servers) as client:
        assert earliest(client, "orders") == 1
        assert values_in(client, "orders", 1) == [b"1"]


def test_a_kill_does_not_restore_deleted_records(tmp_path: Path) -> None:
    with Serve(tmp_path) as serve, RawClient(serve.address) as client:
        create_topic(client, "orders")
        produce(client, "orders", b"0", b"1")
        assert delete(client, "orders", 1).low_watermark == 1
        serve.process.kill()

    with Serve(tmp_path) as serve, RawClient(serve.address) as client:
        assert earliest(client, "orders") == 1
        assert values_in(client, "orders", 1) == [b"1"]


def test_a_log_start_offset_that_cannot_be_saved_is_a_storage_error_until_it_can(client: RawClient, topic: str) -> None:
    produce(client, topic, b"0", b"1")
    with failing("fsync", "log-start-offset-checkpoint.tmp") as refused:
        [answer] = client.ask(asking(topic, (0, 1), (7, 1))).topics
    assert len(refused) == 1
    assert [(one.error_code, one.low_watermark) for one in answer.partitions] == [
        (ErrorCode.KAFKA_STORAGE_ERROR, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]

    assert delete(client, topic, 1).low_watermark == 1


def test_concurrent_requests_are_all_saved(tmp_path: Path) -> None:
    with Serve(tmp_path) as serve, RawClient(serve.address) as first, RawClient(serve.address) as second:
        for client, name in ((first, "orders"), (second, "jobs")):
            create_topic(client, name)
            produce(client, name, b"0", b"1")
        waiting = [(first, first.send(asking("orders", (0, 1)))), (second, second.send(asking("jobs", (0, 2))))]
        answers = [client.receive(sent).topics[0].partitions[0].low_watermark for client, sent in waiting]
        assert answers == [1, 2]
        serve.process.kill()

    with Serve(tmp_path) as serve, RawClient(serve.address) as client:
        assert (earliest(client, "orders"), earliest(client, "jobs")) == (1, 2)
