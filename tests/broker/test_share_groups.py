"""Share groups as seen by their members: delivery, acknowledgement, sessions, membership, offsets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.cluster.brokers import until

import ottla
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode
from ottla.records.reader import RecordReader
from ottla.share.config import ShareConfig
from ottla.storage.config import LogConfig
from ottla.testing.ephemeral import EphemeralBroker
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest

from .making import batch, create_topic, delete_topic, produce, send_batch
from .raw_client import RawClient
from .sharing import ACCEPT, REJECT, RELEASE, RENEW, ShareMember
from .transacting import Transactional

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def topic_id(client: RawClient, name: str) -> bytes:
    return create_topic(client, name)


@pytest.fixture
def ann(client: RawClient, name: str, topic_id: bytes) -> ShareMember:
    return ShareMember(client, name, name, topic_id)


@pytest.fixture
def bob(broker: ottla.Broker, ann: ShareMember) -> Iterator[ShareMember]:
    """A second member of the group, on a separate connection."""
    with RawClient(broker.bootstrap_servers) as client:
        yield ShareMember(client, ann.group, ann.topic, ann.topic_id)


def start_offset(client: RawClient, group: str) -> tuple[int, int]:
    """Start offset and lag of the only partition of a group."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    [found] = client.ask(DescribeShareGroupOffsetsRequest(groups=(asked,))).groups
    assert found.error_code == ErrorCode.NONE, found
    [part] = found.topics[0].partitions
    return part.start_offset, part.lag


# ── Delivery ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_group_starts_at_the_latest_offset(client: RawClient, name: str, topic_id: bytes) -> None:
    produce(client, name, b"before")
    member = ShareMember(client, name, name, topic_id)
    assert [(one.topic_id, one.partitions) for one in member.assigned] == [(topic_id, (0,))]
    produce(client, name, b"a", b"b")
    got = member.fetch()
    assert got.values == {1: b"a", 2: b"b"}
    assert got.ranges == [(1, 2, 1)]


def test_two_members_of_one_partition_get_different_records(
    client: RawClient, ann: ShareMember, bob: ShareMember
) -> None:
    produce(client, ann.topic, *(b"%d" % number for number in range(10)))
    assert ann.fetch(max_records=4).offsets == [0, 1, 2, 3]
    assert bob.fetch(max_records=4).offsets == [4, 5, 6, 7]
    assert ann.fetch().offsets == [8, 9]
    assert bob.fetch().offsets == []


def test_whole_batches_are_acquired_unless_the_limit_is_strict(client: RawClient, ann: ShareMember) -> None:
    for _ in range(3):
        produce(client, ann.topic, b"a", b"b", b"c")
    assert ann.fetch(max_records=4, is_strict=False).offsets == [0, 1, 2, 3, 4, 5]
    assert ann.fetch(max_records=2).offsets == [6, 7]


def test_a_waiting_fetch_is_woken_by_an_append(client: RawClient, ann: ShareMember, bob: ShareMember) -> None:
    sent = bob.send_fetch()
    produce(client, ann.topic, b"a")
    assert bob.receive(sent).values == {0: b"a"}


def test_a_waiting_fetch_is_woken_by_a_release(client: RawClient, ann: ShareMember, bob: ShareMember) -> None:
    produce(client, ann.topic, b"a")
    ann.fetch()
    sent = bob.send_fetch()
    assert ann.acknowledge(0, 0, RELEASE) == ErrorCode.NONE
    assert bob.receive(sent).ranges == [(0, 0, 2)]


def test_records_below_min_bytes_stay_available_to_others_while_a_fetch_waits(
    client: RawClient, ann: ShareMember, bob: ShareMember
) -> None:
    produce(client, ann.topic, b"a")
    sent = bob.send_fetch(min_bytes=300)
    assert ann.fetch().values == {0: b"a"}
    produce(client, ann.topic, b"b" * 100)
    produce(client, ann.topic, b"c" * 100)
    assert bob.receive(sent).offsets == [1, 2]


def test_a_fetch_waits_for_min_bytes_no_longer_than_max_wait(ann: ShareMember, client: RawClient) -> None:
    produce(client, ann.topic, b"a")
    assert ann.receive(ann.send_fetch(min_bytes=1 << 20, wait_ms=20)).offsets == [0]
    produce(client, ann.topic, b"b")
    assert ann.receive(ann.send_fetch(min_bytes=1 << 20, wait_ms=0)).offsets == [1]


def test_released_records_count_towards_min_bytes(client: RawClient, ann: ShareMember, bob: ShareMember) -> None:
    produce(client, ann.topic, b"a" * 100)
    produce(client, ann.topic, b"b" * 100)
    ann.fetch()
    sent = bob.send_fetch(min_bytes=200)
    assert ann.acknowledge(0, 1, RELEASE) == ErrorCode.NONE
    assert bob.receive(sent).ranges == [(0, 1, 2)]


def test_bytes_without_available_records_do_not_end_the_wait(
    client: RawClient, ann: ShareMember, bob: ShareMember
) -> None:
    producer = Transactional(client, f"{ann.topic}-txn")
    producer.write(ann.topic, b"a")
    assert ann.fetch().values == {0: b"a"}
    producer.commit()
    sent = bob.send_fetch(min_bytes=50)  # the marker alone takes more
    produce(client, ann.topic, b"b")
    assert bob.receive(sent).values == {2: b"b"}


def test_a_fetch_that_finds_nothing_is_answered_at_its_timeout(ann: ShareMember) -> None:
    assert ann.fetch(wait_ms=20).values == {}


def test_control_batches_and_aborted_records_are_skipped(client: RawClient, ann: ShareMember) -> None:
    producer = Transactional(client, f"{ann.topic}-txn")
    producer.write(ann.topic, b"a")
    producer.commit()
    produce(client, ann.topic, b"b")
    got = ann.fetch()
    assert got.values == {0: b"a", 2: b"b"}
    assert ann.acknowledge(0, 0, ACCEPT) == ErrorCode.NONE
    assert ann.acknowledge(2, 2, ACCEPT) == ErrorCode.NONE
    assert start_offset(client, ann.group) == (3, 0)


def test_the_number_of_records_in_flight_is_limited() -> None:
    with (
        EphemeralBroker(Settings(share=ShareConfig(partition_max_record_locks=3))) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        member = ShareMember(client, "g", "t", create_topic(client, "t"))
        for number in range(5):
            produce(client, "t", b"%d" % number)
        assert member.fetch().offsets == [0, 1, 2]
        assert member.fetch().offsets == []
        assert member.acknowledge(1, 1, ACCEPT) == ErrorCode.NONE
        assert member.fetch().offsets == [3]


def test_a_batch_larger_than_the_window_is_acquired_in_part_and_sent_once() -> None:
    settings = Settings(share=ShareConfig(partition_max_record_locks=3))
    with EphemeralBroker(settings) as broker, RawClient(broker.bootstrap_servers) as client:
        member = ShareMember(client, "g", "t", create_topic(client, "t"))
        produce(client, "t", *(b"%d" % number for number in range(10)))
        got = member.fetch(is_strict=False)
        assert got.ranges == [(0, 2, 1)]
        assert len(list(RecordReader(bytes(got.data.records or b"")))) == 10


# ── Acknowledging ────────────────────────────────────────────────────────────────────────────────────────────


def test_accepted_records_are_never_delivered_again(client: RawClient, ann: ShareMember) -> None:
    produce(client, ann.topic, b"a", b"b", b"c")
    ann.fetch()
    assert ann.acknowledge(0, 2, ACCEPT, RELEASE, ACCEPT) == ErrorCode.NONE
    assert start_offset(client, ann.group) == (1, 1)
    assert ann.fetch().ranges == [(1, 1, 2)]
    assert ann.acknowledge(1, 1, ACCEPT) == ErrorCode.NONE
    assert start_offset(client, ann.group) == (3, 0)


def test_acknowledgements_may_come_with_a_fetch(client: RawClient, ann: ShareMember) -> None:
    produce(client, ann.topic, b"a", b"b")
    ann.fetch()
    got = ann.fetch(acks=[(0, 0, [ACCEPT]), (1, 1, [RELEASE])])
    assert got.data.acknowledge_error_code == ErrorCode.NONE
    assert got.ranges == [(1, 1, 2)]


def test_a_record_is_archived_at_the_delivery_limit(client: RawClient, ann: ShareMember) -> None:
    produce(client, ann.topic, b"a")
    for number in range(1, 6):
        assert ann.fetch().ranges == [(0, 0, number)]
        assert ann.acknowledge(0, 0, RELEASE) == ErrorCode.NONE
    assert ann.fetch().ranges == []
    assert start_offset(client, ann.group) == (1, 0)


def test_a_rejected_record_is_archived_at_once(client: RawClient, ann: ShareMember) -> None:
    produce(client, ann.topic, b"a", b"b")
    ann.fetch()
    assert ann.acknowledge(0, 1, REJECT, ACCEPT) == ErrorCode.NONE
    assert start_offset(client, ann.group) == (2, 0)


def test_only_the_member_that_acquired_a_record_can_acknowledge_it(
    client: RawClient, ann: ShareMember, bob: ShareMember
) -> None:
    produce(client, ann.topic, b"a", b"b")
    ann.fetch(max_records=1)
    bob.fetch(max_records=1)
    assert bob.acknowledge(0, 0, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    # A request is applied as a whole or not at all.
    assert ann.acknowledge(0, 1, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    assert ann.acknowledge(0, 0, ACCEPT) == ErrorCode.NONE
    assert ann.acknowledge(0, 1, ACCEPT, ACCEPT, ACCEPT) == ErrorCode.INVALID_REQUEST


def test_records_of_a_leaving_member_become_available_to_others(
    client: RawClient, ann: ShareMember, bob: ShareMember
) -> None:
    produce(client, ann.topic, b"a")
    ann.fetch()
    sent = bob.send_fetch()
    ann.close()
    # Not a delivery attempt: closing releases records that were only prefetched.
    assert bob.receive(sent).ranges == [(0, 0, 1)]


def test_records_of_a_lost_connection_count_as_delivered(
    broker: ottla.Broker, client: RawClient, ann: ShareMember
) -> None:
    produce(client, ann.topic, b"a")
    with RawClient(broker.bootstrap_servers) as other:
        ShareMember(other, ann.group, ann.topic, ann.topic_id).fetch()
        sent = ann.send_fetch()
    assert ann.receive(sent).ranges == [(0, 0, 2)]


# ── Sessions ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_session_counts_its_requests(ann: ShareMember) -> None:
    assert ann.acknowledge(0, 0, ACCEPT, session_epoch=1) == ErrorCode.SHARE_SESSION_NOT_FOUND
    ann.fetch()
    assert ann.acknowledge(0, 0, ACCEPT, session_epoch=0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ann.acknowledge(0, 0, ACCEPT, session_epoch=7) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ann.acknowledge(0, 0, ACCEPT) == ErrorCode.INVALID_RECORD_STATE


# ── Membership ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_member_is_known_by_its_epoch(ann: ShareMember) -> None:
    assert ann.heartbeat().error_code == ErrorCode.NONE
    assert ann.heartbeat(epoch=9).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    ann.id = "somebody"
    assert ann.heartbeat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_new_partitions_and_new_members_are_shared_out(client: RawClient, name: str) -> None:
    topic_id = create_topic(client, name, partitions=3)
    ann = ShareMember(client, name, name, topic_id)
    assert ann.assigned[0].partitions == (0, 1, 2)
    bob = ShareMember(client, name, name, topic_id)
    assert bob.assigned[0].partitions == (1,)
    news = ann.heartbeat().assignment
    assert news is not None
    assert news.topic_partitions[0].partitions == (0, 2)
    assert ann.heartbeat().assignment is None


def test_a_share_group_is_listed_and_described(client: RawClient, ann: ShareMember, bob: ShareMember) -> None:
    listed = {one.group_id: one for one in client.ask(ListGroupsRequest(types_filter=("share",))).groups}
    assert (listed[ann.group].group_state, listed[ann.group].group_type) == ("Stable", "share")
    [group] = client.ask(ShareGroupDescribeRequest(group_ids=(ann.group,), include_authorized_operations=False)).groups
    assert {member.member_id for member in group.members} == {ann.id, bob.id}
    assert group.members[0].assignment.topic_partitions[0].topic_name == ann.topic
    [unknown] = client.ask(ShareGroupDescribeRequest(group_ids=("nobody",), include_authorized_operations=False)).groups
    assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_of_another_type_cannot_be_a_share_group(client: RawClient, ann: ShareMember) -> None:
    joining = JoinGroupRequest(
        group_id=ann.group,
        session_timeout_ms=6000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    assert client.ask(joining, 3).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# ── Offsets, for administrators ──────────────────────────────────────────────────────────────────────────────


def test_an_administrator_alters_and_deletes_the_offsets_of_an_empty_group(client: RawClient, ann: ShareMember) -> None:
    produce(client, ann.topic, b"a", b"b", b"c")
    part = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name=ann.topic, partitions=(part,))
    moving = AlterShareGroupOffsetsRequest(group_id=ann.group, topics=(topic,))
    assert client.ask(moving).error_code == ErrorCode.NON_EMPTY_GROUP
    ann.fetch()
    ann.close()
    assert client.ask(moving).responses[0].partitions[0].error_code == ErrorCode.NONE
    assert start_offset(client, ann.group) == (1, 2)

    doomed = DeleteShareGroupOffsetsRequestTopic(topic_name=ann.topic)
    answer = client.ask(DeleteShareGroupOffsetsRequest(group_id=ann.group, topics=(doomed,)))
    assert answer.responses[0].error_code == ErrorCode.NONE
    [gone] = client.ask(DeleteGroupsRequest(groups_names=(ann.group,))).results
    assert gone.error_code == ErrorCode.NONE
    assert ann.group not in {one.group_id for one in client.ask(ListGroupsRequest()).groups}


def test_deleted_records_are_not_waited_for(client: RawClient, ann: ShareMember) -> None:
    produce(client, ann.topic, b"a", b"b")
    ann.fetch()
    part = DeleteRecordsPartition(partition_index=0, offset=2)
    topic = DeleteRecordsTopic(name=ann.topic, partitions=(part,))
    client.ask(DeleteRecordsRequest(topics=(topic,), timeout_ms=1000))
    produce(client, ann.topic, b"c")
    assert ann.fetch().values == {2: b"c"}
    # Without effect: the record was archived meanwhile.
    assert ann.acknowledge(0, 1, ACCEPT) == ErrorCode.NONE
    assert ann.acknowledge(2, 2, ACCEPT) == ErrorCode.NONE
    assert start_offset(client, ann.group) == (3, 0)


def test_a_group_that_has_acknowledged_nothing_shows_no_offsets(client: RawClient, ann: ShareMember) -> None:
    produce(client, ann.topic, b"a", b"b")
    assert start_offset(client, ann.group) == (-1, -1)
    ann.fetch()
    assert start_offset(client, ann.group) == (-1, -1)
    assert ann.acknowledge(0, 0, ACCEPT) == ErrorCode.NONE
    assert start_offset(client, ann.group) == (1, 1)


def test_compacted_records_are_skipped(client: RawClient, broker: ottla.Broker, name: str) -> None:
    configs = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.0"}
    member = ShareMember(client, name, name, create_topic(client, name, configs=configs))
    then_ms = time.time_ns() // 1_000_000 - 60_000
    for number in range(6):
        send_batch(client, name, batch(b"%d" % number, key=b"k", timestamp_ms=then_ms + number * 1000))
    assert member.fetch().ranges == [(0, 5, 1)]
    assert member.acknowledge(0, 5, RELEASE) == ErrorCode.NONE
    send_batch(client, name, batch(b"last", key=b"x"))
    broker.call(broker.broker.compactor.check())
    assert member.fetch().values == {5: b"5", 6: b"last"}
    assert start_offset(client, name)[0] == 5


def test_deleting_a_topic_deletes_its_share_group_state(client: RawClient, ann: ShareMember) -> None:
    produce(client, ann.topic, b"a", b"b")
    ann.fetch()
    delete_topic(client, ann.topic)
    ann.topic_id = create_topic(client, ann.topic)
    assert ann.heartbeat().assignment is not None
    produce(client, ann.topic, b"new")
    ann.session_epoch = 0
    assert ann.fetch().values == {0: b"new"}


# ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_expired_lock_makes_its_record_available_to_others() -> None:
    with (
        EphemeralBroker() as broker,
        RawClient(broker.bootstrap_servers) as client,
        RawClient(broker.bootstrap_servers) as other,
    ):
        topic_id = create_topic(client, "t")
        ann, bob = ShareMember(client, "g", "t", topic_id), ShareMember(other, "g", "t", topic_id)
        produce(client, "t", b"a", b"b")
        ann.fetch()
        broker.clock.advance(20)
        assert ann.acknowledge(1, 1, RENEW) == ErrorCode.NONE
        sent = bob.send_fetch()
        broker.clock.advance(11)
        assert bob.receive(sent).ranges == [(0, 0, 2)]
        assert ann.acknowledge(0, 0, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
        assert ann.acknowledge(1, 1, ACCEPT) == ErrorCode.NONE


def test_a_silent_member_is_removed() -> None:
    with EphemeralBroker() as broker, RawClient(broker.bootstrap_servers) as client:
        ann = ShareMember(client, "g", "t", create_topic(client, "t"))
        broker.clock.advance(44)
        assert ann.heartbeat().error_code == ErrorCode.NONE
        broker.clock.advance(44)
        assert ann.heartbeat().error_code == ErrorCode.NONE
        broker.clock.advance(46)
        assert ann.heartbeat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


# ── Restarts ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_share_group_state_survives_a_restart(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        member = ShareMember(client, "g", "t", create_topic(client, "t"))
        send_batch(client, "t", batch(*(b"%d" % number for number in range(6))))
        member.fetch()
        assert member.acknowledge(0, 3, ACCEPT, RELEASE, ACCEPT, REJECT) == ErrorCode.NONE
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        member.client, member.session_epoch = client, 0
        assert member.heartbeat().error_code == ErrorCode.NONE
        assert start_offset(client, "g") == (1, 3)
        got = member.fetch()
        # Records of the lost connection count as delivered.
        assert got.ranges == [(1, 1, 2), (4, 5, 2)]


def test_old_state_is_deleted_after_a_new_snapshot(tmp_path: Path) -> None:
    settings = Settings(share=ShareConfig(state_updates_per_snapshot=5), log=LogConfig(flush="os"))
    with ottla.Broker(tmp_path, settings=settings) as broker, RawClient(broker.bootstrap_servers) as client:
        member = ShareMember(client, "g", "t", create_topic(client, "t"))
        idle = ShareMember(client, "idle", "t", member.topic_id)
        for number in range(150):
            produce(client, "t", b"%d" % number)
            member.fetch(acks=[(number - 1, number - 1, [ACCEPT])] if number else ())
        log = broker.broker.topics.partition("__share_group_state", 0).log
        assert log.next_offset > 150
        until(lambda: log.next_offset - log.start_offset < 110)
        assert log.start_offset < log.recovery_point, "a power cut would lose the snapshots and everything before them"
    with ottla.Broker(tmp_path, settings=settings) as broker, RawClient(broker.bootstrap_servers) as client:
        assert start_offset(client, "g") == (149, 1)
        assert start_offset(client, "idle") == (0, 150)
        idle.client = client
        assert idle.fetch().offsets == list(range(150))
