from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.reassignment import advance, begin, cancel
from ottla.core.errors import InvalidReplicaAssignment, NoReassignmentInProgress

from .making import brokers, partition

if TYPE_CHECKING:
    from ottla.cluster.state import PartitionState

ALL = brokers(*range(1, 7))
targets = st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True)


def test_while_it_moves_the_new_are_there_as_well_as_the_old() -> None:
    state = begin(partition((1, 2, 3)), (3, 4, 5), ALL)

    assert state.replicas == (3, 4, 5, 1, 2)
    assert (state.adding, state.removing, state.target) == ((4, 5), (1, 2), (3, 4, 5))
    assert (state.leader, state.isr) == (1, (1, 2, 3))


def test_the_old_go_only_when_every_new_one_is_in_sync() -> None:
    state = begin(partition((1, 2, 3)), (3, 4, 5), ALL)

    assert advance(_in_sync(state, 1, 2, 3, 4), ALL) == _in_sync(state, 1, 2, 3, 4)
    done = advance(_in_sync(state, 1, 2, 3, 4, 5), ALL)
    assert (done.replicas, done.isr, done.is_reassigning) == ((3, 4, 5), (3, 4, 5), False)
    assert (done.leader, done.leader_epoch) == (3, 1)


def _in_sync(state: PartitionState, *isr: int) -> PartitionState:
    return replace(state, isr=isr)


@given(targets, targets)
def test_a_move_ends_where_it_was_last_asked_to(first: list[int], second: list[int]) -> None:
    state = begin(begin(partition((1, 2, 3)), first, ALL), second, ALL)

    done = advance(_in_sync(state, *state.replicas), ALL)

    assert done.replicas == tuple(second)
    assert not done.is_reassigning
    assert done.leader in second
    assert set(done.isr) == set(second)


@given(targets)
def test_a_move_taken_back_leaves_it_where_it_was(target: list[int]) -> None:
    before = partition((1, 2, 3))
    moving = begin(before, target, ALL)

    if not moving.is_reassigning:
        return
    back = cancel(_in_sync(moving, *moving.replicas), ALL)
    assert set(back.replicas) == {1, 2, 3}
    assert set(back.isr) <= {1, 2, 3}
    assert back.leader in (1, 2, 3)


def test_what_does_not_move_cannot_be_taken_back() -> None:
    with pytest.raises(NoReassignmentInProgress):
        cancel(partition(), ALL)


@pytest.mark.parametrize("target", [(), (1, 1), (1, 99)])
def test_a_target_that_cannot_be_is_refused(target: tuple[int, ...]) -> None:
    with pytest.raises(InvalidReplicaAssignment):
        begin(partition(), target, ALL)


def test_a_node_that_is_away_may_stay_but_cannot_be_added() -> None:
    assert begin(partition((1, 2, 3)), (1, 2), brokers(1, 2)).removing == (3,)
    assert begin(partition((1, 2, 3)), (3, 1, 2), brokers(1, 2)).replicas == (3, 1, 2)
