"""Balancing partitions over nodes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.clusters.spreading import rotated, spread
from ottla.client.view import BrokerAddress, PartitionView
from ottla.core.errors import OttlaError
from ottla.core.ids import TopicPartition


def brokers(*ids: int, racks: str = "") -> dict[int, BrokerAddress]:
    return {each: BrokerAddress(each, "h", each, racks[at] if racks else None) for at, each in enumerate(ids)}


def held(*replicas: tuple[int, ...], topic: str = "t") -> dict[TopicPartition, PartitionView]:
    return {
        TopicPartition(topic, index): PartitionView(leader=nodes[0], leader_epoch=0, replicas=nodes, isr=nodes)
        for index, nodes in enumerate(replicas)
    }


def test_partitions_use_all_named_nodes_and_each_leads_some() -> None:
    assert rotated((1, 2, 4), 4) == [(1, 2, 4), (2, 4, 1), (4, 1, 2), (1, 2, 4)]
    assert rotated((5,), 2) == [(5,), (5,)]


def test_a_balanced_assignment_does_not_change() -> None:
    assert spread(held((1, 2), (2, 3), (3, 1)), brokers(1, 2, 3), [1, 2, 3]) == {}
    assert spread(held((1,), (1,), (2,), (2,)), brokers(1, 2), [1, 2]) == {}


def test_a_new_node_gets_its_share_with_minimal_movement() -> None:
    before = held((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2))
    moves = spread(before, brokers(1, 2, 3, 4), [1, 2, 3, 4])

    after = {where: each.replicas for where, each in before.items()} | moves
    assert Counter(node for replicas in after.values() for node in replicas) == {1: 3, 2: 3, 3: 3, 4: 3}
    assert Counter(replicas[0] for replicas in after.values()) == {1: 1, 2: 1, 3: 1, 4: 1}
    assert sum(len({*after[where]} - {*before[where].replicas}) for where in after) == 3


def test_single_partition_topics_are_balanced_too() -> None:
    before = {where: each for name in "abcd" for where, each in held((1,), topic=name).items()}
    moves = spread(before, brokers(1, 2), [1, 2])
    assert list(moves.values()) == [(2,), (2,)]


def test_a_node_that_is_not_named_loses_its_replicas() -> None:
    assert spread(held((1, 2), (2, 1)), brokers(1, 2, 3), [2, 3]) == {
        TopicPartition("t", 0): (3, 2),
        TopicPartition("t", 1): (2, 3),
    }


def test_replicas_stay_on_different_racks() -> None:
    # The new node has nothing, and is on the rack of the node that has too much.
    moves = spread(held((1, 3), (1, 3), (1, 3), (1, 3)), brokers(1, 2, 3, racks="aab"), [1, 2, 3])
    assert all(len({*replicas} & {1, 2}) == 1 for replicas in moves.values())
    assert len(moves) >= 2


def test_fewer_nodes_than_replicas_are_refused() -> None:
    with pytest.raises(OttlaError, match="t-0 is on every other node already"):
        spread(held((1, 2)), brokers(1, 2, 3), [3])


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.permutations([1, 2, 3, 4, 5]), st.integers(1, 3)), max_size=20),
    st.sets(st.integers(1, 5), min_size=3),
)
def test_every_topic_is_balanced_and_replication_factors_stay(
    given_partitions: list[tuple[str, list[int], int]], over: set[int]
) -> None:
    before = {
        TopicPartition(topic, index): PartitionView(order[0], 0, tuple(order[:factor]), tuple(order[:factor]))
        for index, (topic, order, factor) in enumerate(given_partitions)
    }
    after = {where: each.replicas for where, each in before.items()} | spread(before, brokers(1, 2, 3, 4, 5), over)

    for where, replicas in after.items():
        assert len({*replicas}) == len(before[where].replicas)
        assert {*replicas} <= over
    for topic in "ab":
        counted = Counter(node for where, nodes in after.items() if where.topic == topic for node in nodes)
        assert max(counted[node] for node in over) - min(counted[node] for node in over) <= 1
    assert spread(_views(after), brokers(1, 2, 3, 4, 5), over) == {}


def _views(replicas: dict[TopicPartition, tuple[int, ...]]) -> dict[TopicPartition, PartitionView]:
    return {where: PartitionView(nodes[0], 0, nodes, nodes) for where, nodes in replicas.items()}
