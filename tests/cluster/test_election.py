from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.election import elect_anyone, first_state, handed_over, prefer, settle, without
from ottla.cluster.state import NO_NODE, EligibleLeadersNotAvailable, PartitionState, PreferredLeaderNotAvailable
from ottla.core.errors import ElectionNotNeeded

from .making import TOPIC, brokers, partition


@st.composite
def partitions(draw: st.DrawFn) -> PartitionState:
    replicas = draw(st.permutations(range(5)).map(lambda nodes: tuple(nodes[:3])))
    isr = tuple(draw(st.sets(st.sampled_from(replicas), min_size=1)))
    leader = draw(st.sampled_from((*isr, NO_NODE)))
    return PartitionState(TOPIC, "t", 0, replicas, leader, draw(st.integers(0, 9)), isr)


some_nodes = st.sets(st.integers(0, 4))


@given(partitions(), some_nodes)
def test_only_one_that_is_there_and_was_in_sync_leads(state: PartitionState, present: set[int]) -> None:
    after = settle(state, brokers(*present))

    assert after.leader == NO_NODE or (after.leader in present and after.leader in state.isr)
    assert (after.leader != NO_NODE) == bool(present & set(state.isr))


@given(partitions(), some_nodes)
def test_the_epoch_grows_exactly_when_the_leader_changes(state: PartitionState, present: set[int]) -> None:
    after = settle(state, brokers(*present))

    assert after.leader_epoch - state.leader_epoch == (after.leader != state.leader)


@given(partitions(), some_nodes)
def test_nobody_comes_to_be_in_sync_by_an_election(state: PartitionState, present: set[int]) -> None:
    after = settle(state, brokers(*present))

    assert set(after.isr) <= set(state.isr)
    assert after.isr


@given(partitions(), some_nodes)
def test_what_is_settled_stays(state: PartitionState, present: set[int]) -> None:
    after = settle(state, brokers(*present))

    assert settle(after, brokers(*present)) == after


@given(partitions(), st.lists(some_nodes, max_size=8))
def test_whatever_comes_and_goes_the_last_in_sync_are_never_forgotten(
    state: PartitionState, times: list[set[int]]
) -> None:
    holders = set(state.isr)
    for present in times:
        state = settle(state, brokers(*present))
        assert set(state.isr) <= holders
        holders = set(state.isr)


def test_the_first_in_sync_in_the_order_of_replicas_is_next() -> None:
    state = partition((3, 1, 2), isr=(2, 1, 3), leader=3, leader_epoch=4)

    after = settle(state, brokers(1, 2))

    assert (after.leader, after.leader_epoch, after.isr) == (1, 5, (2, 1))


def test_a_replica_that_lags_leads_only_where_that_is_allowed() -> None:
    state = partition((1, 2), isr=(1,), leader=1)

    assert settle(state, brokers(2)).leader == NO_NODE
    unclean = settle(state, brokers(2), allow_unclean=True)
    assert (unclean.leader, unclean.isr, unclean.leader_epoch) == (2, (2,), 1)


def test_a_leader_that_is_leaving_hands_over_if_it_can() -> None:
    state = partition((1, 2))

    assert settle(state, brokers(1, 2, draining=[1])).leader == 2
    assert settle(state, brokers(1, draining=[1])).leader == 1


def test_the_preferred_leader_leads_when_asked_to_and_only_if_it_can() -> None:
    state = partition((1, 2, 3), leader=2, leader_epoch=3)

    assert replace(prefer(state, brokers(1, 2, 3)), leader_epoch=3) == replace(state, leader=1)
    with pytest.raises(ElectionNotNeeded):
        prefer(partition((1, 2)), brokers(1, 2))
    with pytest.raises(PreferredLeaderNotAvailable):
        prefer(state, brokers(2, 3))
    with pytest.raises(PreferredLeaderNotAvailable):
        prefer(replace(state, isr=(2, 3)), brokers(1, 2, 3))


def test_an_operator_may_let_anyone_lead_if_nobody_does() -> None:
    leaderless = partition((1, 2), isr=(1,), leader=NO_NODE)

    assert elect_anyone(leaderless, brokers(2)).leader == 2
    with pytest.raises(ElectionNotNeeded):
        elect_anyone(partition((1, 2)), brokers(1, 2))
    with pytest.raises(EligibleLeadersNotAvailable):
        elect_anyone(leaderless, brokers(3))


def test_the_last_in_sync_that_steps_back_leads_again_only_in_an_epoch_of_its_own() -> None:
    alone = partition((1, 2), isr=(1,), leader_epoch=4)

    stepped_back = without(alone, 1, brokers(1, 2))
    assert (stepped_back.leader, stepped_back.isr, stepped_back.leader_epoch) == (NO_NODE, (1,), 5)
    assert settle(stepped_back, brokers(1, 2)).leader_epoch == 6


def test_one_that_steps_back_neither_leads_nor_counts() -> None:
    state = partition((1, 2, 3))

    after = without(state, 1, brokers(1, 2, 3))
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 3), 1)
    assert without(partition((1, 2), isr=(2,), leader=2), 1, brokers(1, 2)).leader == 2


def test_a_node_whose_log_failed_hands_over_to_another_in_sync_replica() -> None:
    leader = handed_over(partition((1, 2, 3)), 1, brokers(1, 2, 3))
    assert (leader.leader, leader.isr, leader.leader_epoch) == (2, (2, 3), 1)

    follower = handed_over(partition((1, 2, 3)), 3, brokers(1, 2, 3))
    assert (follower.leader, follower.isr, follower.leader_epoch) == (1, (1, 2), 0)


@pytest.mark.parametrize("isr", [(1,), (1, 3)])
def test_it_stays_if_no_other_in_sync_replica_is_there(isr: tuple[int, ...]) -> None:
    state = partition((1, 2, 3), isr=isr)

    assert handed_over(state, 1, brokers(1, 2)) is state


def test_a_new_partition_begins_with_those_that_are_there() -> None:
    assert first_state(TOPIC, "t", 0, (2, 1), brokers(1)) == PartitionState(TOPIC, "t", 0, (2, 1), 1, 0, (1,))
