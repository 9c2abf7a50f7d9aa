from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.assignment import Load, assign
from ottla.core.errors import InvalidReplicationFactor

from .making import brokers, partition

sizes = st.integers(1, 12).flatmap(
    lambda nodes: st.tuples(st.just(nodes), st.integers(1, nodes), st.integers(1, 60), st.integers(0, 4))
)


@given(sizes)
def test_every_partition_is_on_as_many_different_nodes_as_asked_for(size: tuple[int, int, int, int]) -> None:
    nodes, factor, count, _ = size

    placed = assign(range(count), factor, brokers(*range(nodes)), Load())

    assert len(placed) == count
    assert all(len(set(each)) == factor and set(each) <= set(range(nodes)) for each in placed)


@given(sizes)
def test_no_node_holds_or_leads_much_more_than_another(size: tuple[int, int, int, int]) -> None:
    nodes, factor, count, _ = size

    placed = assign(range(count), factor, brokers(*range(nodes)), Load())

    held = Counter(dict.fromkeys(range(nodes), 0))
    led = Counter(dict.fromkeys(range(nodes), 0))
    for each in placed:
        held.update(each)
        led.update(each[:1])
    assert max(held.values()) - min(held.values()) <= 1
    assert max(led.values()) - min(led.values()) <= 2


@given(sizes)
def test_a_partition_is_on_as_many_racks_as_there_are(size: tuple[int, int, int, int]) -> None:
    nodes, factor, count, racks = size
    rack_of = {node: f"rack-{node % (racks + 1)}" for node in range(nodes)}

    placed = assign(range(count), factor, brokers(*range(nodes), racks=rack_of), Load())

    wanted = min(factor, len(set(rack_of.values())))
    assert all(len({rack_of[node] for node in each}) == wanted for each in placed)


def test_racks_count_only_if_every_node_knows_its_own() -> None:
    placed = assign(range(4), 1, brokers(1, 2, racks={1: "a"}), Load())

    assert Counter(node for each in placed for node in each) == {1: 2, 2: 2}


def test_new_partitions_go_to_the_nodes_with_the_fewest() -> None:
    load = Load([partition((1, 2), partition=index) for index in range(10)])

    placed = assign(range(5), 1, brokers(1, 2, 3), load)

    assert placed == [(3,)] * 5


def test_the_partitions_of_a_dead_leader_go_to_different_nodes() -> None:
    placed = assign(range(40), 3, brokers(1, 2, 3, 4), Load())

    heirs = Counter(each[1] for each in placed if each[0] == 1)
    assert max(heirs.values()) <= 5


def test_a_leaving_node_gets_no_partitions() -> None:
    assert assign(range(3), 1, brokers(1, 2, draining=[1]), Load()) == [(2,)] * 3


def test_more_replicas_than_nodes_are_refused_with_kafkas_message() -> None:
    with pytest.raises(InvalidReplicationFactor, match="only 2 broker"):
        assign(range(1), 3, brokers(1, 2), Load())
