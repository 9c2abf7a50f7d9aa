from ottla.core.errors import ErrorCode
from ottla.groups.states import State

from .making import (
    ANN,
    BOB,
    CYD,
    Room,
    gone,
    joined,
    left,
    one,
    persisted,
    refuse_join,
    refuse_sync,
    seats,
)


def test_when_a_member_leaves_the_others_rebalance_at_once() -> None:
    room = Room().with_two()
    assert room.leave(one(ANN)) == [left(gone(ANN))]
    assert room.heartbeat(BOB, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert room.join("bob", BOB) == [joined("bob", BOB, 3, leader=BOB, members=seats(BOB))]


def test_the_last_leave_is_written_before_it_is_answered() -> None:
    room = Room().with_two()
    assert room.leave(one(ANN), one(BOB), now=5) == [persisted(3, 5), left(gone(ANN), gone(BOB))]
    assert room.group.state is State.EMPTY
    assert room.group.next_deadline_ms() is None


def test_every_member_of_a_batch_gets_its_own_result() -> None:
    room = Room().with_two()
    assert room.leave(one("eve-9"), one(BOB), one(BOB)) == [
        left(gone("eve-9", ErrorCode.UNKNOWN_MEMBER_ID), gone(BOB), gone(BOB, ErrorCode.UNKNOWN_MEMBER_ID))
    ]


def test_a_batch_without_members_changes_nothing() -> None:
    room = Room().with_two()
    assert room.leave(one("eve-9")) == [left(gone("eve-9", ErrorCode.UNKNOWN_MEMBER_ID))]
    assert room.leave() == [left()]
    assert room.group.state is State.STABLE


def test_an_older_client_gets_only_a_top_level_error() -> None:
    room = Room().with_two()
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert room.leave_alone("eve-9") == [left(gone("eve-9", unknown), error=unknown)]
    assert room.leave_alone(BOB) == [left(gone(BOB))]


def test_leaving_answers_a_pending_join() -> None:
    room = Room().with_two()
    room.join("cyd")
    assert room.leave(one(CYD)) == [refuse_join("cyd", ErrorCode.UNKNOWN_MEMBER_ID), left(gone(CYD))]


def test_leaving_answers_a_pending_sync() -> None:
    room = Room()
    room.join("ann")
    room.join("bob")
    room.join("ann", ANN)
    room.sync("bob", BOB, 2)
    assert room.leave(one(BOB)) == [refuse_sync("bob", ErrorCode.UNKNOWN_MEMBER_ID), left(gone(BOB))]


def test_leaving_may_complete_a_rebalance() -> None:
    room = Room().with_two()
    room.join("cyd")
    room.join("ann", ANN)
    assert room.leave(one(BOB)) == [
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, CYD)),
        joined("cyd", CYD, 3, leader=ANN),
        left(gone(BOB)),
    ]


def test_a_pending_member_can_leave_without_a_rebalance() -> None:
    room = Room().with_two()
    room.join("cyd", version=4)
    assert room.leave(one(CYD)) == [left(gone(CYD))]
    assert room.group.state is State.STABLE
    assert room.join("cyd", CYD, version=4) == [refuse_join("cyd", ErrorCode.UNKNOWN_MEMBER_ID, CYD)]


def test_the_leave_of_a_pending_member_may_complete_a_rebalance() -> None:
    room = Room().with_two()
    room.join("cyd", version=4)
    room.join("ann", ANN)
    assert room.join("bob", BOB) == []
    assert room.leave(one(CYD)) == [
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, BOB)),
        joined("bob", BOB, 3, leader=ANN),
        left(gone(CYD)),
    ]


def test_a_group_with_only_pending_members_becomes_empty_when_they_expire() -> None:
    room = Room()
    room.join("ann")
    room.join("bob", version=4)
    assert room.leave(one(ANN)) == [left(gone(ANN))]
    assert room.group.expire(1) == [persisted(2, 1)]
    assert room.group.state is State.EMPTY
    assert room.join("bob", BOB, version=4) == [joined("bob", BOB, 3, leader=BOB, members=seats(BOB))]
