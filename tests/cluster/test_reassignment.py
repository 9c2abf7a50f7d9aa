from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.election import settle
from ottla.cluster.reassignment import advance, begin, cancel
from ottla.cluster.state import NO_NODE
from ottla.core.errors import ApiError, InvalidReplicaAssignment, NoReassignmentInProgress

from .making import brokers, partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.cluster.state import PartitionState

ALL = brokers(*range(1, 7))
targets = st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True)


def test_a_reassignment_keeps_old_and_new_replicas() -> None:
    state = begin(partition((1, 2, 3)), (3, 4, 5), ALL)

    assert state.replicas == (3, 4, 5, 1, 2)
    assert (state.adding, state.removing, state.target) == ((4, 5), (1, 2), (3, 4, 5))
    assert (state.leader, state.isr) == (1, (1, 2, 3))


def test_old_replicas_are_removed_only_when_all_new_ones_are_in_sync() -> None:
    state = begin(partition((1, 2, 3)), (3, 4, 5), ALL)

    assert advance(_in_sync(state, 1, 2, 3, 4), ALL) == _in_sync(state, 1, 2, 3, 4)
    done = advance(_in_sync(state, 1, 2, 3, 4, 5), ALL)
    assert (done.replicas, done.isr, done.is_reassigning) == ((3, 4, 5), (3, 4, 5), False)
    assert (done.leader, done.leader_epoch) == (3, 1)


def _in_sync(state: PartitionState, *isr: int) -> PartitionState:
    return replace(state, isr=isr)


@given(targets, targets)
def test_a_redirected_reassignment_ends_at_the_last_target(first: list[int], second: list[int]) -> None:
    state = begin(begin(partition((1, 2, 3)), first, ALL), second, ALL)

    done = advance(_in_sync(state, *state.replicas), ALL)

    assert done.replicas == tuple(second)
    assert not done.is_reassigning
    assert done.leader in second
    assert set(done.isr) == set(second)


@given(targets)
def test_a_cancelled_reassignment_restores_the_original_replicas(target: list[int]) -> None:
    before = partition((1, 2, 3))
    moving = begin(before, target, ALL)

    if not moving.is_reassigning:
        return
    back = cancel(_in_sync(moving, *moving.replicas), ALL)
    assert set(back.replicas) == {1, 2, 3}
    assert set(back.isr) <= {1, 2, 3}
    assert back.leader in (1, 2, 3)


@given(targets, targets)
def test_removing_a_replica_begins_a_new_leader_epoch(first: list[int], second: list[int]) -> None:
    """Fetches that the removed replica sent before do not count if it is added again, with an empty log."""
    moving = begin(partition((1, 2, 3)), first, ALL)
    redirected = begin(moving, second, ALL)
    done = advance(_in_sync(redirected, *redirected.replicas), ALL)
    steps = [(moving, redirected), (redirected, done)]
    if moving.is_reassigning:
        steps.append((moving, cancel(moving, ALL)))

    for before, after in steps:
        has_removed = not set(before.replicas) <= set(after.replicas)
        assert not has_removed or after.leader_epoch > before.leader_epoch


def test_cancelling_without_a_reassignment_is_refused() -> None:
    with pytest.raises(NoReassignmentInProgress):
        cancel(partition(), ALL)


@pytest.mark.parametrize("target", [(), (1, 1), (1, 99)])
def test_an_invalid_target_is_refused(target: tuple[int, ...]) -> None:
    with pytest.raises(InvalidReplicaAssignment):
        begin(partition(), target, ALL)


def test_an_absent_node_may_stay_but_cannot_be_added() -> None:
    assert begin(partition((1, 2, 3)), (1, 2), brokers(1, 2)).removing == (3,)
    assert begin(partition((1, 2, 3)), (3, 1, 2), brokers(1, 2)).replicas == (3, 1, 2)


def _moved_and_led_by_the_new() -> PartitionState:
    """A reassignment from 1 to 2 and 3; 1 has died, 2 is leader and the only one with some acknowledged records."""
    state = begin(partition((1,)), (2, 3), ALL)
    return replace(state, isr=(2,), leader=2, leader_epoch=1)


def test_a_cancel_that_would_need_an_unclean_election_is_refused() -> None:
    with pytest.raises(InvalidReplicaAssignment, match="unclean leader election"):
        cancel(_moved_and_led_by_the_new(), brokers(2, 3))
    with pytest.raises(InvalidReplicaAssignment, match="unclean leader election"):
        cancel(_moved_and_led_by_the_new(), ALL)


def test_a_cancel_keeps_the_new_replica_while_the_old_in_sync_one_is_absent() -> None:
    state = replace(begin(partition((1,)), (2, 3), ALL), isr=(1, 2))

    with pytest.raises(InvalidReplicaAssignment, match="unclean leader election"):
        cancel(state, brokers(2, 3))
    assert cancel(state, brokers(1, 2, 3)).replicas == (1,)


def test_a_redirected_reassignment_keeps_former_targets_until_the_new_one_is_in_sync() -> None:
    redirected = begin(_moved_and_led_by_the_new(), (3, 4), ALL)

    assert (redirected.leader, redirected.isr) == (2, (2,))
    assert (redirected.replicas, redirected.target) == ((3, 4, 1, 2), (3, 4))
    assert advance(replace(redirected, isr=(2, 3)), ALL).leader == 2
    done = advance(replace(redirected, isr=(2, 3, 4)), ALL)
    assert (done.replicas, set(done.isr), done.leader) == ((3, 4), {3, 4}, 3)


def test_a_redirected_reassignment_keeps_an_eligible_replica() -> None:
    """Otherwise it would delete its log and, added again, still be eligible."""
    moving = begin(partition((1, 3), min_isr=2), (2, 3), ALL)
    alone = replace(moving, isr=(1,), eligible=(2,), leader=1)

    redirected = begin(alone, (3, 4), ALL)

    assert redirected.replicas == (3, 4, 1, 2)
    assert (redirected.adding, redirected.removing) == ((4, 2), (1, 2))
    assert set(redirected.eligible) <= set(redirected.replicas)


def test_a_reassignment_redirected_to_its_origin_ends_when_that_replica_is_in_sync() -> None:
    back = begin(_moved_and_led_by_the_new(), (1,), brokers(2, 3))

    assert (back.leader, back.isr) == (2, (2,))
    assert advance(back, ALL) == back
    done = advance(replace(back, isr=(2, 1)), ALL)
    assert (done.replicas, done.isr, done.is_reassigning) == ((1,), (1,), False)


def test_a_redirected_reassignment_can_be_cancelled() -> None:
    redirected = begin(replace(_moved_and_led_by_the_new(), isr=(2, 1)), (3, 4), ALL)

    back = cancel(redirected, ALL)
    assert (back.replicas, back.isr, back.leader) == ((1,), (1,), 1)


def test_old_replicas_stay_until_every_target_replica_is_in_sync() -> None:
    shrinking = replace(begin(partition((1, 2, 3)), (1, 2), ALL), isr=(1, 3))

    assert advance(shrinking, ALL) == shrinking


def _operations(state: PartitionState, present: frozenset[int]) -> Iterator[tuple[str, object]]:
    nodes = (1, 2, 3)
    yield from (("begin", target) for size in (1, 2) for target in itertools.combinations(nodes, size))
    yield from (("cancel", None), ("controller", None))
    yield from ((("die" if node in present else "return"), node) for node in nodes)
    if state.leader in present & set(state.isr):
        yield from (("join", node) for node in state.replicas if node in present - set(state.isr))
        yield from (("leave", node) for node in state.isr if node != state.leader)


def _after(state: PartitionState, present: frozenset[int], what: str, about: Any) -> PartitionState:
    there = brokers(*present)
    match what:
        case "begin":
            return begin(state, about, there)
        case "cancel":
            return cancel(state, there)
        case "controller":
            return advance(settle(state, there), there)
        case "join":
            return replace(state, isr=(*state.isr, about))
        case "leave":
            return replace(state, isr=tuple(each for each in state.isr if each != about))
    return state


def test_every_sequence_of_reassignments_keeps_an_available_in_sync_replica() -> None:
    """Every state reachable by these operations with three nodes."""
    begun = (partition((1,)), frozenset((1, 2, 3)))
    met, left = {begun}, [begun]
    while left:
        before, present = left.pop()
        for what, about in _operations(before, present):
            after, there = before, present ^ {about} if what in ("die", "return") else present
            with suppress(ApiError):
                after = _after(before, present, what, about)
            _check_kept(before, after, present, what)
            reached = (replace(after, leader_epoch=0, isr=tuple(sorted(after.isr))), there)
            if reached not in met:
                met.add(reached)
                left.append(reached)


def _check_kept(before: PartitionState, after: PartitionState, present: frozenset[int], what: str) -> None:
    assert after.isr, (what, before)
    assert set(after.isr) <= set(after.replicas), (what, before)
    assert after.leader == NO_NODE or after.leader in after.isr, (what, before)
    if what in ("begin", "cancel", "controller"):
        assert set(after.isr) <= set(before.isr), (what, before)
        assert present & set(after.isr) or not present & set(before.isr), (what, before)
