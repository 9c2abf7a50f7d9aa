"""Moving a partition to other nodes (KIP-455). Pure rules.

While it moves, the new replicas are there as well as the old. The old ones go when every replica of the target is in
sync, as in Kafka. A replica in sync that a later target does not name stays until then as well: it may have
records that no other replica has. It is both `adding` and `removing`: part of neither end of the move.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.cluster.election import in_sync_there, settle
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
    given_up = tuple(node for node in state.adding if node not in target and node in state.isr)
    return replace(
        state,
        replicas=(*target, *removed, *given_up),
        adding=(*added, *given_up),
        removing=(*removed, *given_up),
    )


def cancel(state: PartitionState, brokers: Mapping[int, BrokerInfo]) -> PartitionState:
    """Back to the nodes that held it before; refused if none of them is in sync and available."""
    if not state.is_reassigning:
        raise NoReassignmentInProgress(f"{state.topic}-{state.partition} is not being moved")
    held = _held(state)
    kept = _only(state.isr, held)
    if kept != state.isr and not in_sync_there(replace(state, isr=kept), brokers):
        raise InvalidReplicaAssignment(
            f"Unable to revert partition assignment for {state.topic}-{state.partition} because it would require an "
            f"unclean leader election: the ISR {_listed(state.isr)} has no available replica among {_listed(held)}. "
            f"Wait until one of them is in sync, or reassign the partition to {_listed(held)}."
        )
    return settle(replace(state, replicas=held, adding=(), removing=(), isr=kept), brokers)


def advance(state: PartitionState, brokers: Mapping[int, BrokerInfo]) -> PartitionState:
    """Without the old replicas, if all of the target are in sync by now; else as it is."""
    target = state.target
    if not state.is_reassigning or not set(target) <= set(state.isr):
        return state
    ended = replace(state, replicas=target, adding=(), removing=(), isr=_only(state.isr, target))
    return settle(ended, brokers) if in_sync_there(ended, brokers) else state


def _only(isr: Sequence[int], replicas: Sequence[int]) -> tuple[int, ...]:
    return tuple(node for node in isr if node in replicas)


def _listed(nodes: Sequence[int]) -> str:
    return f"[{','.join(map(str, nodes))}]"


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
