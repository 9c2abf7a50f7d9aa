"""Heartbeats, session timeouts, and lost connections."""

import pytest

from ottla.core.errors import ErrorCode
from ottla.groups.actions import MemberExpired
from ottla.groups.states import State

from .making import (
    ANN,
    BOB,
    CYD,
    SESSION_MS,
    Room,
    joined,
    persisted,
    seats,
    synced,
)


def test_a_heartbeat_keeps_a_member() -> None:
    room = Room().with_two()
    for now in range(0, 5 * SESSION_MS, SESSION_MS - 1):
        assert room.heartbeat(ANN, 2, now=now) is ErrorCode.NONE
        assert room.heartbeat(BOB, 2, now=now) is ErrorCode.NONE
        assert room.group.expire(now) == []


def test_a_silent_member_is_dropped_and_the_rest_rebalance_without_it() -> None:
    room = Room().with_two()
    room.heartbeat(BOB, 2, now=9000)
    assert room.group.next_deadline_ms() == SESSION_MS
    assert room.group.expire(SESSION_MS - 1) == []
    assert room.group.expire(SESSION_MS) == [MemberExpired("g", ANN, "heartbeat")]
    assert room.heartbeat(BOB, 2, now=SESSION_MS) is ErrorCode.REBALANCE_IN_PROGRESS
    assert room.heartbeat(ANN, 2, now=SESSION_MS) is ErrorCode.UNKNOWN_MEMBER_ID
    assert room.join("bob", BOB, now=SESSION_MS) == [joined("bob", BOB, 3, leader=BOB, members=seats(BOB))]


def test_a_rebalance_can_be_forced() -> None:
    room = Room().with_two()
    assert room.group.rebalance(100) == []
    assert room.heartbeat(ANN, 2, now=100) is ErrorCode.REBALANCE_IN_PROGRESS
    assert room.join("ann", ANN, now=100) == []
    assert room.join("bob", BOB, now=100) == [
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, BOB)),
        joined("bob", BOB, 3, leader=ANN),
    ]


def test_members_can_be_expired_early() -> None:
    room = Room().with_two()
    assert room.group.expire_sessions("nobody", 100) == []
    assert room.group.expire_sessions(None, 100) == [
        MemberExpired("g", ANN, "heartbeat"),
        MemberExpired("g", BOB, "heartbeat"),
        persisted(3, 100),
    ]
    assert room.group.state is State.EMPTY


def test_when_the_last_member_expires_the_empty_group_is_written() -> None:
    room = Room().with_two()
    assert room.group.expire(2 * SESSION_MS) == [
        MemberExpired("g", ANN, "heartbeat"),
        MemberExpired("g", BOB, "heartbeat"),
        persisted(3, 2 * SESSION_MS),
    ]
    assert room.group.state is State.EMPTY
    assert room.group.next_deadline_ms() is None


def test_an_expired_member_no_longer_delays_a_rebalance() -> None:
    room = Room().with_two()
    room.heartbeat(ANN, 2, now=5000)
    room.join("cyd", now=5000)
    room.join("ann", ANN, now=5000)
    assert room.group.expire(SESSION_MS) == [
        MemberExpired("g", BOB, "heartbeat"),
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, CYD)),
        joined("cyd", CYD, 3, leader=ANN),
    ]


def test_a_member_that_waits_to_join_need_not_heartbeat() -> None:
    room = Room().with_two()
    room.join("ann", ANN, now=0)
    for now in range(0, 3 * SESSION_MS, SESSION_MS // 2):
        room.heartbeat(BOB, 2, now=now)
        assert room.group.expire(now) == []


def test_an_expired_member_before_the_assignment_restarts_the_rebalance() -> None:
    room = Room()
    room.join("ann")
    assert room.group.expire(SESSION_MS) == [MemberExpired("g", ANN, "heartbeat"), persisted(2, SESSION_MS)]


def test_heartbeats_are_accepted_before_the_assignment() -> None:
    room = Room()
    room.join("ann")
    assert room.heartbeat(ANN, 1) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("member_id", "generation", "error"),
    [
        (ANN, 1, ErrorCode.ILLEGAL_GENERATION),
        (ANN, 3, ErrorCode.ILLEGAL_GENERATION),
        (CYD, 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_heartbeat_of_an_unknown_member_is_refused(member_id: str, generation: int, error: ErrorCode) -> None:
    assert Room().with_two().heartbeat(member_id, generation) is error


def test_an_empty_group_refuses_heartbeats() -> None:
    assert Room().heartbeat(ANN, 0) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_counts_as_a_heartbeat() -> None:
    room = Room().with_two()
    room.group.note_commit(ANN, 5000)
    room.group.note_commit("", 5000)
    assert room.group.expire(SESSION_MS) == [MemberExpired("g", BOB, "heartbeat")]


def test_after_expiring_no_deadline_is_left_in_the_past() -> None:
    room = Room().with_static_two(rebalance_timeout_ms=0)
    room.join("cyd", now=0)
    room.group.forget("cyd", 0)  # now only static members are expected, and none has come back
    for now in range(1, 50):
        room.group.expire(now)
        next_ms = room.group.next_deadline_ms()
        assert next_ms is not None
        assert next_ms > now


# ── Connections that are lost ────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_member_that_disconnects_before_it_has_an_id_is_removed_at_once() -> None:
    room = Room().with_two()
    room.join("cyd")
    room.join("ann", ANN)
    room.join("dan")
    assert room.group.forget("cyd", 1) == []
    assert room.group.forget("dan", 1) == []
    assert room.join("bob", BOB) == [
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, BOB)),
        joined("bob", BOB, 3, leader=ANN),
    ]


def test_if_the_only_member_disconnects_the_group_is_empty_after_the_initial_delay() -> None:
    room = Room(initial_rebalance_delay_ms=3000)
    room.join("ann")
    assert room.group.forget("ann", 1) == []
    assert room.group.expire(3000) == [persisted(1, 3000)]
    assert room.group.state is State.EMPTY


def test_a_member_that_disconnects_while_it_waits_still_counts_as_joined() -> None:
    room = Room().with_two()
    room.join("bob", BOB)  # no change, so no rebalance yet
    room.join("cyd")
    room.join("bob", BOB)
    assert room.group.forget("bob", 1) == []
    assert room.join("ann", ANN, now=2) == [
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, BOB, CYD)),
        joined("cyd", CYD, 3, leader=ANN),
    ]


def test_a_disconnected_member_must_return_within_its_session_timeout() -> None:
    room = Room().with_two()
    room.join("cyd", now=1)
    room.join("bob", BOB, now=1)
    room.group.forget("bob", 5000)
    room.heartbeat(ANN, 2, now=SESSION_MS)
    assert room.group.expire(5000 + SESSION_MS - 1) == []
    assert room.group.expire(5000 + SESSION_MS) == [MemberExpired("g", BOB, "heartbeat")]


def test_a_disconnected_member_that_rejoins_is_answered_on_its_new_connection() -> None:
    room = Room().with_two()
    room.join("cyd")
    room.join("bob", BOB)
    room.group.forget("bob", 1)
    assert room.join("bob", BOB, token="bob again") == []
    answers = room.join("ann", ANN)
    assert joined("bob again", BOB, 3, leader=ANN) in answers


def test_a_disconnected_member_is_not_made_leader() -> None:
    room = Room().with_two()
    room.join("ann", ANN)
    room.group.forget("ann", 1)
    assert room.join("bob", BOB) == [joined("bob", BOB, 3, leader=BOB, members=seats(ANN, BOB))]


def test_a_disconnected_member_is_made_leader_if_it_is_the_only_one() -> None:
    room = Room(initial_rebalance_delay_ms=3000)
    room.join("ann", version=4)
    room.join("ann", ANN, version=4)
    room.group.forget("ann", 1)
    assert room.group.expire(3000) == []
    assert room.group.state is State.COMPLETING_REBALANCE
    assert room.join("ann", ANN, version=4, now=3001) == [joined("ann", ANN, 1, leader=ANN, members=seats(ANN))]


def test_a_follower_that_disconnects_during_sync_can_retry() -> None:
    room = Room()
    room.join("ann")
    room.join("bob")
    room.join("ann", ANN)
    room.sync("bob", BOB, 2)
    room.group.forget("bob", 5000)
    assert room.sync("ann", ANN, 2, assignments={BOB: b"b"})[1:] == [synced("ann", b"")]
    assert room.sync("bob", BOB, 2) == [synced("bob", b"b")]
    assert room.group.next_deadline_ms() == SESSION_MS


def test_after_a_disconnect_during_sync_the_session_timeout_applies() -> None:
    room = Room()
    room.join("ann")
    room.join("bob")
    room.join("ann", ANN)
    room.sync("bob", BOB, 2)
    room.group.forget("bob", 5000)
    room.heartbeat(ANN, 2, now=15_000)
    assert room.group.expire(14_999) == []
    assert room.group.expire(15_000) == [MemberExpired("g", BOB, "heartbeat")]


def test_cancelling_an_unknown_request_is_harmless() -> None:
    room = Room().with_two()
    assert room.group.forget("ann", 1) == []
    assert room.group.state is State.STABLE
    assert room.group.next_deadline_ms() == SESSION_MS
