"""Committed offsets: who may commit, and when they expire."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.groups.actions import Persist, PersistOffsets
from ottla.groups.formats import OffsetCommitValue
from ottla.groups.offsets import CURSOR_PREFIX, GroupOffsets
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

from .making import SESSION_MS, TOPIC_READ, protocols
from .test_coordinator import Office

READ = TopicPartition(TOPIC_READ, 0)
ONE_ID, OTHER_ID = b"1" * 16, b"2" * 16
WEEK_MS = 7 * 24 * 3_600_000


def committing(*offsets: tuple[int, int], topic: str = TOPIC_READ, **fields: Any) -> OffsetCommitRequest:
    """A request to commit these offsets of these partitions."""
    topic_id = fields.pop("topic_id", bytes(16))
    metadata, epoch = fields.pop("metadata", ""), fields.pop("leader_epoch", -1)
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=epoch,
            committed_metadata=metadata,
        )
        for partition, offset in offsets
    )
    topics = (OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=partitions),)
    defaults: dict[str, Any] = {"group_id": "g", "member_id": ""}
    return OffsetCommitRequest(topics=topics, **{**defaults, **fields})


def by(member_id: str, generation: int, instance: str | None = None) -> dict[str, Any]:
    return {
        "member_id": member_id,
        "generation_id_or_member_epoch": generation,
        "group_instance_id": instance,
    }


def errors(response: OffsetCommitResponse) -> list[int]:
    return [partition.error_code for topic in response.topics for partition in topic.partitions]


def commit(office: Office, request: OffsetCommitRequest, *, now: int = 0, version: int = 9) -> list[int]:
    response, actions = office.groups.offsets.commit(request, version, now)
    office.carry_out(actions)
    return errors(response)


def with_ann(office: Office) -> Office:
    """Ann-1 is the only member of generation 1, which is stable."""
    office.join("g")
    office.sync("g", "ann-1")
    return office


# ── Committing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_commit_takes_effect_only_after_it_is_written() -> None:
    office = Office()
    response, actions = office.groups.offsets.commit(committing((0, 5), (1, 6), metadata="note"), 9, 100)
    assert errors(response) == [ErrorCode.NONE, ErrorCode.NONE]
    value = OffsetCommitValue(offset=5, metadata="note", commit_timestamp=100)
    other = OffsetCommitValue(offset=6, metadata="note", commit_timestamp=100)
    assert actions == [PersistOffsets("g", {READ: value, TopicPartition(TOPIC_READ, 1): other})]
    assert office.groups.offsets.get("g", READ) is None
    office.carry_out(actions)
    assert office.groups.offsets.get("g", READ) == value
    assert office.groups.offsets.all("g") == {READ: value, TopicPartition(TOPIC_READ, 1): other}


def test_responses_keep_the_order_of_the_request_with_name_and_id() -> None:
    office = Office()
    response, _ = office.groups.offsets.commit(committing((3, 1), (1, 1), topic_id=ONE_ID), 10, 0)
    [topic] = response.topics
    assert (topic.name, topic.topic_id) == (TOPIC_READ, ONE_ID)
    assert [partition.partition_index for partition in topic.partitions] == [3, 1]


def test_no_metadata_is_empty_metadata() -> None:
    office = Office()
    commit(office, committing((0, 5), metadata=None))
    value = office.groups.offsets.get("g", READ)
    assert value is not None
    assert value.metadata == ""


@pytest.mark.parametrize(
    ("metadata", "error"),
    [("x" * 4096, ErrorCode.NONE), ("ö" * 4096, ErrorCode.NONE), ("x" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE)],
)
def test_the_length_of_metadata_is_limited(metadata: str, error: ErrorCode) -> None:
    office = Office()
    assert commit(office, committing((0, 5), metadata=metadata)) == [error]
    assert bool(office.log) == (error is ErrorCode.NONE)


def test_metadata_that_is_too_long_does_not_affect_the_other_partitions() -> None:
    office = Office()
    request = OffsetCommitRequest(
        group_id="g",
        member_id="",
        topics=(
            *committing((0, 5), metadata="x" * 5000).topics,
            *committing((1, 6)).topics,
        ),
    )
    assert commit(office, request) == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    assert set(office.groups.offsets.all("g")) == {TopicPartition(TOPIC_READ, 1)}


# ── Who may commit ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_members_any_client_may_commit() -> None:
    office = Office()
    assert commit(office, committing((0, 5))) == [ErrorCode.NONE]
    assert commit(office, committing((0, 6))) == [ErrorCode.NONE]
    assert commit(office, committing((0, 7), member_id="whoever")) == [ErrorCode.NONE]
    assert commit(office, committing((0, 8), group_id="")) == [ErrorCode.NONE]


@pytest.mark.parametrize(("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_an_unknown_group_may_not_commit(version: int, error: ErrorCode) -> None:
    office = Office()
    assert commit(office, committing((0, 5), **by("ann-1", 1)), version=version) == [error]
    assert office.names == set()


@pytest.mark.parametrize(
    ("who", "error"),
    [
        (by("ann-1", 1), ErrorCode.NONE),
        (by("ann-1", 0), ErrorCode.ILLEGAL_GENERATION),
        (by("ann-1", 2), ErrorCode.ILLEGAL_GENERATION),
        (by("ann-1", -1), ErrorCode.ILLEGAL_GENERATION),
        (by("eve-9", 1), ErrorCode.UNKNOWN_MEMBER_ID),
        (by("", 1), ErrorCode.UNKNOWN_MEMBER_ID),
        (by("", -1), ErrorCode.UNKNOWN_MEMBER_ID),
        (by("ann-1", 1, "A"), ErrorCode.UNKNOWN_MEMBER_ID),
        (by("", -1, "A"), ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_only_members_of_a_stable_group_may_commit_and_in_their_generation(
    who: dict[str, Any], error: ErrorCode
) -> None:
    office = with_ann(Office())
    assert commit(office, committing((0, 5), (1, 6), **who)) == [error, error]
    assert (office.groups.offsets.get("g", READ) is not None) == (error is ErrorCode.NONE)


def test_a_fenced_instance_may_not_commit() -> None:
    office = Office()
    office.join("g", group_instance_id="A", version=5)
    office.sync("g", "A-1")
    office.join("g", group_instance_id="A", version=5)
    assert commit(office, committing((0, 5), **by("A-1", 1, "A"))) == [ErrorCode.FENCED_INSTANCE_ID]
    assert commit(office, committing((0, 5), **by("A-2", 1, "A"))) == [ErrorCode.NONE]


def test_members_may_commit_during_a_rebalance_before_they_rejoin() -> None:
    office = with_ann(Office())
    office.join("g", "bob")
    assert commit(office, committing((0, 5), **by("ann-1", 1))) == [ErrorCode.NONE]


def test_members_may_not_commit_before_they_have_an_assignment() -> None:
    office = Office()
    office.join("g")
    assert commit(office, committing((0, 5), **by("ann-1", 1))) == [ErrorCode.REBALANCE_IN_PROGRESS]


def test_after_all_members_left_their_generation_is_illegal() -> None:
    office = with_ann(Office())
    office.leave("g", "ann-1")
    assert commit(office, committing((0, 5), **by("ann-1", 1))) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert commit(office, committing((0, 5))) == [ErrorCode.NONE]


def test_a_successful_commit_counts_as_a_heartbeat() -> None:
    office = with_ann(Office())
    commit(office, committing((0, 5), **by("ann-1", 1)), now=5000)
    commit(office, committing((0, 5), **by("ann-1", 9)), now=9000)
    assert office.expire(SESSION_MS) == []
    assert office.expire(5000 + SESSION_MS) != []


# ── Topics that were deleted ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_offset_of_a_deleted_topic_with_the_same_name_is_ignored() -> None:
    office = Office()
    commit(office, committing((0, 5), topic_id=ONE_ID), version=10)
    assert office.groups.offsets.get("g", READ, OTHER_ID) is None
    assert office.groups.offsets.get("g", READ, ONE_ID) == office.groups.offsets.get("g", READ)
    commit(office, committing((1, 5)))  # by name
    assert office.groups.offsets.get("g", TopicPartition(TOPIC_READ, 1), OTHER_ID) is not None


def test_offsets_are_deleted_with_their_topic() -> None:
    office = Office()
    for group_id in ("one", "two"):
        commit(office, committing((0, 5), (1, 6), group_id=group_id, topic_id=ONE_ID), version=10)
    commit(office, committing((0, 5), group_id="two", topic="kept"))
    gone = dict.fromkeys([READ, TopicPartition(TOPIC_READ, 1)])
    actions = office.groups.offsets.forget_topics({TOPIC_READ: ONE_ID, "never read": OTHER_ID})
    assert actions == [PersistOffsets("one", gone), PersistOffsets("two", gone)]
    office.carry_out(actions)
    assert office.groups.offsets.all("one") == {}
    assert set(office.groups.offsets.all("two")) == {TopicPartition("kept", 0)}
    assert office.restarted(0).groups.offsets.all("one") == {}


def test_a_group_without_offsets_is_removed_at_the_next_expiration() -> None:
    office = Office()
    commit(office, committing((0, 5)))
    office.carry_out(office.groups.offsets.forget_topics({TOPIC_READ: ONE_ID}))
    assert office.names == {"g"}
    assert office.carry_out(office.groups.offsets.expire(1)) == [Persist("g", None)]
    assert office.names == set()


def test_deleting_an_earlier_topic_keeps_offsets_of_its_re_creation() -> None:
    office = Office()
    commit(office, committing((0, 5), topic_id=ONE_ID), version=10)
    assert office.groups.offsets.forget_topics({TOPIC_READ: OTHER_ID}) == []


# ── Deleting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cursor_is_fenced_by_leader_epoch_and_never_expires() -> None:
    office, group = Office(), f"{CURSOR_PREFIX}jobs"
    assert commit(office, committing((0, 5), group_id=group, leader_epoch=7)) == [ErrorCode.NONE]

    assert commit(office, committing((0, 3), group_id=group, leader_epoch=6)) == [ErrorCode.FENCED_LEADER_EPOCH]
    assert commit(office, committing((0, 6), group_id=group, leader_epoch=7)) == [ErrorCode.NONE]
    assert commit(office, committing((0, 0), group_id=group)) == [ErrorCode.NONE]  # set by an operator
    assert office.groups.offsets.expire(WEEK_MS * 100) == []


def test_a_cursor_is_fenced_while_the_next_leaders_commit_is_pending() -> None:
    office, group = Office(), f"{CURSOR_PREFIX}jobs"
    office.groups.offsets.commit(committing((0, 5), group_id=group, leader_epoch=7), 9, 0)  # not written yet

    assert commit(office, committing((0, 3), group_id=group, leader_epoch=6)) == [ErrorCode.FENCED_LEADER_EPOCH]


def test_the_first_commit_of_a_cursor_in_an_epoch_fences_the_previous_owner_and_keeps_its_last_commit() -> None:
    office, group = Office(), f"{CURSOR_PREFIX}jobs"
    commit(office, committing((0, 5), group_id=group, leader_epoch=6))
    # The next owner has read 5; meanwhile the previous one pops another message.
    commit(office, committing((0, 6), group_id=group, leader_epoch=6))

    assert commit(office, committing((0, 5), group_id=group, leader_epoch=7)) == [ErrorCode.NONE]

    kept = office.groups.offsets.get(group, READ)
    assert kept is not None
    assert (kept.offset, kept.leader_epoch) == (6, 7)
    assert commit(office, committing((0, 7), group_id=group, leader_epoch=6)) == [ErrorCode.FENCED_LEADER_EPOCH]
    commit(office, committing((0, 8), group_id=group, leader_epoch=7))
    assert office.groups.offsets.all(group)[READ].offset == 8


def test_a_cursor_set_by_an_operator_is_kept_by_the_next_owner_and_moved_by_the_current_one() -> None:
    office, group = Office(), f"{CURSOR_PREFIX}jobs"
    commit(office, committing((0, 5), group_id=group, leader_epoch=6))
    commit(office, committing((0, 1), group_id=group))

    commit(office, committing((0, 2), group_id=group, leader_epoch=6))
    assert office.groups.offsets.all(group)[READ].offset == 2

    commit(office, committing((0, 1), group_id=group))
    commit(office, committing((0, 5), group_id=group, leader_epoch=7))
    assert office.groups.offsets.all(group)[READ].offset == 1


def test_offsets_of_other_groups_are_not_fenced_by_leader_epochs() -> None:
    office = Office()
    assert commit(office, committing((0, 5), leader_epoch=7)) == [ErrorCode.NONE]
    assert commit(office, committing((0, 3), leader_epoch=6)) == [ErrorCode.NONE]


def deleting(topic: str, *partitions: int) -> OffsetDeleteRequest:
    parts = tuple(OffsetDeleteRequestPartition(partition_index=each) for each in partitions)
    return OffsetDeleteRequest(group_id="g", topics=(OffsetDeleteRequestTopic(name=topic, partitions=parts),))


def deleted(topic: str, *partitions: int, error: ErrorCode = ErrorCode.NONE) -> OffsetDeleteResponse:
    parts = tuple(OffsetDeleteResponsePartition(partition_index=each, error_code=error) for each in partitions)
    return OffsetDeleteResponse(
        error_code=ErrorCode.NONE, topics=(OffsetDeleteResponseTopic(name=topic, partitions=parts),)
    )


def test_offsets_of_unsubscribed_topics_can_be_deleted() -> None:
    office = Office()
    commit(office, committing((0, 5), (1, 6)))
    response, actions = office.groups.offsets.delete(deleting(TOPIC_READ, 0, 7))
    assert response == deleted(TOPIC_READ, 0, 7)
    assert actions == [PersistOffsets("g", {READ: None})]
    office.carry_out(actions)
    assert set(office.groups.offsets.all("g")) == {TopicPartition(TOPIC_READ, 1)}
    assert office.groups.offsets.delete(deleting(TOPIC_READ, 0)) == (deleted(TOPIC_READ, 0), [])


def test_offsets_of_subscribed_topics_cannot_be_deleted() -> None:
    office = with_ann(Office())
    commit(office, committing((0, 5), **by("ann-1", 1)))
    commit(office, committing((0, 5), topic="read before", **by("ann-1", 1)))
    response, actions = office.groups.offsets.delete(deleting(TOPIC_READ, 0))
    assert response == deleted(TOPIC_READ, 0, error=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    assert actions == []
    response, actions = office.groups.offsets.delete(deleting("read before", 0))
    assert response == deleted("read before", 0)
    assert actions == [PersistOffsets("g", {TopicPartition("read before", 0): None})]


def test_offsets_of_other_protocol_types_can_be_deleted_only_when_the_group_is_empty() -> None:
    office = Office()
    office.join("g", protocol_type="connect")
    refused = OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP, topics=())
    assert office.groups.offsets.delete(deleting(TOPIC_READ, 0)) == (refused, [])
    office.leave("g", "ann-1")
    assert office.groups.offsets.delete(deleting(TOPIC_READ, 0)) == (deleted(TOPIC_READ, 0), [])


def test_a_group_that_does_not_exist_has_no_offsets() -> None:
    office = Office()
    unknown = OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND, topics=())
    assert office.groups.offsets.delete(deleting(TOPIC_READ, 0)) == (unknown, [])
    assert office.groups.offsets.all("g") == {}
    assert office.groups.offsets.get("g", READ) is None


# ── Expiring ─────────────────────────────────────────────────────────────────────────────────────────────────────────

GONE = [PersistOffsets("g", {READ: None}), Persist("g", None)]


def test_offsets_of_consumers_that_assign_themselves_expire_after_their_last_commit() -> None:
    office = Office()
    commit(office, committing((0, 5)), now=100)
    commit(office, committing((0, 6)), now=200)
    assert office.groups.offsets.expire(199 + WEEK_MS) == []
    assert office.carry_out(office.groups.offsets.expire(200 + WEEK_MS)) == GONE
    assert office.names == set()


def test_offsets_of_an_empty_group_expire_after_the_last_member_left() -> None:
    office = with_ann(Office())
    commit(office, committing((0, 5), **by("ann-1", 1)), now=100)
    office.leave("g", "ann-1", now=300)
    assert office.groups.offsets.expire(299 + WEEK_MS) == []
    assert office.carry_out(office.groups.offsets.expire(300 + WEEK_MS)) == GONE
    assert office.restarted(0).names == set()


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    office = with_ann(Office())
    commit(office, committing((0, 5), **by("ann-1", 1)))
    commit(office, committing((0, 5), topic="read before", **by("ann-1", 1)))
    assert office.groups.offsets.expire(10 * WEEK_MS) == [PersistOffsets("g", {TopicPartition("read before", 0): None})]


@pytest.mark.parametrize(
    "fields", [{"protocol_type": "connect"}, {"protocols": protocols("range", metadata=b"not a subscription")}]
)
def test_offsets_of_members_with_unknown_metadata_do_not_expire(fields: dict[str, Any]) -> None:
    office = Office()
    office.join("g", **fields)
    office.sync("g", "ann-1")
    commit(office, committing((0, 5), **by("ann-1", 1)))
    assert office.groups.offsets.expire(10 * WEEK_MS) == []


def test_an_offset_with_an_explicit_expiry_expires_then_even_after_a_restart() -> None:
    office = Office()
    commit(office, committing((0, 5), retention_time_ms=1000), now=100, version=4)
    for each in (office, office.restarted(0)):
        assert each.groups.offsets.expire(1099) == []
        assert each.groups.offsets.expire(1100) == GONE


def test_an_empty_group_without_offsets_is_removed_at_the_next_expiration() -> None:
    office = with_ann(Office())
    office.leave("g", "ann-1")
    assert office.carry_out(office.groups.offsets.expire(1)) == [Persist("g", None)]
    assert office.names == set()


def test_a_group_with_a_pending_member_is_not_removed() -> None:
    office = with_ann(Office())
    office.leave("g", "ann-1")
    office.join("g", "bob", version=4)
    assert office.groups.offsets.expire(1) == []


def test_offset_retention_is_configurable() -> None:
    office = Office(offsets_retention_minutes=1)
    commit(office, committing((0, 5)))
    assert office.groups.offsets.expire(60_000) == GONE


def test_a_group_counts_its_offsets() -> None:
    offsets = GroupOffsets()
    value = OffsetCommitValue(offset=1, commit_timestamp=0)
    offsets.apply({TopicPartition("a", 0): value, TopicPartition("a", 1): value, TopicPartition("b", 0): value})
    assert len(offsets) == 3
    offsets.apply({TopicPartition("b", 0): None, TopicPartition("c", 0): None})
    assert len(offsets) == 2
    assert [at for at, _ in offsets] == [TopicPartition("a", 0), TopicPartition("a", 1)]
