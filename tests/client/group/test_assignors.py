"""Assignors. interop/test_assignors_like_java.py compares them with Java's."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.group.assignors.known import ASSIGNORS, assignors_named
from ottla.client.group.assignors.subjects import Assignor, Layout, Member, Shares
from ottla.core.ids import TopicPartition

EACH_ASSIGNOR = pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=lambda assignor: assignor.name)
EACH_STICKY = pytest.mark.parametrize(
    "assignor", [ASSIGNORS["sticky"], ASSIGNORS["cooperative-sticky"]], ids=lambda assignor: assignor.name
)


def _layout(**partitions: int) -> Layout:
    return {topic: [frozenset[str]()] * count for topic, count in partitions.items()}


def _member(name: str, *topics: str, rack: str = "", instance_id: str | None = None) -> Member:
    return Member(id=name, topics=frozenset(topics), rack=rack, instance_id=instance_id)


def _had(assignor: Assignor, member: Member, share: list[TopicPartition], generation: int) -> Member:
    """The member when it rejoins with these partitions."""
    return replace(
        member,
        owned=tuple(share) if assignor.is_cooperative else (),
        generation=generation,
        user_data=assignor.user_data(share, generation),
    )


def _short(shares: Shares) -> dict[str, list[str]]:
    return {member: sorted(f"{at.topic}{at.partition}" for at in share) for member, share in shares.items()}


def _rebalance(assignor: Assignor, members: list[Member], layout: Layout, shares: Shares, generation: int) -> Shares:
    """Rebalance until nothing has to be revoked first."""
    for step in range(3):
        joining = [_had(assignor, one, shares.get(one.id, []), generation + step) for one in members]
        shares = assignor.assign(joining, layout)
        if sum(map(len, shares.values())) == sum(map(len, layout.values())):
            return shares
    raise AssertionError("the rebalance did not finish")


def test_range_gives_runs_of_each_topic_and_the_first_members_one_more() -> None:
    members = [_member("b", "t", "u"), _member("a", "t", "u"), _member("c", "u")]
    assert _short(ASSIGNORS["range"].assign(members, _layout(t=3, u=4))) == {
        "a": ["t0", "t1", "u0", "u1"],
        "b": ["t2", "u2"],
        "c": ["u3"],
    }


def test_range_orders_static_members_first_by_instance_id() -> None:
    members = [_member("a", "t"), _member("z", "t", instance_id="1"), _member("y", "t", instance_id="2")]
    assert _short(ASSIGNORS["range"].assign(members, _layout(t=4))) == {"z": ["t0", "t1"], "y": ["t2"], "a": ["t3"]}


def test_range_matches_racks_and_co_partitions_topics() -> None:
    layout = {topic: [frozenset({rack}) for rack in ("x", "y", "x", "y")] for topic in ("t", "u")}
    members = [_member("a", "t", "u", rack="y"), _member("b", "t", "u", rack="x")]
    assert _short(ASSIGNORS["range"].assign(members, layout)) == {
        "a": ["t1", "t3", "u1", "u3"],
        "b": ["t0", "t2", "u0", "u2"],
    }


def test_round_robin_deals_the_partitions_of_all_topics_in_turn() -> None:
    members = [_member("a", "t", "u"), _member("b", "u")]
    assert _short(ASSIGNORS["roundrobin"].assign(members, _layout(t=2, u=3))) == {
        "a": ["t0", "t1", "u1"],
        "b": ["u0", "u2"],
    }


@EACH_STICKY
def test_sticky_moves_as_few_partitions_as_possible_when_a_member_joins(assignor: Assignor) -> None:
    layout = _layout(t=6)
    first = [_member("a", "t"), _member("b", "t")]
    before = assignor.assign(first, layout)
    after = _rebalance(assignor, [*first, _member("c", "t")], layout, before, generation=1)

    assert [len(after[member]) for member in "abc"] == [2, 2, 2]
    assert set(after["a"]) < set(before["a"])
    assert set(after["b"]) < set(before["b"])


@EACH_STICKY
def test_sticky_leaves_others_alone_when_a_member_leaves(assignor: Assignor) -> None:
    layout = _layout(t=6)
    members = [_member(name, "t") for name in "abc"]
    before = assignor.assign(members, layout)
    after = _rebalance(assignor, members[:2], layout, before, generation=1)

    assert set(after["a"]) > set(before["a"])
    assert set(after["b"]) > set(before["b"])


@EACH_STICKY
def test_sticky_balances_within_different_subscriptions(assignor: Assignor) -> None:
    members = [_member("a", "t"), _member("b", "t", "u"), _member("c", "t", "u", "v")]
    shares = assignor.assign(members, _layout(t=1, u=2, v=3))
    assert _short(shares) == {"a": ["t0"], "b": ["u0", "u1"], "c": ["v0", "v1", "v2"]}


def test_cooperative_sticky_assigns_no_partition_that_another_still_owns() -> None:
    assignor = ASSIGNORS["cooperative-sticky"]
    owner = _had(assignor, _member("a", "t"), [TopicPartition("t", index) for index in range(4)], 1)
    assert _short(assignor.assign([owner, _member("b", "t")], _layout(t=4))) == {"a": ["t0", "t1"], "b": []}


def test_cooperative_sticky_ignores_two_claims_to_one_partition() -> None:
    assignor = ASSIGNORS["cooperative-sticky"]
    claimed = [TopicPartition("t", 0)]
    members = [_had(assignor, _member(name, "t"), claimed, 3) for name in "ab"]
    assert all(claimed[0] not in share for share in assignor.assign(members, _layout(t=2)).values())


def test_cooperative_sticky_accepts_the_newer_of_two_claims() -> None:
    assignor = ASSIGNORS["cooperative-sticky"]
    claimed = [TopicPartition("t", 0)]
    members = [_had(assignor, _member("a", "t"), claimed, 3), _had(assignor, _member("b", "t"), claimed, 4)]
    assert _short(assignor.assign(members, _layout(t=2)))["b"] == ["t0"]


@pytest.mark.parametrize("user_data", [b"?", b"\0\0\0\7nonsense", b""])
@EACH_STICKY
def test_foreign_user_data_is_ignored(assignor: Assignor, user_data: bytes) -> None:
    members = [replace(_member("a", "t"), user_data=user_data), _member("b", "t")]
    assert _short(assignor.assign(members, _layout(t=2))) == {"a": ["t0"], "b": ["t1"]}


@EACH_STICKY
def test_deleted_partitions_are_not_assigned_again(assignor: Assignor) -> None:
    member = _had(assignor, _member("a", "t"), [TopicPartition("t", 7), TopicPartition("gone", 0)], 1)
    assert _short(assignor.assign([member], _layout(t=1))) == {"a": ["t0"]}


@EACH_ASSIGNOR
def test_an_unknown_topic_is_not_assigned(assignor: Assignor) -> None:
    assert assignor.assign([_member("a", "t", "nowhere")], _layout(t=1)) == {"a": [TopicPartition("t", 0)]}
    assert assignor.assign([_member("a", "nowhere"), _member("b")], {}) == {"a": [], "b": []}


@EACH_ASSIGNOR
@given(seed=st.integers(0, 2**32))
def test_every_subscribed_partition_goes_to_one_subscriber(assignor: Assignor, seed: int) -> None:
    pick = random.Random(seed)
    layout = _layout(**{f"t{number}": pick.randint(1, 9) for number in range(pick.randint(1, 4))})
    members = [
        _member(f"m{number}", *pick.sample(sorted(layout), pick.randint(0, len(layout))))
        for number in range(pick.randint(1, 6))
    ]
    shares = assignor.assign(members, layout)
    wanted = {topic for member in members for topic in member.topics}

    given_out = sorted(at for share in shares.values() for at in share)
    assert given_out == [TopicPartition(topic, n) for topic in sorted(wanted) for n in range(len(layout[topic]))]
    assert shares.keys() == {member.id for member in members}
    assert all(at.topic in member.topics for member in members for at in shares[member.id])


@EACH_STICKY
@given(seed=st.integers(0, 2**32))
def test_sticky_becomes_balanced_and_then_moves_nothing(assignor: Assignor, seed: int) -> None:
    pick = random.Random(seed)
    layout = _layout(**{f"t{number}": pick.randint(1, 9) for number in range(pick.randint(1, 3))})
    members = [_member(f"m{number}", *layout) for number in range(pick.randint(2, 6))]
    shares = _rebalance(assignor, members[: pick.randint(1, len(members))], layout, {}, 1)
    shares = _rebalance(assignor, members, layout, shares, 10)
    counts = {len(share) for share in shares.values()}
    assert max(counts) - min(counts) <= 1
    again = _rebalance(assignor, members, layout, shares, 20)
    assert _short(again) == _short(shares)


def test_assignors_are_found_by_name_and_a_wrong_name_lists_the_right_ones() -> None:
    assert [one.name for one in assignors_named(["sticky", "range"])] == ["sticky", "range"]
    with pytest.raises(ValueError, match=r"'stickie'; known are cooperative-sticky, range, roundrobin, sticky"):
        assignors_named(["stickie"])
    with pytest.raises(ValueError, match="at least one"):
        assignors_named([])
