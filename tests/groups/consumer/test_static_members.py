"""Static members."""

from __future__ import annotations

from ottla.core.errors import ErrorCode
from ottla.groups.states import State

from .making import SESSION_MS, Office, numbers, settle


def test_a_static_member_that_leaves_temporarily_keeps_its_partitions() -> None:
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


def test_an_instance_id_in_use_is_refused() -> None:
    office = Office({"read": 1})
    office.client("ann", "read", instance_id="A").beat()
    other = office.client("ann-2", "read", instance_id="A")
    assert other.beat().error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    office.beat("ann", member_epoch=-1, instance_id="A")
    assert other.beat().error_code == ErrorCode.NONE


def test_the_previous_member_of_an_instance_is_fenced() -> None:
    office = Office({"read": 1})
    ann = office.client("ann", "read", instance_id="A")
    ann.beat()
    office.beat("ann", member_epoch=-2, instance_id="A")
    office.client("ann-2", "read", instance_id="A").beat()
    assert ann.beat().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert office.beat("ann", member_epoch=-1, instance_id="A").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert office.beat("ann", member_epoch=-1, instance_id="B").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_does_not_return_in_time_is_removed() -> None:
    office = Office({"read": 2})
    ann, bob = office.client("ann", "read", instance_id="A"), office.client("bob", "read")
    ann.beat()
    settle(bob, ann)
    office.beat("ann", member_epoch=-2, instance_id="A", now=10)
    bob.beat(now=10)
    office.expire(SESSION_MS)
    bob.beat(SESSION_MS)
    assert numbers(bob) == [0, 1]


def test_an_absent_static_member_keeps_its_partitions_after_a_coordinator_change() -> None:
    office = Office({"read": 2})
    office.client("ann", "read", instance_id="A").beat()
    office.beat("ann", member_epoch=-2, instance_id="A")
    again = office.reopened().client("ann-2", "read", instance_id="A")
    again.beat()
    assert numbers(again) == [0, 1]
