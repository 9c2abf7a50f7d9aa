from __future__ import annotations

from ottla.cli.groups.rows import DescribedGroup, lag_row
from ottla.cli.offsets.resets import Bounds
from ottla.client.admin.groups import GroupDescription, GroupMemberDescription
from ottla.client.errors import broker_error
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition

A, B, C = (TopicPartition("t", index) for index in range(3))
ANN = GroupMemberDescription("ann-1", None, "ann", "/10.0.0.1", frozenset({A, B}))


def test_lag_is_the_number_of_unread_records_and_never_negative() -> None:
    assert lag_row(A, 3, Bounds(0, 10), None)["lag"] == 7
    assert lag_row(A, 12, Bounds(0, 10), None)["lag"] == 0


def test_lag_is_unknown_without_a_committed_offset_or_without_an_end() -> None:
    gone = broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t-0")
    assert lag_row(A, None, Bounds(0, 10), None)["lag"] is None
    assert lag_row(A, 3, gone, None)["lag"] is None


def test_a_group_is_shown_with_all_committed_offsets_and_assignments() -> None:
    about = GroupDescription("g", "Stable", "consumer", "range", 0, (ANN,))
    described = DescribedGroup(about, {A: 4, C: 1}, {A: Bounds(0, 10), B: Bounds(0, 5), C: Bounds(0, 2)})

    rows = [
        (row["partition"], row["committed"], row["lag"], row["client"], row["host"]) for row in described.lag_rows()
    ]
    assert rows == [(0, 4, 6, "ann", "10.0.0.1"), (1, None, None, "ann", "10.0.0.1"), (2, 1, 1, None, None)]
    assert described.heading() == "g: Stable, 1 member, assignor range, coordinator 0, lag 7"
    assert described.as_json()["lag"] == 7
    assert "epoch" not in described.member_columns


def test_a_consumer_group_is_shown_with_its_epochs() -> None:
    bob = GroupMemberDescription("bob-1", None, "bob", "/10.0.0.1", frozenset({A}), 3)
    about = GroupDescription("g", "Reconciling", "consumer", "uniform", 0, (bob,), "consumer", 4)
    described = DescribedGroup(about, {}, {A: Bounds(0, 10)})

    assert described.heading() == "g: Reconciling, 1 member, epoch 4, assignor uniform, coordinator 0, lag 0"
    assert "epoch" in described.member_columns
    assert described.member_rows()[0]["epoch"] == 3
    assert (described.as_json()["type"], described.as_json()["epoch"]) == ("consumer", 4)
