"""What a real Apache Kafka broker writes to `__consumer_offsets`, read and written again by Ottla."""

import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs
from tests.groups.making import environment

from interop.conftest import KafkaFolder
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin
from interop.raw_client import RawClient, wait_for_coordinator
from interop.test_kafka_folders_in_ottla import read_all
from ottla.core.clock import SystemClock
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.groups import records
from ottla.groups.consumer import records as consumer_records
from ottla.groups.coordinator import Coordinator
from ottla.groups.formats import GroupKey, OffsetKey
from ottla.groups.records import KeyValue
from ottla.groups.states import State
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

READ = "read"
SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x04read\xff\xff\xff\xff\x00\x00\x00\x00"


def join_and_sync(client: RawClient, group_id: str, instance_id: str | None, assignment: bytes) -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    )
    joined = client.ask(request, 5 if instance_id else 3)
    assert joined.error_code == ErrorCode.NONE
    synced = client.ask(
        SyncGroupRequest(
            group_id=group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance_id,
            assignments=(SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment),),
        ),
        3,
    )
    assert synced.assignment == assignment
    return joined


def commit(
    client: RawClient, group_id: str, version: int, joined: JoinGroupResponse | None = None, **options: int
) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=42, committed_leader_epoch=7, committed_metadata="a note, größer"
    )
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=joined.generation_id if joined else -1,
        member_id=joined.member_id if joined else "",
        topics=(OffsetCommitRequestTopic(name=READ, partitions=(partition,)),),
        **options,
    )
    answered = client.ask(request, version)
    assert [part.error_code for topic in answered.topics for part in topic.partitions] == [ErrorCode.NONE]


def write_groups(broker: KafkaBroker) -> None:
    Admin(broker.bootstrap).create(READ, 1)
    with RawClient(broker.bootstrap, "größe") as client:
        wait_for_coordinator(client)
        commit(client, "simple", 9)
        commit(client, "kept-for-a-day", 4, retention_time_ms=86_400_000)
        commit(client, "deleted", 8)
        assert client.ask(DeleteGroupsRequest(groups_names=("deleted",)), 2).results[0].error_code == ErrorCode.NONE
        commit(client, "static", 7, join_and_sync(client, "static", "instance-1", b"\x00mine\xff"))
        commit(client, "dynamic", 9, join_and_sync(client, "dynamic", None, b""))
        left = join_and_sync(client, "left", None, b"assigned")
        leaving = LeaveGroupRequest(group_id="left", members=(MemberIdentity(member_id=left.member_id),))
        assert client.ask(leaving, 5).error_code == ErrorCode.NONE
        newer = ConsumerGroupHeartbeatRequest(
            group_id="of-a-newer-kind",
            member_id=str(uuid.UUID(int=1)),
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=(READ,),
            topic_partitions=(),
        )
        assert client.ask(newer, 1).error_code == ErrorCode.NONE
        classic = join_and_sync(client, "converted", None, b"")
        other = structs.replace(newer, group_id="converted", member_id="other", subscribed_topic_regex="r.*")
        assert client.ask(other, 1).error_code == ErrorCode.NONE
        leaving = LeaveGroupRequest(group_id="converted", members=(MemberIdentity(member_id=classic.member_id),))
        assert client.ask(leaving, 5).error_code == ErrorCode.NONE
        _until_pattern_is_resolved(client, other)


def _until_pattern_is_resolved(client: RawClient, member: ConsumerGroupHeartbeatRequest) -> None:
    """Kafka matches patterns in a separate thread, and reports the result in a later heartbeat."""
    epoch = 2
    deadline = time.monotonic() + 30
    while epoch == 2:
        assert time.monotonic() < deadline
        beat = ConsumerGroupHeartbeatRequest(
            group_id=member.group_id, member_id=member.member_id, member_epoch=epoch, topic_partitions=()
        )
        answer = client.ask(beat, 1)
        assert answer.error_code == ErrorCode.NONE, answer
        epoch = answer.member_epoch


@pytest.fixture(scope="module")
def written(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> list[KeyValue]:
    """Every record of the topic, in the order of their offsets."""
    with KafkaBroker(kafka, tmp_path_factory.mktemp("groups")) as broker:
        write_groups(broker)
    return list(group_records(broker.log_dir))


def group_records(log_dir: Path) -> Iterator[KeyValue]:
    at = TopicPartition(records.TOPIC, 0)
    with DataDir(log_dir, SystemClock()) as data_dir:
        for record in read_all(at, data_dir.open_partition(at, LogConfig())):
            assert record.key is not None
            yield KeyValue(record.key, record.value)


def again(record: KeyValue) -> KeyValue:
    """The record decoded and encoded."""
    key = records.decode_key(record.key)
    if isinstance(key, GroupKey):
        return records.encode_group(key, None if record.value is None else records.decode_group_value(record.value))
    if isinstance(key, OffsetKey):
        return records.encode_offset(key, None if record.value is None else records.decode_offset_value(record.value))
    assert key is not None
    value = None if record.value is None else consumer_records.decode_value(key, record.value, records.TOPIC)
    return KeyValue(*consumer_records.encode(consumer_records.Record(key, value)))


def test_every_record_of_kafkas_is_written_again_to_the_same_bytes(written: list[KeyValue]) -> None:
    kinds = {(records.version_of(each.key), each.value and records.version_of(each.value)) for each in written}
    assert kinds >= {(1, 4), (1, 1), (1, None), (2, 3), (2, None)}
    assert kinds >= {(3, 0), (5, 0), (6, 0), (7, 0), (8, 0), (16, 0), (5, None), (7, None), (8, None)}
    for record in written:
        assert again(record) == record


def test_kafkas_groups_continue_in_ottla(written: list[KeyValue]) -> None:
    coordinator = Coordinator(environment())
    for record in written:
        coordinator.table.replay(*record)

    assert coordinator.table.start(now_ms=0) == []
    states = {group.group_id: group.state for group in coordinator.table}
    assert states == {
        "simple": State.EMPTY,
        "kept-for-a-day": State.EMPTY,
        "static": State.STABLE,
        "dynamic": State.STABLE,
        "left": State.EMPTY,
        "of-a-newer-kind": State.STABLE,
        "converted": State.STABLE,
    }
    for group_id in ("simple", "kept-for-a-day", "static", "dynamic"):
        committed = coordinator.offsets.get(group_id, TopicPartition(READ, 0))
        assert committed is not None
        assert (committed.offset, committed.metadata) == (42, "a note, größer")
    [member] = coordinator.describe("static", 5).members
    assert (member.group_instance_id, member.member_assignment) == ("instance-1", b"\x00mine\xff")


def test_commits_of_another_client_are_read_too(kafka_stopped: KafkaFolder, tmp_path: Path) -> None:
    shutil.copytree(kafka_stopped.log_dir, tmp_path / "data")
    found = list(group_records(tmp_path / "data"))
    assert found
    assert [again(record) for record in found] == found
