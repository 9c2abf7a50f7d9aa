"""Reassignment of a partition (KIP-455). Pure rules.

During a reassignment, the new replicas exist beside the old ones. The old ones are removed when every target replica is
in the ISR, as in Kafka. An in-sync or eligible replica that a later target does not contain also stays until then: it
may have records that no other replica has. It is both `adding` and `removing`, since it is in neither the original nor
the final replicas.

Removing a replica begins a new leader epoch, as in Kafka: the broker deletes its log, and if it is added again, a fetch
that it sent before must not count as progress of its new, empty log.
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
    """Reassign to `target`, also if an earlier reassignment is in progress."""
    held = _held(state)
    _check_target(state, target, held, brokers)
    added = tuple(node for node in target if node not in held)
    removed = tuple(node for node in held if node not in target)
    may_lead = (*state.isr, *state.eligible)
    given_up = tuple(node for node in state.adding if node not in target and node in may_lead)
    redirected = replace(
        state,
        replicas=(*target, *removed, *given_up),
        adding=(*added, *given_up),
        removing=(*removed, *given_up),
    )
    return _fenced(state, redirected)


def cancel(state: PartitionState, brokers: Mapping[int, BrokerInfo]) -> PartitionState:
    """Revert to the original replicas; rejected if none of them is in sync and available."""
    if not state.is_reassigning:
        raise NoReassignmentInProgress(f"{state.topic}-{state.partition} has no reassignment in progress")
    held = _held(state)
    kept = _only(state.isr, held)
    if kept != state.isr and not in_sync_there(replace(state, isr=kept), brokers):
        raise InvalidReplicaAssignment(
            f"Unable to revert partition assignment for {state.topic}-{state.partition} because it would require an "
            f"unclean leader election: the ISR {_listed(state.isr)} has no available replica among {_listed(held)}. "
            f"Wait until one of them is in sync, or reassign the partition to {_listed(held)}."
        )
    return _fenced(state, settle(replace(state, replicas=held, adding=(), removing=(), isr=kept), brokers))


def advance(state: PartitionState, brokers: Mapping[int, BrokerInfo]) -> PartitionState:
    """The state without the old replicas if the whole target is in sync; otherwise unchanged."""
    target = state.target
    if not state.is_reassigning or not set(target) <= set(state.isr):
        return state
    ended = replace(state, replicas=target, adding=(), removing=(), isr=_only(state.isr, target))
    return _fenced(state, settle(ended, brokers)) if in_sync_there(ended, brokers) else state


def _fenced(before: PartitionState, after: PartitionState) -> PartitionState:
    """In a new leader epoch if a replica was removed."""
    if after.leader_epoch > before.leader_epoch or set(before.replicas) <= set(after.replicas):
        return after
    return replace(after, leader_epoch=before.leader_epoch + 1)


def _only(isr: Sequence[int], replicas: Sequence[int]) -> tuple[int, ...]:
    return tuple(node for node in isr if node in replicas)


def _listed(nodes: Sequence[int]) -> str:
    return f"[{','.join(map(str, nodes))}]"


def _held(state: PartitionState) -> tuple[int, ...]:
    """The replicas before the move, in their current order."""
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
