from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.election import (
    StartingReplica,
    elect_any,
    first_state,
    given_up,
    prefer,
    returned,
    settle,
    with_isr,
    without,
)
from ottla.cluster.state import (
    LOST_FOLDER,
    NO_NODE,
    EligibleLeadersNotAvailable,
    PartitionState,
    PreferredLeaderNotAvailable,
)
from ottla.core.errors import ElectionNotNeeded

from .making import TOPIC, brokers, offline_at, partition


@st.composite
def partitions(draw: st.DrawFn) -> PartitionState:
    replicas = draw(st.permutations(range(5)).map(lambda nodes: tuple(nodes[:3])))
    isr = tuple(draw(st.sets(st.sampled_from(replicas), min_size=1)))
    leader = draw(st.sampled_from((*isr, NO_NODE)))
    return PartitionState(TOPIC, "t", 0, replicas, leader, draw(st.integers(0, 9)), isr)


some_nodes = st.sets(st.integers(0, 4))


@given(partitions(), some_nodes)
def test_only_an_available_in_sync_replica_leads(state: PartitionState, present: set[int]) -> None:
    after = settle(state, brokers(*present))

    assert after.leader == NO_NODE or (after.leader in present and after.leader in state.isr)
    assert (after.leader != NO_NODE) == bool(present & set(state.isr))


@given(partitions(), some_nodes)
def test_the_epoch_grows_exactly_when_the_leader_changes(state: PartitionState, present: set[int]) -> None:
    after = settle(state, brokers(*present))

    assert after.leader_epoch - state.leader_epoch == (after.leader != state.leader)


@given(partitions(), some_nodes)
def test_an_election_never_adds_to_the_isr(state: PartitionState, present: set[int]) -> None:
    after = settle(state, brokers(*present))

    assert set(after.isr) <= set(state.isr)
    assert after.isr


@given(partitions(), some_nodes)
def test_an_election_without_cause_changes_nothing(state: PartitionState, present: set[int]) -> None:
    after = settle(state, brokers(*present))

    assert settle(after, brokers(*present)) == after


@given(partitions(), st.lists(some_nodes, max_size=8))
def test_the_last_in_sync_replicas_are_never_removed(state: PartitionState, times: list[set[int]]) -> None:
    holders = set(state.isr)
    for present in times:
        state = settle(state, brokers(*present))
        assert set(state.isr) <= holders
        holders = set(state.isr)


def test_the_first_in_sync_replica_in_assignment_order_is_elected() -> None:
    state = partition((3, 1, 2), isr=(2, 1, 3), leader=3, leader_epoch=4)

    after = settle(state, brokers(1, 2))

    assert (after.leader, after.leader_epoch, after.isr) == (1, 5, (2, 1))


def test_an_out_of_sync_replica_leads_only_if_unclean_elections_are_allowed() -> None:
    state = partition((1, 2), isr=(1,), leader=1)

    assert settle(state, brokers(2)).leader == NO_NODE
    unclean = settle(state, brokers(2), allow_unclean=True)
    assert (unclean.leader, unclean.isr, unclean.leader_epoch) == (2, (2,), 1)


def test_a_leaving_leader_hands_over_if_it_can() -> None:
    state = partition((1, 2))

    assert settle(state, brokers(1, 2, draining=[1])).leader == 2
    assert settle(state, brokers(1, draining=[1])).leader == 1


def test_a_preferred_election_elects_the_preferred_leader_if_in_sync() -> None:
    state = partition((1, 2, 3), leader=2, leader_epoch=3)

    assert replace(prefer(state, brokers(1, 2, 3)), leader_epoch=3) == replace(state, leader=1)
    with pytest.raises(ElectionNotNeeded):
        prefer(partition((1, 2)), brokers(1, 2))
    with pytest.raises(PreferredLeaderNotAvailable):
        prefer(state, brokers(2, 3))
    with pytest.raises(PreferredLeaderNotAvailable):
        prefer(replace(state, isr=(2, 3)), brokers(1, 2, 3))


def test_an_operator_may_force_an_unclean_election_if_there_is_no_leader() -> None:
    leaderless = partition((1, 2), isr=(1,), leader=NO_NODE)

    assert elect_any(leaderless, brokers(2)).leader == 2
    with pytest.raises(ElectionNotNeeded):
        elect_any(partition((1, 2)), brokers(1, 2))
    with pytest.raises(EligibleLeadersNotAvailable):
        elect_any(leaderless, brokers(3))


def test_the_last_in_sync_replica_that_resigned_leads_again_only_in_a_new_epoch() -> None:
    alone = partition((1, 2), isr=(1,), leader_epoch=4)

    stepped_back = without(alone, 1, brokers(1, 2))
    assert (stepped_back.leader, stepped_back.isr, stepped_back.leader_epoch) == (NO_NODE, (1,), 5)
    assert settle(stepped_back, brokers(1, 2)).leader_epoch == 6


def test_a_replica_that_resigned_neither_leads_nor_counts_as_in_sync() -> None:
    state = partition((1, 2, 3))

    after = without(state, 1, brokers(1, 2, 3))
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 3), 1)
    assert without(partition((1, 2), isr=(2,), leader=2), 1, brokers(1, 2)).leader == 2


def test_an_offline_replica_neither_leads_nor_counts_as_in_sync_while_another_does() -> None:
    there = offline_at(1, brokers(1, 2, 3))

    after = settle(partition((1, 2, 3)), there)

    assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 3), 1)
    with pytest.raises(PreferredLeaderNotAvailable):
        prefer(partition((1, 2, 3), leader=2), there)


def test_an_offline_replica_does_not_remove_an_absent_one_from_the_isr() -> None:
    state = partition((4, 2, 5), isr=(4, 5), leader=4, leader_epoch=1)

    waiting = settle(state, offline_at(4, brokers(2, 4)))
    assert (waiting.leader, waiting.isr) == (NO_NODE, (4, 5))

    back = settle(waiting, offline_at(4, brokers(2, 4, 5)))
    assert (back.leader, back.isr) == (5, (5,))


def test_the_last_in_sync_replica_leads_again_once_it_is_online_in_another_epoch() -> None:
    state = partition((1, 2), isr=(1,))

    offline = settle(state, offline_at(1, brokers(1, 2)))
    assert (offline.leader, offline.isr, offline.leader_epoch) == (NO_NODE, (1,), 1)
    online = settle(offline, brokers(1, 2))
    assert (online.leader, online.isr, online.leader_epoch) == (1, (1,), 2)


def test_an_unclean_election_elects_an_online_replica() -> None:
    state = partition((1, 2, 3), isr=(1,), leader=NO_NODE)

    assert elect_any(state, offline_at(2, offline_at(1, brokers(1, 2, 3)))).leader == 3
    with pytest.raises(EligibleLeadersNotAvailable):
        elect_any(state, offline_at(1, brokers(1)))


def test_a_replica_that_may_lack_records_leaves_the_isr_even_if_the_others_are_absent() -> None:
    alone = given_up(partition((1, 2, 3), leader=NO_NODE), 1, {})
    assert (alone.leader, alone.isr) == (NO_NODE, (2, 3))
    assert settle(alone, brokers(1)).leader == NO_NODE
    assert settle(alone, brokers(1, 3)).leader == 3

    led = given_up(partition((1, 2, 3)), 1, brokers(1, 2, 3))
    assert (led.leader, led.isr, led.leader_epoch) == (2, (2, 3), 1)


def test_the_last_replica_that_may_lack_records_stays_and_leads_in_a_new_epoch() -> None:
    state = partition((1, 2, 3))
    for node in (1, 2, 3):  # the power of all machines was cut
        state = given_up(state, node, {})
    assert (state.leader, state.isr) == (NO_NODE, (3,))

    led = settle(state, brokers(1, 2, 3))
    assert (led.leader, led.isr, led.leader_epoch) == (3, (3,), 2)


def test_a_replica_that_may_lack_records_does_not_leave_to_one_that_lost_them_all() -> None:
    folders = ((1, "a"), (2, "b"))
    state = partition((1, 2), isr=(1, 2), folders=folders)

    replaced = given_up(state, 1, brokers(1, 2, folders={1: "a", 2: "another"}))
    assert replaced.isr == (1, 2)
    gone = given_up(partition((1, 2), isr=(1, 2), folders=((1, "a"), (2, LOST_FOLDER))), 1, {})
    assert gone.isr == (1, 2)


SAFE = {"min_isr": 2, "folders": ((1, "a"), (2, "b"), (3, "c"))}
THERE = {1: "a", 2: "b", 3: "c"}


def test_members_that_leave_an_isr_that_is_too_small_are_eligible_until_it_has_enough_again() -> None:
    pair = settle(partition((1, 2, 3), **SAFE), brokers(1, 2, folders=THERE))
    assert (pair.isr, pair.eligible) == ((1, 2), ())  # 3 left, and two are enough

    alone = settle(pair, brokers(1, folders=THERE))
    assert (alone.leader, alone.isr, alone.eligible) == (1, (1,), (2,))
    assert alone.folder_of(2) == "b"

    enough = with_isr(alone, (1, 3), brokers(1, 3, folders=THERE))
    assert (enough.isr, enough.eligible) == ((1, 3), ())


def test_an_eligible_replica_leads_if_the_last_in_sync_replica_is_gone_or_has_lost_records() -> None:
    alone = partition((1, 2, 3), isr=(1,), eligible=(2,), **SAFE)

    elected = settle(alone, brokers(2, 3, folders=THERE))
    assert (elected.leader, elected.isr, elected.eligible) == (2, (2,), (1,))

    lossy = given_up(alone, 1, {})
    assert (lossy.leader, lossy.isr, lossy.eligible) == (NO_NODE, (2,), ())
    assert settle(lossy, brokers(1, 3, folders=THERE)).leader == NO_NODE


def test_an_eligible_replica_that_lost_records_or_its_folder_is_not_elected() -> None:
    alone = partition((1, 2, 3), isr=(1,), eligible=(2,), leader=NO_NODE, **SAFE)

    assert settle(alone, brokers(2, folders={2: "another"})).leader == NO_NODE
    assert given_up(alone, 2, {}).eligible == ()
    assert returned(alone, 2, StartingReplica("b", is_empty=True), {}).eligible == ()
    assert with_isr(partition((1, 2, 3), isr=(1, 2), **SAFE), (1,), brokers(1, 2, folders=THERE), {2}).eligible == ()


def test_lowering_min_insync_replicas_clears_eligible_replicas() -> None:
    alone = partition((1, 2, 3), isr=(1,), eligible=(2,), **SAFE)

    assert settle(replace(alone, min_isr=1), brokers(1, folders=THERE)).eligible == ()


def test_an_unclean_election_clears_eligible_replicas() -> None:
    lost = partition((1, 2, 3), isr=(1,), eligible=(2,), leader=NO_NODE, **SAFE)

    assert elect_any(lost, brokers(3, folders=THERE)).eligible == ()


@given(partitions(), st.lists(some_nodes, max_size=6))
def test_only_replicas_with_all_committed_records_lead(state: PartitionState, times: list[set[int]]) -> None:
    """Nothing is committed while there are eligible replicas; otherwise the whole ISR commits."""
    state = replace(state, min_isr=2)
    have_all = set(state.isr)
    for present in times:
        state = settle(state, brokers(*present))
        if not state.eligible and state.leader != NO_NODE:
            have_all = set(state.isr)
        assert have_all.issuperset((*state.isr, *state.eligible))


def test_a_returning_replica_may_lack_records_only_with_the_folder_that_was_in_sync() -> None:
    state = partition((1, 2), isr=(1, 2), leader=NO_NODE, folders=((1, "a"), (2, "b")))

    assert returned(state, 1, StartingReplica("a", may_lack_records=True), {}).isr == (2,)
    assert returned(state, 1, StartingReplica("a"), {}).isr == (1, 2)
    assert returned(state, 1, StartingReplica("older copy", may_lack_records=True), {}).isr == (1, 2)


def test_the_isr_of_a_new_partition_has_the_available_replicas() -> None:
    assert first_state(TOPIC, "t", 0, (2, 1), brokers(1)) == PartitionState(TOPIC, "t", 0, (2, 1), 1, 0, (1,))
