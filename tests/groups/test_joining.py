import pytest

from ottla.core.errors import ErrorCode
from ottla.groups.actions import MemberExpired
from ottla.groups.states import State

from .making import (
    ANN,
    BOB,
    CYD,
    NEW_MEMBER_MS,
    REBALANCE_MS,
    SESSION_MS,
    Room,
    joined,
    protocols,
    refuse_join,
    refuse_sync,
    seats,
    subscription,
)


def test_the_first_to_join_an_empty_group_leads_it_at_once() -> None:
    room = Room()
    assert room.join("ann") == [joined("ann", ANN, 1, leader=ANN, members=seats(ANN))]
    assert room.group.state is State.COMPLETING_REBALANCE


def test_a_join_without_a_member_id_is_asked_to_retry_with_one() -> None:
    room = Room()
    assert room.join("ann", version=4) == [refuse_join("ann", ErrorCode.MEMBER_ID_REQUIRED, ANN)]
    assert room.group.state is State.EMPTY
    assert room.join("ann", ANN, version=4) == [joined("ann", ANN, 1, leader=ANN, members=seats(ANN))]


def test_a_static_member_joins_without_a_member_id() -> None:
    room = Room()
    assert room.join("ann", group_instance_id="A", version=5) == [
        joined("ann", "A-1", 1, leader="A-1", members=seats("A-1", A="A"))
    ]


def test_an_unused_member_id_expires() -> None:
    room = Room()
    room.join("ann", version=4)
    assert room.group.next_deadline_ms() == SESSION_MS
    assert room.group.expire(SESSION_MS) == [MemberExpired("g", ANN, "join")]
    assert room.join("ann", ANN, version=4) == [refuse_join("ann", ErrorCode.UNKNOWN_MEMBER_ID, ANN)]


def test_a_second_member_waits_until_the_first_has_rejoined() -> None:
    room = Room()
    room.join("ann")
    room.sync("ann", ANN, 1, assignments={ANN: b"all"})
    assert room.join("bob") == []
    assert room.heartbeat(ANN, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert room.join("ann", ANN) == [
        joined("ann", ANN, 2, leader=ANN, members=seats(ANN, BOB)),
        joined("bob", BOB, 2, leader=ANN),
    ]


def test_a_rebalance_waits_for_pending_members() -> None:
    room = Room()
    room.join("ann")
    room.join("bob", version=4)
    assert room.group.state is State.COMPLETING_REBALANCE
    room.join("ann", ANN, protocols=protocols("range", metadata=subscription("other")))
    assert room.group.state is State.PREPARING_REBALANCE  # bob may be about to join
    metadata = subscription("other")
    assert room.join("bob", BOB, version=4, protocols=protocols("range", metadata=metadata)) == [
        joined("ann", ANN, 2, leader=ANN, members=seats(ANN, BOB, metadata=metadata)),
        joined("bob", BOB, 2, leader=ANN),
    ]


def test_an_unused_member_id_delays_a_rebalance_only_until_it_expires() -> None:
    room = Room()
    room.join("ann")
    room.join("bob", version=4, now=1)
    other = subscription("other")
    assert room.join("ann", ANN, protocols=protocols("range", metadata=other)) == []
    assert room.group.expire(SESSION_MS + 1) == [
        MemberExpired("g", BOB, "join"),
        joined("ann", ANN, 2, leader=ANN, members=seats(ANN, metadata=other)),
    ]


def test_a_member_that_does_not_rejoin_in_time_is_dropped() -> None:
    room = Room().with_two()
    room.join("cyd", now=1)
    room.join("ann", ANN, now=2)
    for now in range(0, REBALANCE_MS, SESSION_MS // 2):
        assert room.heartbeat(BOB, 2, now=now) is ErrorCode.REBALANCE_IN_PROGRESS
        assert room.group.expire(now) == []
    assert room.group.expire(REBALANCE_MS + 1) == [
        MemberExpired("g", BOB, "rejoin"),
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, CYD)),
        joined("cyd", CYD, 3, leader=ANN),
    ]


def test_the_longest_rebalance_timeout_of_all_members_counts() -> None:
    room = Room()
    room.join("ann", rebalance_timeout_ms=5000, session_timeout_ms=500_000)
    room.sync("ann", ANN, 1)
    room.join("bob", rebalance_timeout_ms=90_000)
    assert room.group.next_deadline_ms() == 90_000


def test_in_version_0_the_session_timeout_is_the_rebalance_timeout() -> None:
    room = Room()
    room.join("ann", version=0, rebalance_timeout_ms=-1)
    room.sync("ann", ANN, 1)
    room.join("bob", version=0, rebalance_timeout_ms=-1, now=1)
    room.heartbeat(ANN, 1, now=SESSION_MS)
    assert MemberExpired("g", ANN, "rejoin") in room.group.expire(SESSION_MS + 1)


def test_a_leader_that_does_not_rejoin_is_replaced() -> None:
    room = Room().with_two()
    room.join("cyd", now=1)
    room.join("bob", BOB, now=1)
    room.heartbeat(ANN, 2, now=REBALANCE_MS)
    assert room.group.expire(REBALANCE_MS + 1) == [
        MemberExpired("g", ANN, "rejoin"),
        joined("bob", BOB, 3, leader=BOB, members=seats(BOB, CYD)),
        joined("cyd", CYD, 3, leader=BOB),
    ]


# ── The first rebalance ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_rebalance_waits_for_more_members_if_configured() -> None:
    room = Room(initial_rebalance_delay_ms=3000)
    assert room.join("ann") == []
    assert room.group.expire(2999) == []
    assert room.group.expire(3000) == [joined("ann", ANN, 1, leader=ANN, members=seats(ANN))]


def test_each_new_member_extends_the_first_rebalance() -> None:
    room = Room(initial_rebalance_delay_ms=3000)
    room.join("ann")
    room.join("bob", now=2000)
    assert room.group.expire(3000) == []
    assert room.group.next_deadline_ms() == 6000
    assert room.group.expire(6000) == [
        joined("ann", ANN, 1, leader=ANN, members=seats(ANN, BOB)),
        joined("bob", BOB, 1, leader=ANN),
    ]


def test_the_first_rebalance_never_exceeds_the_rebalance_timeout() -> None:
    room = Room(initial_rebalance_delay_ms=3000)
    room.join("ann", rebalance_timeout_ms=4000)
    room.join("bob", now=2000)
    assert room.group.expire(3000) == []
    assert room.group.next_deadline_ms() == 4000
    room.join("cyd", now=3500)
    assert len(room.group.expire(4000)) == 3


def test_an_initial_delay_longer_than_the_rebalance_timeout_is_applied_once() -> None:
    room = Room(initial_rebalance_delay_ms=3000)
    room.join("ann", rebalance_timeout_ms=1000)
    room.join("bob", now=10)
    assert len(room.group.expire(3000)) == 2


def test_rejoining_does_not_shorten_the_first_rebalance() -> None:
    room = Room(initial_rebalance_delay_ms=3000)
    room.join("ann", version=4)
    room.join("ann", ANN, version=4)
    assert room.join("ann", ANN, version=4, token="again") == [refuse_join("ann", ErrorCode.REBALANCE_IN_PROGRESS, ANN)]
    assert room.group.expire(3000) == [joined("again", ANN, 1, leader=ANN, members=seats(ANN))]


def test_a_later_rebalance_has_no_initial_delay() -> None:
    room = Room(initial_rebalance_delay_ms=3000)
    room.join("ann")
    room.group.expire(3000)
    room.sync("ann", ANN, 1, now=3000)
    assert room.join("bob", now=3000) == []
    assert len(room.join("ann", ANN, now=3001)) == 2


# ── Members that join again ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_member_that_missed_its_response_gets_it_again() -> None:
    room = Room()
    room.join("ann", version=4)
    first = room.join("ann", ANN, version=4)
    assert room.join("ann", ANN, version=4, token="again") == [joined("again", ANN, 1, leader=ANN, members=seats(ANN))]
    assert first[0].response == room.join("ann", ANN, version=4)[0].response  # type: ignore[union-attr]


def test_an_unchanged_follower_that_rejoins_does_not_cause_a_rebalance() -> None:
    room = Room().with_two()
    assert room.join("bob", BOB) == [joined("bob", BOB, 2, leader=ANN)]
    assert room.group.state is State.STABLE


def test_a_follower_with_another_subscription_starts_a_rebalance() -> None:
    room = Room().with_two()
    assert room.join("bob", BOB, protocols=protocols("range", metadata=subscription("more"))) == []
    assert room.group.state is State.PREPARING_REBALANCE


def test_an_unchanged_leader_that_rejoins_causes_a_rebalance() -> None:
    room = Room().with_two()
    assert room.join("ann", ANN) == []
    assert room.group.state is State.PREPARING_REBALANCE


def test_a_change_before_the_assignment_restarts_the_rebalance() -> None:
    room = Room()
    room.join("ann")
    room.join("bob")
    room.join("ann", ANN)
    room.sync("bob", BOB, 2)
    metadata = subscription("more")
    assert room.join("ann", ANN, protocols=protocols("range", metadata=metadata)) == [
        refuse_sync("bob", ErrorCode.REBALANCE_IN_PROGRESS)
    ]


def test_a_join_answers_the_members_pending_sync() -> None:
    room = Room()
    room.join("ann")
    room.join("bob")
    room.join("ann", ANN)
    room.sync("bob", BOB, 2)
    metadata = subscription("more")
    assert room.join("bob", BOB, protocols=protocols("range", metadata=metadata), token="again") == [
        refuse_sync("bob", ErrorCode.REBALANCE_IN_PROGRESS)
    ]


def test_of_two_joins_of_one_member_the_later_is_answered() -> None:
    room = Room().with_two()
    room.join("ann", ANN)
    assert room.join("ann", ANN, token="again") == [refuse_join("ann", ErrorCode.REBALANCE_IN_PROGRESS, ANN)]
    assert room.join("bob", BOB) == [
        joined("again", ANN, 3, leader=ANN, members=seats(ANN, BOB)),
        joined("bob", BOB, 3, leader=ANN),
    ]


def test_an_unknown_id_is_refused() -> None:
    room = Room().with_two()
    assert room.join("eve", "eve-9") == [refuse_join("eve", ErrorCode.UNKNOWN_MEMBER_ID, "eve-9")]


# ── Protocols ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_protocol_with_the_most_votes_among_those_that_all_have_wins() -> None:
    room = Room()
    room.join("ann", protocols=protocols("only-ann", "range", "sticky"))
    room.join("bob", protocols=protocols("sticky", "range"))
    room.join("cyd", protocols=protocols("sticky", "only-cyd", "range"))
    answers = room.join("ann", ANN, protocols=protocols("only-ann", "range", "sticky"))
    assert answers == [
        joined("ann", ANN, 2, leader=ANN, members=seats(ANN, BOB, CYD), protocol_name="sticky"),
        joined("bob", BOB, 2, leader=ANN, protocol_name="sticky"),
        joined("cyd", CYD, 2, leader=ANN, protocol_name="sticky"),
    ]


def test_of_two_protocols_with_equal_votes_the_first_members_wins() -> None:
    room = Room()
    room.join("ann", protocols=protocols("range", "sticky"))
    room.join("bob", protocols=protocols("sticky", "range"))
    [ann, _] = room.join("ann", ANN, protocols=protocols("range", "sticky"))
    assert ann.response.protocol_name == "range"  # type: ignore[union-attr]


def test_a_member_without_a_common_protocol_is_refused() -> None:
    room = Room().with_two()
    assert room.join("cyd", protocols=protocols("sticky")) == [
        refuse_join("cyd", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    ]
    assert room.group.state is State.STABLE


def test_a_member_of_another_protocol_type_is_refused() -> None:
    room = Room().with_two()
    assert room.join("cyd", protocol_type="connect") == [refuse_join("cyd", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)]


@pytest.mark.parametrize("nothing", [{"protocol_type": ""}, {"protocols": ()}])
def test_a_member_without_protocols_is_refused_even_by_an_empty_group(nothing: dict[str, object]) -> None:
    assert Room().join("ann", **nothing) == [refuse_join("ann", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)]


def test_an_empty_group_accepts_another_protocol_type() -> None:
    room = Room()
    room.join("ann")
    room.leave_alone(ANN)
    assert room.join("con", protocol_type="connect", protocols=protocols("default", metadata=b"opaque")) == [
        joined(
            "con",
            "con-2",
            3,
            leader="con-2",
            members=seats("con-2", metadata=b"opaque"),
            protocol_type="connect",
            protocol_name="default",
        )
    ]


# ── Limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("session_timeout_ms", [0, 999, 1_800_001])
def test_a_session_shorter_or_longer_than_allowed_is_refused(session_timeout_ms: int) -> None:
    answer = Room().join("ann", session_timeout_ms=session_timeout_ms)
    assert answer == [refuse_join("ann", ErrorCode.INVALID_SESSION_TIMEOUT)]


@pytest.mark.parametrize("session_timeout_ms", [1000, 1_800_000])
def test_a_session_as_short_or_as_long_as_allowed_is_fine(session_timeout_ms: int) -> None:
    [answer] = Room().join("ann", session_timeout_ms=session_timeout_ms)
    assert answer.response.error_code == ErrorCode.NONE  # type: ignore[union-attr]


def test_a_full_group_accepts_no_more_members() -> None:
    room = Room(max_size=2).with_two()
    assert room.join("cyd") == [refuse_join("cyd", ErrorCode.GROUP_MAX_SIZE_REACHED)]
    assert room.join("bob", BOB) == [joined("bob", BOB, 2, leader=ANN)]


def test_a_full_group_accepts_no_more_members_during_a_rebalance() -> None:
    room = Room(max_size=2, initial_rebalance_delay_ms=3000)
    room.join("ann")
    room.join("bob")
    assert room.join("cyd") == [refuse_join("cyd", ErrorCode.GROUP_MAX_SIZE_REACHED)]
    assert room.group.expire(3000) == []
    assert len(room.group.expire(6000)) == 2


def test_the_last_member_to_rejoin_a_full_group_is_refused() -> None:
    room = Room(max_size=2).with_two()
    room.join("ann", ANN)  # so that everybody has to come back
    assert room.join("cyd") == []
    assert room.join("bob", BOB) == [
        refuse_join("bob", ErrorCode.GROUP_MAX_SIZE_REACHED),
        joined("ann", ANN, 3, leader=ANN, members=seats(ANN, CYD)),
        joined("cyd", CYD, 3, leader=ANN),
    ]


def test_a_pending_member_id_reserves_no_place_in_a_full_group() -> None:
    room = Room(max_size=2)
    room.join("ann")
    room.sync("ann", ANN, 1)
    room.join("bob", version=4)
    room.join("cyd")
    room.join("ann", ANN)
    assert room.join("bob", BOB, version=4) == [
        refuse_join("bob", ErrorCode.GROUP_MAX_SIZE_REACHED),
        joined("ann", ANN, 2, leader=ANN, members=seats(ANN, CYD)),
        joined("cyd", CYD, 2, leader=ANN),
    ]
    assert room.group.next_deadline_ms() == SESSION_MS


def test_a_new_member_that_waits_too_long_is_told_to_start_over() -> None:
    room = Room()
    room.join("ann", rebalance_timeout_ms=NEW_MEMBER_MS * 2)
    room.sync("ann", ANN, 1)
    room.join("bob", now=1)
    room.heartbeat(ANN, 1, now=NEW_MEMBER_MS)
    assert room.group.expire(NEW_MEMBER_MS) == []
    assert room.group.expire(NEW_MEMBER_MS + 1) == [
        MemberExpired("g", BOB, "heartbeat"),
        refuse_join("bob", ErrorCode.UNKNOWN_MEMBER_ID),
    ]


def test_metadata_is_passed_on_unchanged() -> None:
    metadata = bytes(range(256))
    [answer] = Room().join("ann", protocols=protocols("range", metadata=metadata))
    assert answer.response.members == seats(ANN, metadata=metadata)  # type: ignore[union-attr]
