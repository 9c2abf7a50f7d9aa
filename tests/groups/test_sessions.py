"""Heartbeats, silence, and connections that are lost."""

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


def test_all_members_can_be_made_to_join_again_though_nothing_has_changed() -> None:
    room = Room().with_two()
    assert room.group.rebalance(100) == []
    assert room.heartbeat(ANN, 2, now=100) is ErrorCode.REBALANCE_IN_PROGRESS
    assert room.join("ann", ANN, now=100) == []
    assert room.join("bob", BOB, now=100) == [
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, BOB)),
        joined("bob", BOB, 3, leader=ANN),
    ]


def test_members_can_be_taken_for_dead_before_their_time() -> None:
    room = Room().with_two()
    assert room.group.expire_sessions("nobody", 100) == []
    assert room.group.expire_sessions(None, 100) == [
        MemberExpired("g", ANN, "heartbeat"),
        MemberExpired("g", BOB, "heartbeat"),
        persisted(3, 100),
    ]
    assert room.group.state is State.EMPTY


def test_when_the_last_member_falls_silent_the_group_is_empty_and_that_is_written_down() -> None:
    room = Room().with_two()
    assert room.group.expire(2 * SESSION_MS) == [
        MemberExpired("g", ANN, "heartbeat"),
        MemberExpired("g", BOB, "heartbeat"),
        persisted(3, 2 * SESSION_MS),
    ]
    assert room.group.state is State.EMPTY
    assert room.group.next_deadline_ms() is None


def test_silence_while_others_join_ends_their_wait() -> None:
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


def test_silence_before_the_assignment_starts_over() -> None:
    room = Room()
    room.join("ann")
    assert room.group.expire(SESSION_MS) == [MemberExpired("g", ANN, "heartbeat"), persisted(2, SESSION_MS)]


def test_heartbeats_are_welcome_before_the_assignment_is_made() -> None:
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
def test_a_heartbeat_of_somebody_else_is_refused(member_id: str, generation: int, error: ErrorCode) -> None:
    assert Room().with_two().heartbeat(member_id, generation) is error


def test_an_empty_group_knows_nobody() -> None:
    assert Room().heartbeat(ANN, 0) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_is_as_good_as_a_heartbeat() -> None:
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


def test_a_new_member_that_hangs_up_before_it_was_told_its_id_is_gone_at_once() -> None:
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


def test_if_it_was_the_only_one_the_group_is_empty_again_when_the_first_wait_is_over() -> None:
    room = Room(initial_rebalance_delay_ms=3000)
    room.join("ann")
    assert room.group.forget("ann", 1) == []
    assert room.group.expire(3000) == [persisted(1, 3000)]
    assert room.group.state is State.EMPTY


def test_a_member_that_hangs_up_while_it_waits_still_counts_as_joined() -> None:
    room = Room().with_two()
    room.join("bob", BOB)  # no news, so no rebalance yet
    room.join("cyd")
    room.join("bob", BOB)
    assert room.group.forget("bob", 1) == []
    assert room.join("ann", ANN, now=2) == [
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, BOB, CYD)),
        joined("cyd", CYD, 3, leader=ANN),
    ]


def test_but_it_has_to_be_heard_of_again_within_its_session() -> None:
    room = Room().with_two()
    room.join("cyd", now=1)
    room.join("bob", BOB, now=1)
    room.group.forget("bob", 5000)
    room.heartbeat(ANN, 2, now=SESSION_MS)
    assert room.group.expire(5000 + SESSION_MS - 1) == []
    assert room.group.expire(5000 + SESSION_MS) == [MemberExpired("g", BOB, "heartbeat")]


def test_a_member_that_hung_up_and_joins_again_is_answered_there() -> None:
    room = Room().with_two()
    room.join("cyd")
    room.join("bob", BOB)
    room.group.forget("bob", 1)
    assert room.join("bob", BOB, token="bob again") == []
    answers = room.join("ann", ANN)
    assert joined("bob again", BOB, 3, leader=ANN) in answers


def test_who_hung_up_is_not_made_leader() -> None:
    room = Room().with_two()
    room.join("ann", ANN)
    room.group.forget("ann", 1)
    assert room.join("bob", BOB) == [joined("bob", BOB, 3, leader=BOB, members=seats(ANN, BOB))]


def test_unless_there_is_nobody_else() -> None:
    room = Room(initial_rebalance_delay_ms=3000)
    room.join("ann", version=4)
    room.join("ann", ANN, version=4)
    room.group.forget("ann", 1)
    assert room.group.expire(3000) == []
    assert room.group.state is State.COMPLETING_REBALANCE
    assert room.join("ann", ANN, version=4, now=3001) == [joined("ann", ANN, 1, leader=ANN, members=seats(ANN))]


def test_a_follower_that_hangs_up_while_it_waits_to_sync_can_ask_again() -> None:
    room = Room()
    room.join("ann")
    room.join("bob")
    room.join("ann", ANN)
    room.sync("bob", BOB, 2)
    room.group.forget("bob", 5000)
    assert room.sync("ann", ANN, 2, assignments={BOB: b"b"})[1:] == [synced("ann", b"")]
    assert room.sync("bob", BOB, 2) == [synced("bob", b"b")]
    assert room.group.next_deadline_ms() == SESSION_MS


def test_after_which_it_has_to_be_heard_of_within_its_session() -> None:
    room = Room()
    room.join("ann")
    room.join("bob")
    room.join("ann", ANN)
    room.sync("bob", BOB, 2)
    room.group.forget("bob", 5000)
    room.heartbeat(ANN, 2, now=15_000)
    assert room.group.expire(14_999) == []
    assert room.group.expire(15_000) == [MemberExpired("g", BOB, "heartbeat")]


def test_what_nobody_waits_for_can_be_forgotten_any_time() -> None:
    room = Room().with_two()
    assert room.group.forget("ann", 1) == []
    assert room.group.state is State.STABLE
    assert room.group.next_deadline_ms() == SESSION_MS
