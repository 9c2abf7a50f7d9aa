"""Members that have a name which outlives them."""

from __future__ import annotations

from ottla.core.errors import ErrorCode
from ottla.groups.states import State

from .making import SESSION_MS, Office, numbers, settle


def test_a_member_that_leaves_for_a_while_finds_its_partitions_again() -> None:
    office = Office({"read": 4})
    ann, bob = office.client("ann", "read", instance_id="A"), office.client("bob", "read")
    ann.beat()
    settle(bob, ann)
    mine, epoch = numbers(ann), office.group.state_of_members.epoch

    answer = office.beat("ann", member_epoch=-2, instance_id="A")
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, -2)
    bob.beat()
    assert len(bob.owned) == 2

    again = office.client("ann-2", "read", instance_id="A")
    again.beat()
    assert (numbers(again), office.group.state_of_members.epoch) == (mine, epoch)
    assert office.group.state is State.STABLE


def test_the_name_is_not_given_away_before_its_owner_has_left() -> None:
    office = Office({"read": 1})
    office.client("ann", "read", instance_id="A").beat()
    other = office.client("ann-2", "read", instance_id="A")
    assert other.beat().error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    office.beat("ann", member_epoch=-1, instance_id="A")
    assert other.beat().error_code == ErrorCode.NONE


def test_who_had_the_name_before_is_fenced() -> None:
    office = Office({"read": 1})
    ann = office.client("ann", "read", instance_id="A")
    ann.beat()
    office.beat("ann", member_epoch=-2, instance_id="A")
    office.client("ann-2", "read", instance_id="A").beat()
    assert ann.beat().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert office.beat("ann", member_epoch=-1, instance_id="A").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert office.beat("ann", member_epoch=-1, instance_id="B").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_come_back_in_time_is_gone() -> None:
    office = Office({"read": 2})
    ann, bob = office.client("ann", "read", instance_id="A"), office.client("bob", "read")
    ann.beat()
    settle(bob, ann)
    office.beat("ann", member_epoch=-2, instance_id="A", now=10)
    bob.beat(now=10)
    office.expire(SESSION_MS)
    bob.beat(SESSION_MS)
    assert numbers(bob) == [0, 1]


def test_an_absent_member_keeps_its_partitions_over_a_change_of_brokers() -> None:
    office = Office({"read": 2})
    office.client("ann", "read", instance_id="A").beat()
    office.beat("ann", member_epoch=-2, instance_id="A")
    again = office.reopened().client("ann-2", "read", instance_id="A")
    again.beat()
    assert numbers(again) == [0, 1]
