from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.election import settle
from ottla.cluster.reassignment import advance, begin, cancel
from ottla.cluster.state import NO_NODE
from ottla.core.errors import ApiError, InvalidReplicaAssignment, NoReassignmentInProgress

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


def _moved_and_led_by_the_new() -> PartitionState:
    """On its way from 1 to 2 and 3; 1 has died, 2 leads and has acknowledged records that nobody else has."""
    state = begin(partition((1,)), (2, 3), ALL)
    return replace(state, isr=(2,), leader=2, leader_epoch=1)


def test_a_cancel_that_would_need_an_unclean_election_is_refused() -> None:
    with pytest.raises(InvalidReplicaAssignment, match="unclean leader election"):
        cancel(_moved_and_led_by_the_new(), brokers(2, 3))
    with pytest.raises(InvalidReplicaAssignment, match="unclean leader election"):
        cancel(_moved_and_led_by_the_new(), ALL)


def test_a_cancel_keeps_the_new_replica_while_the_old_one_in_sync_is_away() -> None:
    state = replace(begin(partition((1,)), (2, 3), ALL), isr=(1, 2))

    with pytest.raises(InvalidReplicaAssignment, match="unclean leader election"):
        cancel(state, brokers(2, 3))
    assert cancel(state, brokers(1, 2, 3)).replicas == (1,)


def test_a_redirected_move_keeps_given_up_replicas_in_sync_until_the_target_is() -> None:
    redirected = begin(_moved_and_led_by_the_new(), (3, 4), ALL)

    assert (redirected.leader, redirected.isr) == (2, (2,))
    assert (redirected.replicas, redirected.target) == ((3, 4, 1, 2), (3, 4))
    assert advance(replace(redirected, isr=(2, 3)), ALL).leader == 2
    done = advance(replace(redirected, isr=(2, 3, 4)), ALL)
    assert (done.replicas, set(done.isr), done.leader) == ((3, 4), {3, 4}, 3)


def test_a_move_redirected_to_where_it_began_ends_when_that_replica_is_in_sync_again() -> None:
    back = begin(_moved_and_led_by_the_new(), (1,), brokers(2, 3))

    assert (back.leader, back.isr) == (2, (2,))
    assert advance(back, ALL) == back
    done = advance(replace(back, isr=(2, 1)), ALL)
    assert (done.replicas, done.isr, done.is_reassigning) == ((1,), (1,), False)


def test_a_redirected_move_can_still_be_cancelled() -> None:
    redirected = begin(replace(_moved_and_led_by_the_new(), isr=(2, 1)), (3, 4), ALL)

    back = cancel(redirected, ALL)
    assert (back.replicas, back.isr, back.leader) == ((1,), (1,), 1)


def test_old_replicas_stay_until_every_target_replica_is_in_sync() -> None:
    shrinking = replace(begin(partition((1, 2, 3)), (1, 2), ALL), isr=(1, 3))

    assert advance(shrinking, ALL) == shrinking


@st.composite
def operations(draw: st.DrawFn) -> list[tuple[str, object]]:
    nodes = st.integers(1, 6)
    one = st.one_of(
        st.tuples(st.just("begin"), targets),
        st.tuples(st.just("cancel"), st.none()),
        st.tuples(st.just("die"), nodes),
        st.tuples(st.just("return"), nodes),
        st.tuples(st.just("join"), nodes),
        st.tuples(st.just("leave"), nodes),
        st.tuples(st.just("controller"), st.none()),
    )
    return draw(st.lists(one, max_size=25))


@given(operations())
def test_whatever_is_moved_redirected_and_cancelled_a_replica_in_sync_remains(history: list[tuple[str, object]]) -> None:
    state, present = partition((1, 2)), set(range(1, 7))
    for what, about in history:
        before, there = state, brokers(*present)
        try:
            match what, about:
                case "begin", list(target):
                    state = begin(state, target, there)
                case "cancel", _:
                    state = cancel(state, there)
                case "die", int(node):
                    present.discard(node)
                case "return", int(node):
                    present.add(node)
                case "join", int(node) if state.leader in present & set(state.isr) and node in present:
                    state = replace(state, isr=tuple(n for n in state.replicas if n in (*state.isr, node)))
                case "leave", int(node) if state.leader in present & set(state.isr) and node != state.leader:
                    state = replace(state, isr=tuple(n for n in state.isr if n != node))
                case "controller", _:
                    state = advance(settle(state, there), there)
        except ApiError:
            assert state == before
        assert state.isr
        assert set(state.isr) <= set(state.replicas)
        if what in ("begin", "cancel", "controller"):
            assert set(state.isr) <= set(before.isr)
            if set(before.isr) & present:
                assert set(state.isr) & present, "the only replica in sync that is there was given up"
        assert state.leader == NO_NODE or state.leader in state.isr
