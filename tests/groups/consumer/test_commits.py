"""Who may commit and fetch the offsets of a consumer group."""

from __future__ import annotations

from ottla.core.errors import ErrorCode

from .making import Office, settle


def test_only_members_commit_while_there_are_some() -> None:
    office = Office({"read": 1})
    ann = office.client("ann", "read")
    ann.beat()
    group = office.group
    assert group.check_commit("ann", None, 2, 9) is ErrorCode.NONE
    assert group.check_commit("", None, -1, 9) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.check_commit("bob", None, 1, 9) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.check_commit("ann", None, 3, 9) is ErrorCode.STALE_MEMBER_EPOCH
    assert group.check_commit("ann", None, 2, 8) is ErrorCode.UNSUPPORTED_VERSION
    office.beat("ann", member_epoch=-1)
    assert group.check_commit("", None, -1, 9) is ErrorCode.NONE


def test_an_older_epoch_may_commit_partitions_owned_since_then() -> None:
    office = Office({"read": 2})
    ann = office.client("ann", "read")
    ann.beat()
    office.topics.put("read", 3)
    ann.beat()
    topic_id = office.topics.by_name("read").id  # type: ignore[union-attr]
    assert ann.epoch == 3
    assert office.group.check_commit_of("ann", 2, topic_id, 0) is ErrorCode.NONE
    assert office.group.check_commit_of("ann", 2, topic_id, 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert office.group.check_commit_of("ann", 3, topic_id, 2) is ErrorCode.NONE
    assert office.group.check_commit_of("ann", 2, b"another", 0) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_member_may_commit_partitions_being_revoked() -> None:
    office = Office({"read": 2})
    ann, bob = office.client("ann", "read"), office.client("bob", "read")
    ann.beat()
    bob.beat()
    had = set(ann.owned)
    ann.beat()
    for partition in had:
        assert office.group.check_commit_of("ann", ann.epoch, *partition) is ErrorCode.NONE
    settle(ann, bob)
    (given_up,) = had - ann.owned
    assert office.group.check_commit_of("ann", 2, *given_up) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_stale_epoch_in_a_transaction_is_an_illegal_generation() -> None:
    office = Office({"read": 1})
    office.client("ann", "read").beat()
    group = office.group
    assert group.check_commit_in_transaction("ann", None, 1) is ErrorCode.NONE
    assert group.check_commit_in_transaction("ann", None, 7) is ErrorCode.ILLEGAL_GENERATION
    assert group.check_commit_in_transaction("bob", None, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.check_commit_in_transaction("", None, -1) is ErrorCode.NONE


def test_fetching_offsets_with_a_member_id_requires_membership() -> None:
    office = Office({"read": 1})
    office.client("ann", "read").beat()
    assert office.groups.offsets.check_fetch("g", None, -1) is ErrorCode.NONE
    assert office.groups.offsets.check_fetch("g", "ann", 2) is ErrorCode.NONE
    assert office.groups.offsets.check_fetch("g", "ann", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert office.groups.offsets.check_fetch("g", "bob", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert office.groups.offsets.check_fetch("none", "bob", 1) is ErrorCode.NONE


def test_offsets_of_subscribed_topics_are_not_deleted() -> None:
    office = Office({"read": 1, "orders": 1, "other": 1})
    office.client("ann", "read", subscribed_topic_regex="ord.*").beat()
    assert office.group.is_subscribed_to("read")
    assert office.group.is_subscribed_to("orders")
    assert not office.group.is_subscribed_to("other")
