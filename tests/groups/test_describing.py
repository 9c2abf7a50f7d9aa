"""Descriptions of a group, and its state after a restart."""

import pytest

from ottla.core.errors import ErrorCode
from ottla.groups.actions import MemberExpired, Persist
from ottla.groups.classic import ClassicGroup
from ottla.groups.classic_records import restore
from ottla.groups.config import GroupConfig
from ottla.groups.describing import describe
from ottla.groups.formats import GroupMetadataValue, MemberMetadata, OffsetCommitValue
from ottla.groups.states import State
from ottla.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.wire.messages.list_groups import ListedGroup

from .making import (
    ANN,
    BOB,
    HOST,
    READS,
    SESSION_MS,
    TOPIC_READ,
    Room,
    joined,
    persisted,
    protocols,
    seats,
    synced,
    uuids,
)


def described(member_id: str, metadata: bytes, assignment: bytes) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member_id,
        client_id=member_id.partition("-")[0],
        client_host=HOST,
        member_metadata=metadata,
        member_assignment=assignment,
    )


def test_a_stable_group_shows_its_protocol_and_assignments() -> None:
    assert describe(Room().with_two().group) == DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id="g",
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=(described(ANN, READS, b"a"), described(BOB, READS, b"b")),
    )


def test_a_rebalancing_group_shows_only_its_members() -> None:
    room = Room()
    room.join("ann")
    assert describe(room.group) == DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id="g",
        group_state="CompletingRebalance",
        protocol_type="consumer",
        protocol_data="",
        members=(described(ANN, b"", b""),),
    )


def test_instances_are_shown() -> None:
    members = describe(Room().with_static_two().group).members
    assert [member.group_instance_id for member in members] == ["ann", "bob"]


def test_a_list_names_type_and_state() -> None:
    assert Room().with_two().group.listed() == ListedGroup(
        group_id="g", protocol_type="consumer", group_state="Stable", group_type="classic"
    )
    assert Room().group.listed() == ListedGroup(
        group_id="g", protocol_type="", group_state="Empty", group_type="classic"
    )


# ── Subscriptions ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_groups_subscription_is_the_union_of_its_consumers() -> None:
    group = Room().with_two().group
    assert group.is_subscribed_to(TOPIC_READ)
    assert not group.is_subscribed_to("other")


def test_unknown_metadata_counts_as_subscribed_to_everything() -> None:
    room = Room()
    room.join("ann", protocols=protocols("range", metadata=b"?"))
    assert room.group.is_subscribed_to("anything")


def test_before_the_first_generation_the_subscription_is_unknown() -> None:
    room = Room(initial_rebalance_delay_ms=3000)
    room.join("ann")
    assert room.group.is_subscribed_to("anything")


@pytest.mark.parametrize("protocol_type", ["connect", "consumer"])
def test_an_empty_group_has_no_subscription(protocol_type: str) -> None:
    room = Room()
    room.join("ann", protocol_type=protocol_type)
    room.leave_alone(ANN)
    assert not room.group.is_subscribed_to(TOPIC_READ)


def test_other_protocol_types_have_no_subscription() -> None:
    room = Room()
    room.join("ann", protocol_type="connect")
    assert not room.group.is_subscribed_to(TOPIC_READ)


# ── Expiration of offsets ───────────────────────────────────────────────────────────────────────────────────────────

COMMITTED = OffsetCommitValue(offset=1, commit_timestamp=100)


def test_offsets_of_a_group_without_members_expire_from_their_commit() -> None:
    assert Room().group.retention_starts_ms(COMMITTED) == 100


def test_offsets_of_an_empty_group_expire_from_when_it_became_empty() -> None:
    room = Room()
    room.join("ann")
    room.leave_alone(ANN, now=500)
    assert room.group.retention_starts_ms(COMMITTED) == 500


def test_offsets_of_a_stable_consumer_group_expire_from_their_commit() -> None:
    assert Room().with_two().group.retention_starts_ms(COMMITTED) == 100


@pytest.mark.parametrize(
    "fields", [{"protocol_type": "connect"}, {"protocols": protocols("range", metadata=b"not a subscription")}]
)
def test_offsets_of_a_stable_group_with_unknown_metadata_do_not_expire(fields: dict[str, object]) -> None:
    assert Room().with_two(**fields).group.retention_starts_ms(COMMITTED) is None


def test_offsets_do_not_expire_during_a_rebalance() -> None:
    room = Room()
    room.join("ann")
    assert room.group.retention_starts_ms(COMMITTED) is None


# ── After a restart ──────────────────────────────────────────────────────────────────────────────────────────────────


def restarted(value: GroupMetadataValue, **settings: int) -> Room:
    config = GroupConfig(min_session_timeout_ms=1000, **settings)
    group = ClassicGroup("g", config, uuids(), now_ms=0)
    restore(group, value)
    return Room(group)


def last_written(room: Room, now: int = 0) -> GroupMetadataValue:
    [persist, *_] = room.join("bob", group_instance_id="bob", version=9, now=now)
    assert isinstance(persist, Persist)
    assert persist.value is not None
    return persist.value


def test_members_of_a_stable_group_continue_after_a_restart() -> None:
    room = restarted(last_written(Room().with_static_two()))
    assert room.group.start(50) == []
    assert room.group.state is State.STABLE
    assert room.heartbeat(ANN, 2, now=60) is ErrorCode.NONE
    assert room.sync("ann", ANN, 2, now=60) == [synced("ann", b"a")]
    assert room.join("bob", "bob-3", now=60) == [joined("bob", "bob-3", 2, leader=ANN)]
    assert room.group.is_subscribed_to(TOPIC_READ)
    assert not room.group.is_subscribed_to("other")


def test_session_timeouts_restart_after_a_restart() -> None:
    room = restarted(last_written(Room().with_static_two()))
    assert room.group.next_deadline_ms() is None
    room.group.start(50)
    assert room.group.next_deadline_ms() == 50 + SESSION_MS
    assert MemberExpired("g", ANN, "heartbeat") in room.group.expire(50 + SESSION_MS)


def test_a_group_that_is_now_too_large_rebalances() -> None:
    room = restarted(last_written(Room().with_static_two()), max_size=1)
    assert room.group.start(50) == []
    assert room.group.state is State.PREPARING_REBALANCE


def test_an_empty_group_keeps_its_generation_and_when_it_became_empty() -> None:
    value = persisted(7, 1234).value
    assert value is not None
    room = restarted(value)
    assert room.group.start(50) == []
    assert room.group.state is State.EMPTY
    assert room.group.retention_starts_ms(COMMITTED) == 1234
    assert room.join("ann") == [joined("ann", ANN, 8, leader=ANN, members=seats(ANN))]


def test_without_a_time_of_becoming_empty_offsets_expire_from_their_commit() -> None:
    value = GroupMetadataValue(protocol_type="consumer", generation=7, protocol=None, leader=None, members=())
    assert restarted(value).group.retention_starts_ms(COMMITTED) == 100


def test_members_of_old_records_use_their_session_timeout_as_rebalance_timeout() -> None:
    member = MemberMetadata(
        member_id=ANN, client_id="ann", client_host=HOST, session_timeout=5000, subscription=READS, assignment=b""
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=7, protocol="range", leader="lost", members=(member,)
    )
    room = restarted(value)
    room.group.start(0)
    room.join("bob", rebalance_timeout_ms=1000)
    room.heartbeat(ANN, 7, now=4000)
    assert room.group.expire(5000) == [
        MemberExpired("g", ANN, "rejoin"),
        joined("bob", "bob-1", 8, leader="bob-1", members=seats("bob-1")),
    ]
