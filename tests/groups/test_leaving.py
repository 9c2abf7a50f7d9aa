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


def test_when_the_last_member_leaves_that_is_written_down_before_it_is_told() -> None:
    room = Room().with_two()
    assert room.leave(one(ANN), one(BOB), now=5) == [persisted(3, 5), left(gone(ANN), gone(BOB))]
    assert room.group.state is State.EMPTY
    assert room.group.next_deadline_ms() is None


def test_every_member_of_a_batch_gets_its_own_answer() -> None:
    room = Room().with_two()
    assert room.leave(one("eve-9"), one(BOB), one(BOB)) == [
        left(gone("eve-9", ErrorCode.UNKNOWN_MEMBER_ID), gone(BOB), gone(BOB, ErrorCode.UNKNOWN_MEMBER_ID))
    ]


def test_if_nobody_in_the_batch_is_a_member_nothing_happens() -> None:
    room = Room().with_two()
    assert room.leave(one("eve-9")) == [left(gone("eve-9", ErrorCode.UNKNOWN_MEMBER_ID))]
    assert room.leave() == [left()]
    assert room.group.state is State.STABLE


def test_an_older_client_is_answered_in_one_word() -> None:
    room = Room().with_two()
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert room.leave_alone("eve-9") == [left(gone("eve-9", unknown), error=unknown)]
    assert room.leave_alone(BOB) == [left(gone(BOB))]


def test_who_leaves_while_waiting_to_join_is_told_so() -> None:
    room = Room().with_two()
    room.join("cyd")
    assert room.leave(one(CYD)) == [refuse_join("cyd", ErrorCode.UNKNOWN_MEMBER_ID), left(gone(CYD))]


def test_who_leaves_while_waiting_to_sync_is_told_so() -> None:
    room = Room()
    room.join("ann")
    room.join("bob")
    room.join("ann", ANN)
    room.sync("bob", BOB, 2)
    assert room.leave(one(BOB)) == [refuse_sync("bob", ErrorCode.UNKNOWN_MEMBER_ID), left(gone(BOB))]


def test_leaving_may_be_what_the_others_waited_for() -> None:
    room = Room().with_two()
    room.join("cyd")
    room.join("ann", ANN)
    assert room.leave(one(BOB)) == [
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, CYD)),
        joined("cyd", CYD, 3, leader=ANN),
        left(gone(BOB)),
    ]


def test_an_id_that_was_not_used_yet_can_be_given_back_without_a_rebalance() -> None:
    room = Room().with_two()
    room.join("cyd", version=4)
    assert room.leave(one(CYD)) == [left(gone(CYD))]
    assert room.group.state is State.STABLE
    assert room.join("cyd", CYD, version=4) == [refuse_join("cyd", ErrorCode.UNKNOWN_MEMBER_ID, CYD)]


def test_giving_it_back_may_be_what_the_others_waited_for() -> None:
    room = Room().with_two()
    room.join("cyd", version=4)
    room.join("ann", ANN)
    assert room.join("bob", BOB) == []
    assert room.leave(one(CYD)) == [
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, BOB)),
        joined("bob", BOB, 3, leader=ANN),
        left(gone(CYD)),
    ]


def test_a_group_that_all_leave_while_ids_are_unused_is_empty_a_moment_later() -> None:
    room = Room()
    room.join("ann")
    room.join("bob", version=4)
    assert room.leave(one(ANN)) == [left(gone(ANN))]
    assert room.group.expire(1) == [persisted(2, 1)]
    assert room.group.state is State.EMPTY
    assert room.join("bob", BOB, version=4) == [joined("bob", BOB, 3, leader=BOB, members=seats(BOB))]
