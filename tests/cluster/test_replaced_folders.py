"""A replica is in sync only with the folder with which it joined the ISR: pure rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.election import StartingReplica, elect_any, first_state, prefer, returned, settle, with_isr, without
from ottla.cluster.leaderless import leaderless, why_leaderless
from ottla.cluster.nodes import partition_data, read_partition
from ottla.cluster.reassignment import begin, cancel
from ottla.cluster.state import LOST_FOLDER, NO_NODE, ClusterView, PartitionState, PreferredLeaderNotAvailable
from ottla.core.errors import InvalidReplicaAssignment

from .making import TOPIC, brokers, partition

ALL = brokers(1, 2, 3, folders={1: "a", 2: "b", 3: "c"})
WIPED = brokers(1, 2, 3, folders={1: "another", 2: "b", 3: "c"})
FOLDERS = ((1, "a"), (2, "b"), (3, "c"))


def _last_in_sync(**known: object) -> PartitionState:
    """Node 1 was the last in the ISR, and is absent."""
    return partition(**{"isr": (1,), "leader": NO_NODE, "leader_epoch": 5, "folders": ((1, "a"),), **known})


def test_the_last_in_sync_replica_leads_again_only_with_its_folder() -> None:
    state = _last_in_sync()

    assert settle(state, WIPED) == state
    assert settle(state, ALL).leader == 1


def test_an_isr_member_with_another_folder_is_removed() -> None:
    state = partition(leader=1, folders=FOLDERS)

    after = settle(state, WIPED)

    assert (after.leader, after.isr, after.folders) == (2, (2, 3), FOLDERS[1:])


def test_a_replica_rejoins_with_its_current_folder() -> None:
    led = settle(partition(leader=1, folders=FOLDERS), WIPED)

    joined = with_isr(led, (1, 2, 3), WIPED)

    assert joined.folder_of(1) == "another"
    assert settle(replace(joined, isr=(1,), leader=NO_NODE), ALL).leader == NO_NODE


def test_a_preferred_leader_with_another_folder_does_not_lead() -> None:
    with pytest.raises(PreferredLeaderNotAvailable):
        prefer(partition(leader=2, folders=FOLDERS), WIPED)


def test_a_replica_with_another_folder_does_not_take_over_from_a_leaving_leader() -> None:
    state = partition(leader=2, isr=(1, 2), folders=FOLDERS[:2])

    left = without(state, 2, WIPED)

    assert (left.leader, left.isr) == (NO_NODE, (1, 2))
    assert settle(left, WIPED).leader == 2


def test_a_new_partition_records_the_folders_of_available_replicas() -> None:
    assert first_state(TOPIC, "t", 0, (1, 2, 3), ALL).folders == FOLDERS


def test_a_catalog_of_an_older_release_is_completed() -> None:
    after = settle(partition(), ALL)

    assert after.folders == FOLDERS
    assert (after.leader, after.leader_epoch) == (1, 0)


def test_an_empty_folder_is_not_adopted_for_a_catalog_of_an_older_release() -> None:
    unknown = _last_in_sync(folders=())

    lost = returned(unknown, 1, StartingReplica("a", is_empty=True), ALL)

    assert lost.folder_of(1) == LOST_FOLDER
    assert settle(lost, ALL).leader == NO_NODE
    assert returned(unknown, 1, StartingReplica("a"), ALL) == unknown


def test_a_replica_without_the_partitions_folder_does_not_lead() -> None:
    lost = returned(_last_in_sync(), 1, StartingReplica("a", is_empty=True), ALL)

    assert settle(lost, ALL).leader == NO_NODE
    assert returned(_last_in_sync(), 1, StartingReplica("another", is_empty=True), WIPED) == _last_in_sync()


def test_a_partition_that_never_had_a_leader_may_be_led_with_an_empty_folder() -> None:
    new = first_state(TOPIC, "t", 0, (1, 2), {})

    assert returned(new, 1, StartingReplica("a", is_empty=True), {1: ALL[1]}) == new
    assert settle(new, {1: ALL[1]}).leader == 1


def test_an_unclean_election_prefers_a_replica_that_may_have_records() -> None:
    elected = elect_any(_last_in_sync(), WIPED)

    assert (elected.leader, elected.isr, elected.folders) == (2, (2,), ((2, "b"),))
    only = elect_any(_last_in_sync(), brokers(1, folders={1: "another"}))
    assert (only.leader, only.folders) == (1, ((1, "another"),))


def test_a_cancelled_reassignment_does_not_fall_back_to_a_replica_with_another_folder() -> None:
    state = replace(begin(partition((1,)), (2, 3), ALL), isr=(1, 2), folders=FOLDERS[:2])

    with pytest.raises(InvalidReplicaAssignment, match="unclean leader election"):
        cancel(state, WIPED)


def test_the_reason_for_a_missing_leader_is_reported_with_a_remedy() -> None:
    view = ClusterView(
        WIPED, 2, {_last_in_sync().key: _last_in_sync(), partition(partition=1).key: partition(partition=1)}
    )

    [one] = leaderless(view)

    assert (one.topic, one.partition, one.replaced) == ("t", 0, (1,))
    assert "restarted with another data folder" in str(one)
    assert "ottla cluster elect t:0 --unclean" in str(one)
    assert "which are offline" in str(why_leaderless(_last_in_sync(), brokers(2, 3)))


def test_folders_are_kept_in_the_catalog_and_may_be_missing_there() -> None:
    for state in (partition(folders=FOLDERS), partition()):
        assert read_partition(state.key, "t", partition_data(state), 0) == state


some_folders = st.dictionaries(st.integers(1, 3), st.sampled_from(("a", "b", "c", "another")))


@given(st.lists(some_folders, max_size=8))
def test_no_replica_ever_leads_with_another_folder_than_it_joined_with(
    times: list[dict[int, str]],
) -> None:
    state = partition(folders=FOLDERS)
    for present in times:
        state = settle(state, brokers(*present, folders=present))
        assert set(state.folders) <= set(FOLDERS)
        assert state.isr
        assert state.leader == NO_NODE or present[state.leader] == dict(FOLDERS)[state.leader]
