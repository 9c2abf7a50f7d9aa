from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.decisions import (
    ChangeState,
    CreateState,
    DeleteState,
    Task,
    WantedTopic,
    all_steps,
    rebalanced,
)
from ottla.cluster.state import NO_NODE, ClusterView, PartitionKey

from .making import TOPIC, brokers, partition

if TYPE_CHECKING:
    from ottla.cluster.decisions import Step
    from ottla.cluster.state import PartitionState


def view(present: dict, *states: PartitionState) -> ClusterView:  # type: ignore[type-arg]
    return ClusterView(present, 1, {state.key: state for state in states})


def wanted(partitions: int = 1, factor: int = 2, **more: object) -> dict:  # type: ignore[type-arg]
    return {TOPIC: WantedTopic(TOPIC, "t", partitions, factor, **more)}  # type: ignore[arg-type]


def carried_out(before: ClusterView, done: list[Step]) -> ClusterView:
    changed: dict[PartitionKey, PartitionState | None] = {}
    for step in done:
        match step:
            case CreateState(state):
                changed[state.key] = state
            case ChangeState(old, new):
                changed[old.key] = replace(new, version=old.version + 1)
            case DeleteState(key):
                changed[key] = None
    return before.with_partitions(changed)


def test_a_new_topic_gets_its_partitions() -> None:
    done = all_steps(Task(view(brokers(1, 2)), wanted(4)))

    assert [step.state.partition for step in done if isinstance(step, CreateState)] == [0, 1, 2, 3]
    assert all(step.state.leader in (1, 2) and len(step.state.isr) == 2 for step in done)  # type: ignore[union-attr]


def test_a_topic_that_grew_gets_its_missing_partitions_as_assigned() -> None:
    known = view(brokers(1, 2, 3), partition((1, 2)))

    done = all_steps(Task(known, wanted(2, assignments={1: (3, 2)})))

    assert [step.state.replicas for step in done if isinstance(step, CreateState)] == [(3, 2)]


def test_with_too_few_nodes_it_waits_for_more() -> None:
    assert all_steps(Task(view(brokers(1)), wanted(3, factor=2))) == []


def test_states_of_a_deleted_topic_are_removed() -> None:
    orphan = PartitionKey(TOPIC, 0)

    assert all_steps(Task(view(brokers(1)), {}, frozenset({orphan}))) == [DeleteState(orphan)]


def test_a_dead_leader_is_replaced_and_a_dead_follower_leaves_the_isr() -> None:
    known = view(brokers(2, 3), partition((1, 2, 3)), partition((2, 1, 3), partition=1))

    after = carried_out(known, all_steps(Task(known, wanted(2))))

    assert [(state.leader, state.isr, state.leader_epoch) for state in after.partitions.values()] == [
        (2, (2, 3), 1),
        (2, (2, 3), 0),
    ]


def test_unclean_elections_only_happen_if_the_topic_allows_them() -> None:
    known = view(brokers(2), partition((1, 2), isr=(1,)))

    assert all(step.after.leader == NO_NODE for step in all_steps(Task(known, wanted())))  # type: ignore[union-attr]
    for task in (Task(known, wanted(allows_unclean=True)), Task(known, wanted(), allows_unclean=True)):
        assert [step.after.leader for step in all_steps(task)] == [2]  # type: ignore[union-attr]
    forbidden = Task(known, wanted(allows_unclean=False), allows_unclean=True)
    assert [step.after.leader for step in all_steps(forbidden)] == [NO_NODE]  # type: ignore[union-attr]


@given(st.lists(st.sets(st.integers(1, 5), min_size=1), min_size=1, max_size=6), st.integers(1, 3))
def test_decisions_are_stable_after_one_round(times: list[set[int]], factor: int) -> None:
    known = view(brokers())
    for present in times:
        known = replace(known, brokers=brokers(*present))
        known = carried_out(known, all_steps(Task(known, wanted(5, factor=factor))))
        assert all_steps(Task(known, wanted(5, factor=factor))) == []
        for state in known.partitions.values():
            assert (state.leader in present) == bool(set(state.isr) & present)


def test_only_affected_partitions_are_examined() -> None:
    known = view(brokers(2), partition((1, 2)), partition((1, 2), partition=1))

    done = all_steps(Task(known, wanted(2), frozenset(), frozenset({PartitionKey(TOPIC, 1)}), frozenset()))

    assert [step.before.partition for step in done if isinstance(step, ChangeState)] == [1]


def test_leadership_returns_to_preferred_leaders() -> None:
    known = view(
        brokers(1, 2),
        partition((1, 2), leader=2),
        partition((1, 2), partition=1, leader=2, isr=(2,)),
        partition((2, 1), partition=2),
    )

    assert [(step.after.partition, step.after.leader) for step in rebalanced(known)] == [(0, 1)]  # type: ignore[union-attr]
