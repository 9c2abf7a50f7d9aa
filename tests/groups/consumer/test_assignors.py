"""Properties of the assignors for arbitrary input."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.groups.consumer.assignors import ASSIGNORS, Subscriber
from ottla.groups.partitions import NOTHING, Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.groups.partitions import Assigned

TOPICS = [bytes([number]) * 16 for number in range(4)]


@st.composite
def situations(draw: st.DrawFn, *, same_topics: bool = False) -> tuple[dict[str, Subscriber], dict[bytes, int]]:
    """Members with subscriptions and previous assignments without overlaps, and topics that may have changed since."""
    counts = {topic: draw(st.integers(0, 8)) for topic in TOPICS}
    names = [f"m{number}" for number in range(draw(st.integers(1, 6)))]
    subsets = st.frozensets(st.sampled_from(TOPICS), min_size=1)
    shared = draw(subsets)
    topics = {name: shared if same_topics else draw(subsets) for name in names}
    past: dict[str, set[Partition]] = {name: set() for name in names}
    for topic in TOPICS:
        for number in range(draw(st.integers(0, 8))):
            owner = draw(st.sampled_from([None, *names]))
            if owner is not None:
                past[owner].add(Partition(topic, number))
    members = {name: Subscriber(topics[name], frozenset(past[name])) for name in names}
    read = frozenset().union(*topics.values())
    return members, {topic: count for topic, count in counts.items() if topic in read}


def sizes(assigned: Mapping[str, Assigned]) -> list[int]:
    return [len(each) for each in assigned.values()]


@pytest.mark.parametrize("name", ASSIGNORS)
@given(situations())
def test_every_partition_goes_to_one_member_that_reads_its_topic(
    name: str, situation: tuple[dict[str, Subscriber], dict[bytes, int]]
) -> None:
    members, partitions = situation
    assigned = ASSIGNORS[name](members, partitions)
    assert assigned.keys() == members.keys()
    assert sum(sizes(assigned)) == sum(partitions.values())
    assert frozenset().union(*assigned.values()) == {
        Partition(topic, number) for topic, count in partitions.items() for number in range(count)
    }
    assert all(each.topic_id in members[who].topic_ids for who, mine in assigned.items() for each in mine)


@given(situations(same_topics=True))
def test_uniform_is_balanced_within_one_partition(
    situation: tuple[dict[str, Subscriber], dict[bytes, int]],
) -> None:
    found = sizes(ASSIGNORS["uniform"](*situation))
    assert max(found) - min(found) <= 1


@given(situations())
def test_uniform_cannot_be_improved_by_moving_a_partition(
    situation: tuple[dict[str, Subscriber], dict[bytes, int]],
) -> None:
    members, partitions = situation
    assigned = ASSIGNORS["uniform"](members, partitions)
    for one, other in combinations(members, 2):
        for many, few in ((one, other), (other, one)):
            could_move = any(each.topic_id in members[few].topic_ids for each in assigned[many])
            assert not could_move or len(assigned[many]) - len(assigned[few]) <= 1


@given(situations())
def test_a_uniform_assignment_is_sticky(
    situation: tuple[dict[str, Subscriber], dict[bytes, int]],
) -> None:
    members, partitions = situation
    first = ASSIGNORS["uniform"](members, partitions)
    again = {who: member._replace(assigned=first[who]) for who, member in members.items()}
    assert ASSIGNORS["uniform"](again, partitions) == first


@given(situations(same_topics=True))
@settings(max_examples=50)
def test_a_newcomer_gets_its_share_and_nothing_else_moves(
    situation: tuple[dict[str, Subscriber], dict[bytes, int]],
) -> None:
    members, partitions = situation
    first = ASSIGNORS["uniform"](members, partitions)
    topics = next(iter(members.values())).topic_ids
    more = {who: member._replace(assigned=first[who]) for who, member in members.items()}
    second = ASSIGNORS["uniform"]({**more, "new": Subscriber(topics, NOTHING)}, partitions)
    assert all(second[who] <= first[who] for who in members)
    assert len(second["new"]) == sum(partitions.values()) // (len(members) + 1)


@given(st.integers(1, 9), st.integers(1, 6))
def test_range_co_partitions_topics_of_the_same_size(count: int, size: int) -> None:
    members = {f"m{number}": Subscriber(frozenset(TOPICS), NOTHING) for number in range(size)}
    assigned = ASSIGNORS["range"](members, dict.fromkeys(TOPICS, count))
    for mine in assigned.values():
        by_topic = [{each.number for each in mine if each.topic_id == topic} for topic in TOPICS]
        assert all(numbers == by_topic[0] for numbers in by_topic)
        assert not by_topic[0] or max(by_topic[0]) - min(by_topic[0]) + 1 == len(by_topic[0])


def test_range_orders_static_members_by_instance_id() -> None:
    topics = frozenset(TOPICS[:1])
    before = {"x": Subscriber(topics, NOTHING, "1"), "y": Subscriber(topics, NOTHING, "2")}
    after = {
        "z": Subscriber(topics, NOTHING, "1"),
        "a": Subscriber(topics, NOTHING, "2"),
        "0": Subscriber(topics, NOTHING),
    }
    assigned = ASSIGNORS["range"]
    assert assigned(before, {TOPICS[0]: 2})["x"] == assigned(after, {TOPICS[0]: 3})["z"] == {Partition(TOPICS[0], 0)}
