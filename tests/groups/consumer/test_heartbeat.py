"""Heartbeats of a consumer group: join, reconcile, leave, expire."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.errors import ErrorCode
from ottla.groups.consumer.current import MemberState
from ottla.groups.states import State

from .making import REBALANCE_MS, SESSION_MS, Office, numbers, settle, topic_partitions


def test_the_first_member_gets_everything_at_once() -> None:
    office = Office({"read": 3})
    ann = office.client("ann", "read")

    answer = ann.beat()

    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("ann", 2, 5000)
    assert numbers(ann) == [0, 1, 2]
    assert office.group.state is State.STABLE


def test_a_heartbeat_without_news_is_answered_without_an_assignment_and_nothing_is_written() -> None:
    office = Office({"read": 3})
    ann = office.client("ann", "read")
    ann.beat()
    written = list(office.log)

    answer = ann.beat()

    assert answer.assignment is None
    assert answer.member_epoch == 2
    assert office.log == written


def test_a_new_member_waits_until_others_confirm_revocation() -> None:
    office = Office({"read": 4})
    ann, bob = office.client("ann", "read"), office.client("bob", "read")
    ann.beat()

    bob.beat()
    assert (bob.epoch, numbers(bob)) == (3, [])
    assert office.group.state is State.RECONCILING

    had = numbers(ann)
    ann.beat()  # told to revoke two
    assert (ann.epoch, len(numbers(ann))) == (2, 2)
    bob.beat()
    assert numbers(bob) == []  # not before she confirms it

    ann.beat()
    assert ann.epoch == 3
    bob.beat()
    assert sorted(numbers(ann) + numbers(bob)) == had
    assert office.group.state is State.STABLE


def test_a_member_that_reports_nothing_is_assumed_to_own_everything() -> None:
    office = Office({"read": 2})
    ann, bob = office.client("ann", "read"), office.client("bob", "read")
    ann.beat()
    bob.beat()
    ann.beat()
    answer = ann.beat(topic_partitions=None)

    assert answer.member_epoch == 2
    assert office.group.state_of_members.current("ann").state is MemberState.UNREVOKED_PARTITIONS


def test_partitions_of_a_leaving_member_go_to_the_others() -> None:
    office = Office({"read": 4})
    ann, bob = office.client("ann", "read"), office.client("bob", "read")
    ann.beat()
    settle(bob, ann)

    answer = office.beat("ann", member_epoch=-1)

    assert (answer.member_id, answer.member_epoch, answer.error_code) == ("ann", -1, ErrorCode.NONE)
    assert office.group.state is State.ASSIGNING
    settle(bob)
    assert numbers(bob) == [0, 1, 2, 3]


def test_the_last_member_leaves_an_empty_group_behind() -> None:
    office = Office({"read": 1})
    office.client("ann", "read").beat()
    office.beat("ann", member_epoch=-1)
    assert office.group.state is State.EMPTY
    assert office.group.is_unused


def test_a_silent_member_is_dropped() -> None:
    office = Office({"read": 2})
    ann, bob = office.client("ann", "read"), office.client("bob", "read")
    ann.beat()
    settle(bob, ann)
    bob.beat(now=10)

    office.expire(SESSION_MS)

    assert [(one.member_id, one.missed) for one in office.expired] == [("ann", "heartbeat")]
    assert ann.beat(SESSION_MS).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_revoke_in_time_is_dropped() -> None:
    office = Office({"read": 2})
    ann, bob = office.client("ann", "read"), office.client("bob", "read")
    ann.beat()
    bob.beat()
    ann.beat(now=1000)
    for now in range(2000, REBALANCE_MS + 1000, 10_000):
        ann.beat(now, topic_partitions=None)
        bob.beat(now)

    office.expire(REBALANCE_MS + 1000)

    assert [(one.member_id, one.missed) for one in office.expired] == [("ann", "revocation")]
    bob.beat(REBALANCE_MS + 1000)
    assert numbers(bob) == [0, 1]


def test_a_member_that_revoked_in_time_is_not_dropped() -> None:
    office = Office({"read": 2})
    ann, bob = office.client("ann", "read"), office.client("bob", "read")
    ann.beat()
    bob.beat()
    ann.beat(now=1000)
    ann.beat(now=2000)
    for now in range(2000, REBALANCE_MS + 3000, 10_000):
        ann.beat(now)
        bob.beat(now)
    office.expire(REBALANCE_MS + 2000)
    assert office.expired == []


def test_added_partitions_are_assigned_with_the_next_heartbeat() -> None:
    office = Office({"read": 2})
    ann = office.client("ann", "read")
    ann.beat()
    office.topics.put("read", 4)
    ann.beat()
    assert (ann.epoch, numbers(ann)) == (3, [0, 1, 2, 3])


def test_partitions_that_move_to_other_racks_begin_another_epoch() -> None:
    office = Office()
    office.topics.put("read", 2, racks=(("a", "b"), ("a", "c")))
    ann = office.client("ann", "read")
    ann.beat()
    office.topics.put("read", 2, racks=(("a", "b"), ("a", "c")))
    ann.beat()
    assert ann.epoch == 2, "nothing has moved"
    office.topics.put("read", 2, racks=(("a", "b"), ("b", "c")))
    ann.beat()
    assert (ann.epoch, numbers(ann)) == (3, [0, 1])


def test_a_members_rack_is_recorded_without_a_new_epoch() -> None:
    office = Office({"read": 2})
    ann = office.client("ann", "read", rack_id="a")
    ann.beat()
    assert ann.subscribe(rack_id="b").error_code == ErrorCode.NONE
    assert ann.epoch == 2
    [member] = office.group.state_of_members.members.values()
    assert member.rack_id == "b"


def test_a_re_created_topic_is_another_topic() -> None:
    office = Office({"read": 1})
    ann = office.client("ann", "read")
    ann.beat()
    office.topics.delete("read")
    settle(ann)
    assert numbers(ann) == []
    made = office.topics.put("read", 1, generation=1)
    settle(ann)
    assert [partition.topic_id for partition in ann.owned] == [made.id]


def test_a_topic_created_later_is_assigned() -> None:
    office = Office({})
    ann = office.client("ann", "later")
    ann.beat()
    assert numbers(ann) == []
    office.topics.put("later", 2)
    ann.beat()
    assert numbers(ann) == [0, 1]


def test_other_topics_make_no_difference() -> None:
    office = Office({"read": 1})
    ann = office.client("ann", "read")
    ann.beat()
    office.topics.put("other", 5)
    assert ann.beat().member_epoch == 2


def test_a_member_can_change_its_subscription() -> None:
    office = Office({"read": 1, "other": 2})
    ann = office.client("ann", "read")
    ann.beat()
    ann.subscribe(subscribed_topic_names=("other",))
    settle(ann)
    assert {partition.topic_id for partition in ann.owned} == {office.topics.by_name("other").id}  # type: ignore[union-attr]
    assert numbers(ann) == [0, 1]


def test_a_lost_response_is_repeated_for_the_previous_epoch() -> None:
    office = Office({"read": 2})
    ann = office.client("ann", "read")
    ann.beat()
    office.topics.put("read", 3)
    owned = topic_partitions(ann.owned)
    lost = ann.beat()
    again = office.beat(
        "ann", member_epoch=2, topic_partitions=owned, subscribed_topic_names=("read",), rebalance_timeout_ms=1000
    )
    assert (again.error_code, again.member_epoch, again.assignment) == (ErrorCode.NONE, 3, lost.assignment)


@pytest.mark.parametrize("epoch", [2, 5])
def test_a_member_with_a_wrong_epoch_is_fenced(epoch: int) -> None:
    office = Office({"read": 2})
    ann = office.client("ann", "read")
    for partitions in (2, 3, 4):
        office.topics.put("read", partitions)
        ann.beat()
    assert ann.epoch == 4
    answer = office.beat("ann", member_epoch=epoch, topic_partitions=())
    assert answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_rejoins_with_epoch_0_keeps_its_partitions() -> None:
    office = Office({"read": 2})
    ann = office.client("ann", "read")
    ann.beat()
    again = office.client("ann", "read")
    again.beat()
    assert (again.epoch, numbers(again)) == (2, [0, 1])


def test_the_group_size_is_limited() -> None:
    office = Office({"read": 2}, consumer_max_size=1)
    office.client("ann", "read").beat()
    assert office.client("bob", "read").beat().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert office.client("ann", "read").beat().error_code == ErrorCode.NONE


def test_before_version_1_the_broker_assigns_the_member_id() -> None:
    office = Office({"read": 1})
    fields: dict[str, Any] = {
        "member_epoch": 0,
        "topic_partitions": (),
        "subscribed_topic_names": ("read",),
        "rebalance_timeout_ms": 1000,
    }
    assert office.beat("", version=0, **fields).member_id == "1"
    assert office.beat("", version=1, **fields).error_code == ErrorCode.INVALID_REQUEST


def test_members_of_an_unknown_group_are_refused() -> None:
    office = Office({"read": 1})
    assert office.beat("ann", member_epoch=1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert office.beat("ann", member_epoch=-1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    office.client("bob", "read").beat()
    assert office.beat("ann", member_epoch=1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert office.beat("ann", member_epoch=-1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "none"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_an_invalid_heartbeat_is_refused_and_creates_no_group(change: dict[str, Any], error: ErrorCode) -> None:
    office = Office({"read": 1})
    fields: dict[str, Any] = {
        "member_epoch": 0,
        "topic_partitions": (),
        "subscribed_topic_names": ("read",),
        "rebalance_timeout_ms": 1000,
    }
    answer = office.beat("ann", **{**fields, **change})
    assert answer.error_code == error
    assert answer.error_message
    assert not list(office.groups.table)


def test_the_assignor_is_chosen_by_the_members() -> None:
    office = Office({"a": 2, "b": 2})
    members = [office.client(name, "a", "b", server_assignor="range") for name in ("ann", "bob")]
    for each in members:
        each.beat()
    settle(*members)
    assert [numbers(each) for each in members] == [[0, 0], [1, 1]]


def test_a_rebalance_can_be_triggered() -> None:
    office = Office({"read": 2})
    ann = office.client("ann", "read")
    ann.beat()
    office.carry_out(office.groups.table.rebalance("g", 0) or [])
    assert office.group.state is State.ASSIGNING
    ann.beat()
    assert (ann.epoch, numbers(ann)) == (3, [0, 1])


def test_members_can_be_expired_by_a_fault() -> None:
    office = Office({"read": 2})
    ann, bob = office.client("ann", "read"), office.client("bob", "read")
    ann.beat()
    settle(bob, ann)
    office.carry_out(office.groups.table.expire_sessions("g", "ann", 0))
    assert [one.member_id for one in office.expired] == ["ann"]
    settle(bob)
    assert numbers(bob) == [0, 1]


def test_a_pattern_matches_current_and_future_topics() -> None:
    office = Office({"orders-1": 1, "orders-2": 1, "payments": 1})
    ann = office.client("ann", subscribed_topic_regex="orders-.*")
    ann.beat()
    assert len(ann.owned) == 2
    office.topics.put("orders-3", 1)
    settle(ann)
    assert len(ann.owned) == 3
    office.topics.delete("orders-1")
    settle(ann)
    assert len(ann.owned) == 2


def test_an_unused_pattern_is_removed() -> None:
    office = Office({"orders": 1})
    ann = office.client("ann", subscribed_topic_regex="orders")
    ann.beat()
    assert office.group.state_of_members.regexes.keys() == {"orders"}
    ann.subscribe(subscribed_topic_regex="", subscribed_topic_names=("orders",))
    assert not office.group.state_of_members.regexes
    assert len(ann.owned) == 1


def test_a_change_that_cannot_be_written_has_no_effect() -> None:
    office = Office({"read": 4})
    ann = office.client("ann", "read")
    ann.beat()
    before = dict(office.group.state_of_members.records)
    office.can_write = False
    bob = office.client("bob", "read")

    assert bob.beat().error_code == ErrorCode.NOT_COORDINATOR
    assert office.group.state_of_members.records == before

    office.can_write = True
    settle(bob, ann)
    assert len(bob.owned) == len(ann.owned) == 2


def test_a_leave_that_could_not_be_written_is_retried() -> None:
    office = Office({"read": 1})
    office.client("ann", "read").beat()
    office.can_write = False
    office.expire(SESSION_MS)
    office.can_write = True
    assert office.group.state is State.STABLE
    office.expire(2 * SESSION_MS + 1)
    assert office.group.state is State.EMPTY


def test_a_change_of_topics_that_could_not_be_written_is_not_missed() -> None:
    office = Office({"read": 1})
    ann = office.client("ann", "read")
    ann.beat()
    office.topics.put("read", 2)
    office.can_write = False
    ann.beat()
    office.can_write = True
    ann.beat()
    assert numbers(ann) == [0, 1]


def test_a_reloaded_group_continues_unchanged() -> None:
    office = Office({"read": 4, "orders-1": 2})
    ann = office.client("ann", "read", subscribed_topic_regex="orders.*")
    bob = office.client("bob", "read", instance_id="B")
    ann.beat()
    settle(bob, ann)
    bob.beat(subscribed_topic_names=("read", "orders-1"))

    reopened = office.reopened()

    assert reopened.group.state_of_members.records == office.group.state_of_members.records
    reopened.carry_out(reopened.groups.table.start(0))
    ann._office = bob._office = reopened
    settle(ann, bob)
    assert reopened.group.state is State.STABLE
    reopened.expire(SESSION_MS + 1)
    assert {one.member_id for one in reopened.expired} == {"ann", "bob"}
