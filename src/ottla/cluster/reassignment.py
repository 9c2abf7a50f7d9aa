"""Moving a partition to other nodes (KIP-455). Pure rules.

While it moves, the new replicas are there as well as the old. When every new one is in sync, the old ones go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.cluster.election import settle
from ottla.core.errors import InvalidReplicaAssignment, NoReassignmentInProgress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.cluster.state import BrokerInfo, PartitionState


def begin(state: PartitionState, target: Sequence[int], brokers: Mapping[int, BrokerInfo]) -> PartitionState:
    """Towards `target`, from wherever an earlier move began."""
    held = _held(state)
    _check_target(state, target, held, brokers)
    added = tuple(node for node in target if node not in held)
    removed = tuple(node for node in held if node not in target)
    given_up = frozenset(state.adding) - frozenset(target)
    return replace(
        state,
        replicas=(*target, *removed),
        adding=added,
        removing=removed,
        isr=tuple(node for node in state.isr if node not in given_up),
    )


def cancel(state: PartitionState, brokers: Mapping[int, BrokerInfo]) -> PartitionState:
    """Back to the nodes that held it before."""
    if not state.is_reassigning:
        raise NoReassignmentInProgress(f"{state.topic}-{state.partition} is not being moved")
    held = _held(state)
    isr = tuple(node for node in state.isr if node in held)
    back = replace(state, replicas=held, adding=(), removing=(), isr=isr or held)
    return settle(back, brokers)


def advance(state: PartitionState, brokers: Mapping[int, BrokerInfo]) -> PartitionState:
    """Without the old replicas, if every new one is in sync by now; else as it is."""
    if not state.is_reassigning or not set(state.adding) <= set(state.isr):
        return state
    target = state.target
    isr = tuple(node for node in state.isr if node in target)
    if not any(node in brokers for node in isr):
        return state
    return settle(replace(state, replicas=target, adding=(), removing=(), isr=isr), brokers)


def _held(state: PartitionState) -> tuple[int, ...]:
    """Who held it before the move, in the order in which they are named now."""
    return tuple(node for node in state.replicas if node not in state.adding)


def _check_target(
    state: PartitionState, target: Sequence[int], held: Sequence[int], brokers: Mapping[int, BrokerInfo]
) -> None:
    where = f"for {state.topic}-{state.partition}"
    if not target:
        raise InvalidReplicaAssignment(f"The replica list {where} is empty.")
    if len(set(target)) != len(target):
        raise InvalidReplicaAssignment(f"The replica list {where} names a broker more than once.")
    for node in target:
        if node not in brokers and node not in held:
            raise InvalidReplicaAssignment(f"The replica list {where} names broker {node}, which is not registered.")
