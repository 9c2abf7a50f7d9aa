"""Members with an instance id (KIP-345) keep their place while they restart."""

import pytest

from ottla.core.errors import ErrorCode
from ottla.groups.actions import MemberExpired
from ottla.groups.states import State

from .making import (
    ANN,
    BOB,
    CYD,
    REBALANCE_MS,
    SESSION_MS,
    Room,
    gone,
    joined,
    left,
    one,
    persisted,
    protocols,
    refuse_join,
    refuse_sync,
    seats,
    synced,
)

BOTH = {"ann": "ann", "bob": "bob"}
ANN_AGAIN, BOB_AGAIN = "ann-3", "bob-3"


def test_a_follower_that_restarts_gets_its_assignment_without_a_rebalance() -> None:
    room = Room().with_static_two()
    assert room.join("bob", group_instance_id="bob", version=5, now=7) == [
        persisted(2, 0, (ANN, b"a"), (BOB_AGAIN, b"b"), instances={ANN: "ann", BOB_AGAIN: "bob"}),
        joined("bob", BOB_AGAIN, 2, leader=ANN),
    ]
    assert room.group.state is State.STABLE
    assert room.sync("bob", BOB_AGAIN, 2, group_instance_id="bob") == [synced("bob", b"b")]
    assert room.heartbeat(ANN, 2, instance="ann") is ErrorCode.NONE


def test_a_leader_that_restarts_is_told_to_skip_the_assignment() -> None:
    room = Room().with_static_two()
    assert room.join("ann", group_instance_id="ann", version=9)[1:] == [
        joined("ann", ANN_AGAIN, 2, leader=ANN_AGAIN, members=seats(BOB, ANN_AGAIN, **BOTH), skip_assignment=True)
    ]
    assert room.sync("ann", ANN_AGAIN, 2) == [synced("ann", b"a")]


def test_a_follower_that_restarts_skips_nothing() -> None:
    room = Room().with_static_two()
    assert room.join("bob", group_instance_id="bob", version=9)[1:] == [joined("bob", BOB_AGAIN, 2, leader=ANN)]


def test_a_restarted_leader_too_old_to_skip_the_assignment_is_not_named_leader() -> None:
    room = Room().with_static_two()
    assert room.join("ann", group_instance_id="ann", version=8)[1:] == [joined("ann", ANN_AGAIN, 2, leader=ANN)]
    # But it is still leader: its next join causes a rebalance.
    room.sync("ann", ANN_AGAIN, 2)
    assert room.join("ann", ANN_AGAIN, group_instance_id="ann", version=8) == []


def test_the_previous_member_of_an_instance_is_fenced() -> None:
    room = Room().with_static_two()
    room.join("bob", group_instance_id="bob", version=5)
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert room.heartbeat(BOB, 2, instance="bob") is fenced
    assert room.sync("old", BOB, 2, group_instance_id="bob") == [refuse_sync("old", fenced)]
    assert room.join("old", BOB, group_instance_id="bob", version=5) == [refuse_join("old", fenced, BOB)]
    assert room.group.check_commit(BOB, "bob", 2, 9) is fenced
    assert room.leave(one(BOB, "bob")) == [left(gone(BOB, fenced, instance="bob"))]


@pytest.mark.parametrize("instance", ["bob", None])
def test_the_previous_member_id_without_its_instance_is_unknown(instance: str | None) -> None:
    room = Room().with_static_two()
    room.join("bob", group_instance_id="bob", version=5)
    expected = ErrorCode.UNKNOWN_MEMBER_ID if instance is None else ErrorCode.FENCED_INSTANCE_ID
    assert room.heartbeat(BOB, 2, instance=instance) is expected


def test_an_unknown_instance_is_an_unknown_member() -> None:
    room = Room().with_static_two()
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert room.heartbeat(BOB, 2, instance="eve") is unknown
    assert room.join("eve", BOB, group_instance_id="eve", version=5) == [refuse_join("eve", unknown, BOB)]


def test_a_pending_join_of_the_same_instance_is_fenced() -> None:
    room = Room().with_static_two()
    room.join("ann", ANN, group_instance_id="ann", version=5)
    assert room.join("again", group_instance_id="ann", version=5) == [
        refuse_join("ann", ErrorCode.FENCED_INSTANCE_ID, ANN)
    ]
    assert room.join("bob", BOB, group_instance_id="bob", version=5) == [
        joined("bob", BOB, 3, leader=ANN_AGAIN),
        joined("again", ANN_AGAIN, 3, leader=ANN_AGAIN, members=seats(BOB, ANN_AGAIN, **BOTH)),
    ]


def test_a_pending_sync_of_the_same_instance_is_fenced_and_the_group_rebalances() -> None:
    room = Room().with_static_two()
    room.join("ann", ANN, group_instance_id="ann", version=5)
    room.join("bob", BOB, group_instance_id="bob", version=5)
    room.sync("bob", BOB, 3)
    assert room.join("again", group_instance_id="bob", version=5) == [refuse_sync("bob", ErrorCode.FENCED_INSTANCE_ID)]
    assert room.group.state is State.PREPARING_REBALANCE


def test_a_restart_with_another_preferred_protocol_is_a_rebalance() -> None:
    room = Room().with_static_two(protocols=protocols("range", "sticky"))
    assert room.join("ann", group_instance_id="ann", version=5, protocols=protocols("sticky")) == []
    assert room.group.state is State.PREPARING_REBALANCE


def test_a_restart_with_no_protocol_in_common_is_refused() -> None:
    room = Room().with_static_two()
    assert room.join("ann", group_instance_id="ann", version=5, protocols=protocols("sticky")) == [
        refuse_join("ann", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    ]


def test_a_full_group_accepts_its_own_static_members() -> None:
    room = Room(max_size=2).with_static_two()
    assert len(room.join("bob", group_instance_id="bob", version=5)) == 2
    assert room.join("cyd", group_instance_id="cyd", version=5) == [
        refuse_join("cyd", ErrorCode.GROUP_MAX_SIZE_REACHED)
    ]


def test_a_static_member_that_does_not_rejoin_keeps_its_place_until_its_session_expires() -> None:
    room = Room().with_static_two(session_timeout_ms=2 * REBALANCE_MS)
    room.join("cyd", now=1, session_timeout_ms=2 * REBALANCE_MS)
    room.join("ann", ANN, now=1, session_timeout_ms=2 * REBALANCE_MS)
    assert room.group.expire(REBALANCE_MS + 1) == [
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, BOB, CYD, **BOTH)),
        joined("cyd", CYD, 3, leader=ANN),
    ]


def test_a_static_leader_that_does_not_rejoin_keeps_its_place_but_not_leadership() -> None:
    room = Room().with_static_two(session_timeout_ms=2 * REBALANCE_MS)
    room.join("bob", BOB, now=1, session_timeout_ms=2 * REBALANCE_MS, protocols=protocols("range", "new"))
    assert room.group.expire(REBALANCE_MS + 1) == [joined("bob", BOB, 3, leader=BOB, members=seats(ANN, BOB, **BOTH))]


def test_if_no_static_member_rejoins_the_group_waits_for_their_sessions() -> None:
    room = Room().with_static_two(session_timeout_ms=5 * REBALANCE_MS)
    room.join("cyd", now=0)
    room.group.forget("cyd", 0)
    assert room.group.expire(REBALANCE_MS) == []
    assert room.group.next_deadline_ms() == 2 * REBALANCE_MS
    assert room.group.expire(5 * REBALANCE_MS) == [
        MemberExpired("g", ANN, "heartbeat"),
        MemberExpired("g", BOB, "heartbeat"),
        persisted(3, 5 * REBALANCE_MS),
    ]


def test_a_restarted_member_has_a_new_session() -> None:
    room = Room().with_static_two()
    room.join("bob", group_instance_id="bob", version=5, now=5000)
    room.heartbeat(ANN, 2, now=9000)
    assert room.group.expire(SESSION_MS) == []
    assert room.group.expire(5000 + SESSION_MS) == [MemberExpired("g", BOB_AGAIN, "heartbeat")]


def test_a_member_that_restarts_before_it_synced_does_not_have_to_be_waited_for() -> None:
    room = Room()
    room.join("ann", group_instance_id="ann", version=5)
    room.join("bob", group_instance_id="bob", version=5)
    room.join("ann", ANN, group_instance_id="ann", version=5)
    room.sync("ann", ANN, 2)
    room.join("bob", group_instance_id="bob", version=5)
    room.heartbeat(ANN, 2, now=REBALANCE_MS)
    room.heartbeat(BOB_AGAIN, 2, now=REBALANCE_MS)
    assert room.group.expire(REBALANCE_MS) == []


def test_a_static_member_may_disconnect_while_it_waits_and_restart() -> None:
    room = Room().with_static_two()
    room.join("cyd", group_instance_id="cyd", version=5)
    assert room.group.forget("cyd", 1) == []
    assert room.join("cyd", group_instance_id="cyd", version=5, now=2) == []
    room.join("ann", ANN)
    [_, _, cyd] = room.join("bob", BOB)
    assert cyd == joined("cyd", "cyd-4", 3, leader=ANN)


def test_an_administrator_removes_a_member_by_its_instance() -> None:
    room = Room().with_static_two()
    assert room.leave(one("", "bob"), one("", "eve"), one("")) == [
        left(
            gone("", instance="bob"),
            gone("", ErrorCode.UNKNOWN_MEMBER_ID, instance="eve"),
            gone("", ErrorCode.UNKNOWN_MEMBER_ID),
        )
    ]
    assert room.heartbeat(BOB, 2, instance="bob") is ErrorCode.UNKNOWN_MEMBER_ID
    assert room.heartbeat(ANN, 2, instance="ann") is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_cannot_use_a_pending_member_id() -> None:
    room = Room()
    room.join("ann", version=4)
    assert room.join("ann", ANN, group_instance_id="ann", version=5) == [
        refuse_join("ann", ErrorCode.UNKNOWN_MEMBER_ID, ANN)
    ]
