"""ListOffsets and OffsetForLeaderEpoch, in every version."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ErrorCode
from ottla.wire.apis import LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

from .making import batch, create_topic, produce, send_batch
from .raw_client import RawClient
from .transacting import NEW, OLD, Transactional

if TYPE_CHECKING:
    import ottla

VERSIONS = range(LIST_OFFSETS.first, LIST_OFFSETS.last + 1)
EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
EACH_EPOCH_VERSION = pytest.mark.parametrize(
    "version", range(OFFSET_FOR_LEADER_EPOCH.first, OFFSET_FOR_LEADER_EPOCH.last + 1)
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
NOW_MS = 1_700_000_000_000


def ask(
    client: RawClient,
    topic: str,
    timestamp: int,
    version: int,
    *,
    partition: int = 0,
    epoch: int = -1,
    isolation: int = 0,
) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    topics = (ListOffsetsTopic(name=topic, partitions=(wanted,)),)
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics)
    [answer] = client.ask(request, version).topics
    [result] = answer.partitions
    assert (answer.name, result.partition_index) == (topic, partition)
    return result


def offset(client: RawClient, topic: str, timestamp: int, version: int = LIST_OFFSETS.last) -> int:
    result = ask(client, topic, timestamp, version)
    assert result.error_code == ErrorCode.NONE
    return result.offset


@pytest.fixture(scope="module")
def timed(broker: ottla.Broker) -> str:
    """Offsets 0 to 5, of which 0-1, 2-3 and 4-5 have the same time; the middle ones have the latest."""
    with RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "timed")
        for timestamp_ms in (NOW_MS, NOW_MS + 2000, NOW_MS + 1000):
            send_batch(client, "timed", batch(b"a", b"b", timestamp_ms=timestamp_ms))
    return "timed"


@pytest.fixture(scope="module")
def empty(broker: ottla.Broker) -> str:
    with RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "empty")
    return "empty"


@EACH_VERSION
def test_an_empty_partition_begins_and_ends_at_zero(client: RawClient, empty: str, version: int) -> None:
    assert offset(client, empty, LATEST, version) == offset(client, empty, EARLIEST, version) == 0


@EACH_VERSION
def test_earliest_and_latest_offsets(client: RawClient, topic: str, version: int) -> None:
    produce(client, topic, b"a", b"b", b"c")
    end = ask(client, topic, LATEST, version)
    assert (end.offset, end.timestamp) == (3, -1)
    assert end.leader_epoch == (0 if version >= 4 else -1)
    assert offset(client, topic, EARLIEST, version) == 0

    wanted = DeleteRecordsPartition(partition_index=0, offset=2)
    client.ask(DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(wanted,)),), timeout_ms=1000))
    assert offset(client, topic, EARLIEST, version) == 2
    assert offset(client, topic, LATEST, version) == 3


@EACH_VERSION
@pytest.mark.parametrize("isolation", [0, 1])
def test_without_transactions_both_isolation_levels_have_the_same_latest_offset(
    client: RawClient, timed: str, version: int, isolation: int
) -> None:
    isolation = isolation if version >= 2 else 0
    assert ask(client, timed, LATEST, version, isolation=isolation).offset == 6


@EACH_VERSION
@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (0, (NOW_MS, 0)),
        (NOW_MS, (NOW_MS, 0)),
        (NOW_MS + 1, (NOW_MS + 2000, 2)),
        (NOW_MS + 2000, (NOW_MS + 2000, 2)),
        (NOW_MS + 2001, (-1, -1)),
        ((1 << 63) - 1, (-1, -1)),
    ],
)
def test_a_timestamp_gives_the_first_record_that_is_not_older(
    client: RawClient, timed: str, version: int, timestamp: int, found: tuple[int, int]
) -> None:
    result = ask(client, timed, timestamp, version)
    assert (result.timestamp, result.offset) == found


@pytest.mark.parametrize("version", VERSIONS[6:])
def test_the_max_timestamp_gives_the_newest_record(client: RawClient, timed: str, version: int) -> None:
    result = ask(client, timed, MAX_TIMESTAMP, version)
    assert (result.timestamp, result.offset) == (NOW_MS + 2000, 2)


@pytest.mark.parametrize("version", VERSIONS[6:])
def test_an_empty_partition_has_no_newest_record(client: RawClient, empty: str, version: int) -> None:
    result = ask(client, empty, MAX_TIMESTAMP, version)
    assert (result.error_code, result.timestamp, result.offset) == (ErrorCode.NONE, -1, -1)


def test_the_newest_record_is_one_that_is_not_deleted(client: RawClient, topic: str) -> None:
    for later_ms in (5000, 1000, 3000, 2000):
        send_batch(client, topic, batch(b"x", timestamp_ms=NOW_MS + later_ms))
    delete = DeleteRecordsTopic(name=topic, partitions=(DeleteRecordsPartition(partition_index=0, offset=1),))
    client.ask(DeleteRecordsRequest(topics=(delete,), timeout_ms=1000))
    result = ask(client, topic, MAX_TIMESTAMP, LIST_OFFSETS.last)
    assert (result.timestamp, result.offset) == (NOW_MS + 3000, 2)


@pytest.mark.parametrize("flow", [OLD, NEW])
def test_an_end_marker_can_be_the_newest_record_and_the_only_one_at_a_time(
    client: RawClient, topic: str, flow: str
) -> None:
    producer = Transactional(client, topic, flow)
    producer.write(topic, b"a")
    written = ask(client, topic, MAX_TIMESTAMP, LIST_OFFSETS.last)
    while time.time_ns() // 1_000_000 <= written.timestamp:
        pass  # the marker is stamped by the broker's clock, which is this one
    producer.commit()

    newest = ask(client, topic, MAX_TIMESTAMP, LIST_OFFSETS.last)

    assert (written.offset, newest.offset) == (0, 1)
    assert newest.timestamp > written.timestamp
    assert offset(client, topic, written.timestamp + 1) == 1
    assert offset(client, topic, newest.timestamp + 1) == -1


@pytest.mark.parametrize("version", VERSIONS[7:])
def test_the_earliest_local_offset_is_the_log_start(client: RawClient, timed: str, version: int) -> None:
    assert offset(client, timed, EARLIEST_LOCAL, version) == 0


@pytest.mark.parametrize(
    ("special", "since"), [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11)]
)
def test_a_special_timestamp_is_refused_in_versions_that_lack_it(
    client: RawClient, timed: str, special: int, since: int
) -> None:
    for version in VERSIONS:
        result = ask(client, timed, special, version)
        assert result.error_code == (ErrorCode.NONE if version >= since else ErrorCode.UNSUPPORTED_VERSION)


@pytest.mark.parametrize("special", [LATEST_TIERED, EARLIEST_PENDING_UPLOAD])
def test_there_is_no_tiered_offset(client: RawClient, timed: str, special: int) -> None:
    result = ask(client, timed, special, LIST_OFFSETS.last)
    assert (result.error_code, result.offset, result.timestamp, result.leader_epoch) == (ErrorCode.NONE, -1, -1, -1)


@EACH_VERSION
@pytest.mark.parametrize("unknown", [-7, -100, -(1 << 63)])
def test_other_negative_timestamps_are_refused(client: RawClient, timed: str, version: int, unknown: int) -> None:
    assert ask(client, timed, unknown, version).error_code == ErrorCode.UNSUPPORTED_VERSION


@EACH_VERSION
@pytest.mark.parametrize("partition", [1, -1, 2**31 - 1])
def test_unknown_partitions_and_topics_are_refused(client: RawClient, empty: str, version: int, partition: int) -> None:
    result = ask(client, empty, LATEST, version, partition=partition)
    assert (result.error_code, result.offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert ask(client, "no-such-topic", LATEST, version).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", VERSIONS[3:])
def test_another_leader_epoch_is_refused(client: RawClient, empty: str, version: int) -> None:
    assert ask(client, empty, LATEST, version, epoch=0).error_code == ErrorCode.NONE
    assert ask(client, empty, LATEST, version, epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert ask(client, empty, LATEST, version, epoch=-2).error_code == ErrorCode.FENCED_LEADER_EPOCH


@EACH_VERSION
def test_a_duplicate_partition_is_answered_once(client: RawClient, empty: str, version: int) -> None:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    topics = (
        ListOffsetsTopic(name=empty, partitions=(wanted,) * 2),
        ListOffsetsTopic(name=empty, partitions=(wanted,)),
    )
    answer = client.ask(ListOffsetsRequest(replica_id=-1, topics=topics), version)
    codes = [result.error_code for topic_answer in answer.topics for result in topic_answer.partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]


def test_offsets_of_many_partitions_are_listed_in_one_request(client: RawClient, name: str) -> None:
    create_topic(client, name, partitions=5)
    for partition in range(5):
        produce(client, name, *[b"x"] * (partition + 1), partition=partition)
    wanted = tuple(ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(7))
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=name, partitions=wanted),))
    [answer] = client.ask(request).topics
    assert [result.offset for result in answer.partitions] == [1, 2, 3, 4, 5, -1, -1]


# OffsetForLeaderEpoch


def epoch_end(
    client: RawClient, topic: str, epoch: int, version: int, *, current: int = -1, partition: int = 0
) -> EpochEndOffset:
    wanted = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=(OffsetForLeaderTopic(topic=topic, partitions=(wanted,)),)
    )
    [answer] = client.ask(request, version).topics
    [result] = answer.partitions
    assert (answer.topic, result.partition) == (topic, partition)
    return result


@EACH_EPOCH_VERSION
def test_the_current_epoch_ends_where_the_log_ends(client: RawClient, topic: str, version: int) -> None:
    produce(client, topic, b"a", b"b", b"c")
    result = epoch_end(client, topic, 0, version)
    assert (result.error_code, result.leader_epoch, result.end_offset) == (ErrorCode.NONE, 0, 3)
    later = epoch_end(client, topic, 5, version)
    assert (later.error_code, later.leader_epoch, later.end_offset) == (ErrorCode.NONE, -1, -1)


@EACH_EPOCH_VERSION
def test_the_current_epoch_ends_at_the_end_of_an_empty_log(client: RawClient, empty: str, version: int) -> None:
    result = epoch_end(client, empty, 0, version)
    assert (result.error_code, result.leader_epoch, result.end_offset) == (ErrorCode.NONE, 0, 0)


@EACH_EPOCH_VERSION
def test_an_epoch_before_the_first_has_no_end(client: RawClient, topic: str, version: int) -> None:
    produce(client, topic, b"a")
    result = epoch_end(client, topic, -1, version)
    assert (result.error_code, result.leader_epoch, result.end_offset) == (ErrorCode.NONE, -1, -1)


@EACH_EPOCH_VERSION
def test_unknown_partitions_and_other_leader_epochs_are_refused(client: RawClient, empty: str, version: int) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert epoch_end(client, empty, 0, version, partition=1).error_code == unknown
    assert epoch_end(client, "no-such-topic", 0, version).error_code == unknown
    assert epoch_end(client, empty, 0, version, current=3).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert epoch_end(client, empty, 0, version, current=-3).error_code == ErrorCode.FENCED_LEADER_EPOCH
