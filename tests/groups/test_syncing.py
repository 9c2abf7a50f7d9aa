import pytest

from ottla.core.errors import ErrorCode
from ottla.groups.actions import MemberExpired, Persist
from ottla.groups.describing import describe
from ottla.groups.states import State

from .making import (
    ANN,
    BOB,
    CYD,
    REBALANCE_MS,
    SESSION_MS,
    Room,
    joined,
    persisted,
    refuse_join,
    refuse_sync,
    seats,
    synced,
)


def two_that_have_joined(**settings: int) -> Room:
    """A group in generation 2 with Ann as leader and Bob, waiting for Ann's assignment."""
    room = Room(**settings)
    room.join("ann")
    room.join("bob")
    room.join("ann", ANN)
    return room


def test_followers_wait_until_the_leader_has_assigned() -> None:
    room = two_that_have_joined()
    assert room.sync("bob", BOB, 2) == []
    assert room.sync("ann", ANN, 2, assignments={ANN: b"a", BOB: b"b"}, now=5) == [
        persisted(2, 5, (ANN, b"a"), (BOB, b"b")),
        synced("ann", b"a"),
        synced("bob", b"b"),
    ]
    assert room.group.state is State.STABLE


def test_a_follower_that_syncs_after_the_leader_is_answered_at_once() -> None:
    room = two_that_have_joined()
    room.sync("ann", ANN, 2, assignments={ANN: b"a", BOB: b"b"})
    assert room.sync("bob", BOB, 2) == [synced("bob", b"b")]
    assert room.sync("bob", BOB, 2) == [synced("bob", b"b")]


def test_omitted_members_get_nothing_and_unknown_ones_are_ignored() -> None:
    room = two_that_have_joined()
    room.sync("bob", BOB, 2)
    assert room.sync("ann", ANN, 2, assignments={ANN: b"a", "eve-9": b"e"}) == [
        persisted(2, 0, (ANN, b"a"), (BOB, b"")),
        synced("ann", b"a"),
        synced("bob", b""),
    ]


def test_an_assignment_from_a_follower_is_ignored() -> None:
    room = two_that_have_joined()
    assert room.sync("bob", BOB, 2, assignments={BOB: b"everything"}) == []
    assert room.group.state is State.COMPLETING_REBALANCE


def test_of_two_syncs_of_one_member_the_later_is_answered() -> None:
    room = two_that_have_joined()
    room.sync("bob", BOB, 2)
    assert room.sync("bob again", BOB, 2) == [refuse_sync("bob", ErrorCode.REBALANCE_IN_PROGRESS)]
    answers = room.sync("ann", ANN, 2, assignments={BOB: b"b"})
    assert answers[1:] == [synced("ann", b""), synced("bob again", b"b")]


def test_sync_is_refused_while_members_are_joining() -> None:
    room = Room().with_two()
    room.join("cyd")
    assert room.sync("bob", BOB, 2) == [refuse_sync("bob", ErrorCode.REBALANCE_IN_PROGRESS)]


def test_a_new_member_cancels_the_pending_assignment() -> None:
    room = two_that_have_joined()
    room.sync("bob", BOB, 2)
    assert room.join("cyd") == [refuse_sync("bob", ErrorCode.REBALANCE_IN_PROGRESS)]
    assert room.sync("ann", ANN, 2, assignments={ANN: b"a"}) == [refuse_sync("ann", ErrorCode.REBALANCE_IN_PROGRESS)]


def test_cancelling_an_assignment_clears_earlier_ones() -> None:
    room = Room().with_two()
    room.join("ann", ANN)
    room.join("bob", BOB)
    room.join("cyd")
    assert [member.member_assignment for member in describe(room.group).members] == [b"", b"", b""]


@pytest.mark.parametrize("generation", [-1, 1, 3])
def test_another_generation_is_refused(generation: int) -> None:
    room = two_that_have_joined()
    assert room.sync("bob", BOB, generation) == [refuse_sync("bob", ErrorCode.ILLEGAL_GENERATION)]


def test_unknown_members_are_refused() -> None:
    room = two_that_have_joined()
    assert room.sync("eve", "eve-9", 2) == [refuse_sync("eve", ErrorCode.UNKNOWN_MEMBER_ID)]


@pytest.mark.parametrize("other", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}])
def test_a_sync_with_another_protocol_is_refused(other: dict[str, str]) -> None:
    room = two_that_have_joined()
    named = {"protocol_type": "consumer", "protocol_name": "range"}
    assert room.sync("bob", BOB, 2, **{**named, **other}) == [refuse_sync("bob", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)]
    assert room.sync("bob", BOB, 2, **named) == []


# ── Members that never sync
# ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_leader_that_never_syncs_is_dropped_and_its_followers_rejoin() -> None:
    room = two_that_have_joined()
    room.sync("bob", BOB, 2)
    room.heartbeat(ANN, 2, now=REBALANCE_MS - 1)
    assert room.group.expire(REBALANCE_MS - 1) == []
    assert room.group.expire(REBALANCE_MS) == [
        MemberExpired("g", ANN, "sync"),
        refuse_sync("bob", ErrorCode.REBALANCE_IN_PROGRESS),
    ]
    assert room.join("bob", BOB, now=REBALANCE_MS) == [joined("bob", BOB, 3, leader=BOB, members=seats(BOB))]


def test_a_follower_that_never_syncs_is_dropped() -> None:
    room = two_that_have_joined()
    room.sync("ann", ANN, 2)
    room.heartbeat(ANN, 2, now=REBALANCE_MS - 1)
    room.heartbeat(BOB, 2, now=REBALANCE_MS - 1)
    assert room.group.expire(REBALANCE_MS) == [MemberExpired("g", BOB, "sync")]
    assert room.group.state is State.PREPARING_REBALANCE


def test_the_sync_timeout_ends_when_all_have_synced() -> None:
    room = two_that_have_joined()
    room.sync("bob", BOB, 2)
    room.sync("ann", ANN, 2)
    room.heartbeat(ANN, 2, now=REBALANCE_MS)
    room.heartbeat(BOB, 2, now=REBALANCE_MS)
    assert room.group.expire(REBALANCE_MS) == []


def test_a_rebalance_restarts_the_sync_timeout() -> None:
    room = two_that_have_joined()
    room.sync("bob", BOB, 2)
    room.join("cyd", now=5)
    room.join("ann", ANN, now=5)
    room.join("bob", BOB, now=5)
    room.sync("ann", ANN, 3, now=5)
    for member_id in (ANN, BOB, CYD):
        room.heartbeat(member_id, 3, now=REBALANCE_MS)
    assert room.group.expire(REBALANCE_MS) == []
    assert room.group.expire(REBALANCE_MS + 5) == [MemberExpired("g", BOB, "sync"), MemberExpired("g", CYD, "sync")]


def test_a_member_that_waits_to_sync_need_not_heartbeat() -> None:
    room = two_that_have_joined()
    room.sync("bob", BOB, 2)
    room.heartbeat(ANN, 2, now=SESSION_MS)
    assert room.group.expire(SESSION_MS) == []
    room.sync("ann", ANN, 2, now=SESSION_MS, assignments={BOB: b"b"})
    # From here on it must.
    room.heartbeat(ANN, 2, now=2 * SESSION_MS)
    assert room.group.expire(2 * SESSION_MS) == [MemberExpired("g", BOB, "heartbeat")]


# ── Failed writes ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_assignment_that_could_not_be_stored_causes_a_rebalance() -> None:
    room = two_that_have_joined()
    room.sync("bob", BOB, 2)
    [failed, *_] = room.sync("ann", ANN, 2, assignments={BOB: b"b"})
    assert isinstance(failed, Persist)
    assert room.group.persist_failed(failed, 1) == []
    assert room.group.state is State.PREPARING_REBALANCE
    assert room.heartbeat(BOB, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    room.join("bob", BOB, now=1)
    assert len(room.join("ann", ANN, now=1)) == 2


def test_a_failure_to_store_an_earlier_generation_changes_nothing() -> None:
    room = two_that_have_joined()
    [failed, *_] = room.sync("ann", ANN, 2)
    assert isinstance(failed, Persist)
    room.join("ann", ANN)
    room.join("bob", BOB)
    room.sync("ann", ANN, 3)
    assert room.group.persist_failed(failed, 1) == []
    assert room.group.state is State.STABLE


def test_a_failure_to_store_an_empty_group_changes_nothing() -> None:
    room = Room()
    room.join("ann")
    [failed, _] = room.leave_alone(ANN)
    assert isinstance(failed, Persist)
    assert room.group.persist_failed(failed, 1) == []
    assert room.group.state is State.EMPTY


def test_a_dead_group_answers_pending_syncs_and_refuses_later_ones() -> None:
    room = two_that_have_joined()
    room.sync("bob", BOB, 2)
    assert room.group.die(ErrorCode.NOT_COORDINATOR) == [refuse_sync("bob", ErrorCode.NOT_COORDINATOR)]
    assert room.group.next_deadline_ms() is None
    assert room.sync("bob", BOB, 2) == [refuse_sync("bob", ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    assert room.join("bob", BOB) == [refuse_join("bob", ErrorCode.COORDINATOR_NOT_AVAILABLE, BOB)]
    assert room.heartbeat(BOB, 2) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert room.group.check_commit(BOB, None, 2, 9) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_dead_group_answers_pending_joins() -> None:
    room = Room().with_two()
    room.join("cyd")
    assert room.group.die(ErrorCode.NOT_COORDINATOR) == [refuse_join("cyd", ErrorCode.NOT_COORDINATOR, CYD)]
