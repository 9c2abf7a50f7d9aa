"""Members of share groups, their sessions, and their records."""

from __future__ import annotations

import pytest

from ottla.core.errors import (
    ErrorCode,
    InvalidRequest,
    InvalidShareSessionEpoch,
    ShareSessionLimitReached,
    ShareSessionNotFound,
)
from ottla.core.memory_budget import MemoryBudget
from ottla.share.assignor import TopicSize, assign
from ottla.share.config import ShareConfig
from ottla.share.group import Caller, HeartbeatResult, ShareGroup, handle_heartbeat
from ottla.share.log import records_between, records_of_end
from ottla.share.sessions import SessionKey, Sessions, TopicIdPartition, session_key
from ottla.share.settings import is_offset_reset, reset_age_ms, settings_of
from ottla.share.table import ShareGroups
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

CALLER = Caller("client", "/host")
TOPIC_ID = bytes(15) + b"1"
TOPICS = {"orders": TopicSize(TOPIC_ID, 2)}


def beat(
    group: ShareGroup,
    member: str,
    epoch: int,
    topics: tuple[str, ...] | None = None,
    sizes: dict[str, TopicSize] = TOPICS,
) -> HeartbeatResult:
    request = ShareGroupHeartbeatRequest(
        group_id=group.id, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
    )
    return handle_heartbeat(group, request, CALLER, sizes.get, max_size=2)


def joined(group: ShareGroup, member: str) -> ShareGroup:
    heard = beat(group, member, 0, ("orders",))
    assert heard.response.error_code == ErrorCode.NONE
    return heard.group


def partitions(heard: HeartbeatResult) -> tuple[int, ...] | None:
    assignment = heard.response.assignment
    return None if assignment is None else assignment.topic_partitions[0].partitions


def test_members_join_and_leave_and_others_learn_with_their_next_heartbeat() -> None:
    heard = beat(ShareGroup(id="g"), "ann", 0, ("orders",))
    assert (heard.response.member_epoch, partitions(heard)) == (1, (0, 1))
    group = joined(heard.group, "bob")
    heard = beat(group, "ann", 1)
    assert (heard.response.member_epoch, partitions(heard)) == (2, (0,))
    # The response was lost: the member sends its previous epoch.
    assert beat(heard.group, "ann", 1).response.member_epoch == 2
    left = beat(heard.group, "bob", -1)
    assert left.response.member_epoch == -1
    assert partitions(beat(left.group, "ann", 2)) == (0, 1)
    assert beat(left.group, "ann", -1).group.state == "Empty"


def test_added_partitions_are_assigned() -> None:
    group = joined(ShareGroup(id="g"), "ann")
    assert partitions(beat(group, "ann", 1)) is None
    grown = beat(group, "ann", 1, sizes={"orders": TopicSize(TOPIC_ID, 3)})
    assert partitions(grown) == (0, 1, 2)
    assert grown.group.uninitialized(group) == [(TOPIC_ID, 2, True)]
    assert group.uninitialized(None) == [(TOPIC_ID, 0, False), (TOPIC_ID, 1, False)]


def test_invalid_heartbeats_are_refused() -> None:
    group = joined(joined(ShareGroup(id="g"), "ann"), "bob")
    assert beat(group, "cyd", 0, ("orders",)).response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert beat(ShareGroup(id="g"), "cyd", 0).response.error_code == ErrorCode.INVALID_REQUEST
    assert beat(group, "cyd", 3).response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(group, "ann", 7).response.error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_every_member_has_partitions_and_every_partition_has_members() -> None:
    sizes = {f"t{n}": TopicSize(bytes([n]), 1 + n % 3) for n in range(6)}
    members = {f"m{n}": frozenset(sizes) for n in range(4)}
    assigned = assign(members, sizes)
    assert all(assigned.values())
    for size in sizes.values():
        got = [index for each in assigned.values() for index in each.get(size.id, ())]
        assert set(got) == set(range(size.partitions))
    assert assign({"m": frozenset({"gone"})}, {}) == {"m": {}}


def test_a_group_is_restored_from_its_records() -> None:
    first = ShareGroup(id="g")
    ann = joined(first, "ann")
    both = joined(ann, "bob")
    left = beat(both, "ann", -1).group
    table = ShareGroups(MemoryBudget(1 << 20))
    for before, after in ((first, ann), (ann, both), (both, left)):
        for key, value in records_between(before, after):
            table.replay(key, value)
        assert table.get("g") == after
    assert [one.group_id for one in table.listed(ListGroupsRequest(types_filter=("Share",)))] == ["g"]
    assert table.listed(ListGroupsRequest(types_filter=("classic",))) == ()
    for key, value in records_of_end(left):
        table.replay(key, value)
    assert table.get("g") is None
    table.replay(b"\x00\x02\x00\x01g", None)
    assert table.get("g") is None


def test_a_silent_members_session_expires() -> None:
    table = ShareGroups(MemoryBudget(1 << 20))
    table.heard_of("g", "ann", 0, 100)
    table.heard_of("g", "bob", 0, 100)
    table.heard_of("g", "bob", 90, 100)
    assert table.next_deadline_ms() == 100
    assert table.silent(100) == [("g", "ann")]
    table.gone("g", "bob")
    assert table.silent(500) == []
    table.heard_of("g", "bob", 500, 100)
    assert table.silent(600) == [("g", "bob")]


# Share sessions

KEY = SessionKey("g", "ann")
AT = TopicIdPartition(TOPIC_ID, 0)


def test_a_share_session_is_counted_from_its_opening_to_its_end() -> None:
    sessions = Sessions(most=1)
    session = sessions.fetching(KEY, 0, "connection")
    session.update([AT, TopicIdPartition(TOPIC_ID, 1)], [])
    session.served(AT)
    assert list(session.partitions) == [TopicIdPartition(TOPIC_ID, 1), AT]
    session.update([], [AT])
    assert list(session.partitions) == [TopicIdPartition(TOPIC_ID, 1)]
    assert sessions.fetching(KEY, 1, "connection") is session
    assert sessions.acknowledging(KEY, 2) is session
    with pytest.raises(InvalidShareSessionEpoch):
        sessions.fetching(KEY, 2, "connection")
    with pytest.raises(InvalidShareSessionEpoch):
        sessions.acknowledging(KEY, 0)
    with pytest.raises(ShareSessionLimitReached):
        sessions.fetching(SessionKey("g", "bob"), 0, "connection")
    assert sessions.fetching(KEY, -1, "connection") is session
    sessions.close(KEY)
    with pytest.raises(ShareSessionNotFound):
        sessions.acknowledging(KEY, -1)
    with pytest.raises(InvalidRequest):
        session_key("g", None)


def test_a_lost_connection_ends_its_sessions() -> None:
    sessions = Sessions(most=10)
    mine = sessions.fetching(KEY, 0, "mine")
    sessions.fetching(SessionKey("g", "bob"), 0, "other")
    assert sessions.lost("mine") == [mine]
    assert sessions.lost("mine") == []
    assert len(sessions) == 1


# Settings


@pytest.mark.parametrize(
    ("text", "age_ms"),
    [("by_duration:PT1H", 3_600_000), ("by_duration:P1DT0.5S", 86_400_500), ("by_duration:P", None), ("latest", None)],
)
def test_the_start_offset_of_a_group_is_configurable(text: str, age_ms: int | None) -> None:
    assert reset_age_ms(text) == age_ms
    assert is_offset_reset(text) == (age_ms is not None or text == "latest")


def test_group_configs_override_broker_defaults() -> None:
    config = ShareConfig(delivery_count_limit=7)
    settings = settings_of(config, {"share.record.lock.duration.ms": "500", "dead.letter.topic": "dead"})
    assert settings.limits == (500, 7, 2000, True)
    assert (settings.isolation_level, settings.dead_letter_topic, settings.offset_reset) == (0, "dead", "latest")
    with pytest.raises(ValueError, match="session_timeout_ms"):
        ShareConfig(session_timeout_ms=10, heartbeat_interval_ms=20)
    with pytest.raises(ValueError, match="max_size"):
        ShareConfig(max_size=0)
