"""Who leads a partition. Pure rules: a state and who is there in, the next state out.

Only a replica that is in sync may lead: it has everything that was acknowledged. With every new leader the epoch
grows, and what the old one still says is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.cluster.state import NO_NODE, EligibleLeadersNotAvailable, PartitionState, PreferredLeaderNotAvailable
from ottla.core.errors import ElectionNotNeeded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.cluster.state import BrokerInfo
    from ottla.core.ids import TopicId

    Brokers = Mapping[int, BrokerInfo]


def first_state(
    topic_id: TopicId, topic: str, partition: int, replicas: Sequence[int], brokers: Brokers
) -> PartitionState:
    """Of a partition that was not there before: whoever of its replicas is there is in sync, since it is empty."""
    present = tuple(node for node in replicas if node in brokers)
    leader = present[0] if present else NO_NODE
    return PartitionState(topic_id, topic, partition, tuple(replicas), leader, 0, present or tuple(replicas))


def settle(state: PartitionState, brokers: Brokers, *, allow_unclean: bool = False) -> PartitionState:
    """What the state must become now that these nodes are there; itself if it may stay."""
    if in_sync := in_sync_there(state, brokers):
        leader = state.leader if _may_stay(state, in_sync, brokers) else _first_in_sync(state, in_sync, brokers)
        return _led_by(state, leader, in_sync)
    if allow_unclean:
        survivor = next((node for node in state.replicas if node in brokers), NO_NODE)
        if survivor != NO_NODE:
            return _led_by(state, survivor, (survivor,))
    # The last who were in sync stay named: only they may lead when they come back.
    return _led_by(state, NO_NODE, state.isr)


def in_sync_there(state: PartitionState, brokers: Brokers) -> tuple[int, ...]:
    """The replicas in sync that are available: any of them may lead."""
    return tuple(node for node in state.isr if node in brokers)


def _may_stay(state: PartitionState, in_sync: Sequence[int], brokers: Brokers) -> bool:
    if state.leader not in in_sync:
        return False
    others = [node for node in in_sync if not brokers[node].is_draining]
    return not brokers[state.leader].is_draining or not others


def _first_in_sync(state: PartitionState, in_sync: Sequence[int], brokers: Brokers) -> int:
    return min(in_sync, key=lambda node: (brokers[node].is_draining, _rank(state, node)))


def _rank(state: PartitionState, node: int) -> int:
    return state.replicas.index(node) if node in state.replicas else len(state.replicas)


def _led_by(state: PartitionState, leader: int, isr: tuple[int, ...]) -> PartitionState:
    if leader == state.leader:
        return state if isr == state.isr else replace(state, isr=isr)
    return replace(state, leader=leader, leader_epoch=state.leader_epoch + 1, isr=isr)


def prefer(state: PartitionState, brokers: Brokers) -> PartitionState:
    """Led by its first replica, if that is there and in sync."""
    preferred = state.target[0]
    if state.leader == preferred:
        raise ElectionNotNeeded(f"{state.topic}-{state.partition} is led by {preferred} already")
    if preferred not in brokers or preferred not in state.isr or brokers[preferred].is_draining:
        raise PreferredLeaderNotAvailable(
            f"node {preferred}, preferred to lead {state.topic}-{state.partition}, is away or not in sync"
        )
    return _led_by(state, preferred, state.isr)


def elect_anyone(state: PartitionState, brokers: Brokers) -> PartitionState:
    """Asked for by an operator: if nobody leads, whoever is there, even if acknowledged records are lost by it."""
    if state.leader in brokers:
        raise ElectionNotNeeded(f"{state.topic}-{state.partition} is led by {state.leader}")
    elected = settle(state, brokers, allow_unclean=True)
    if elected.leader == NO_NODE:
        raise EligibleLeadersNotAvailable(f"no replica of {state.topic}-{state.partition} is there")
    return elected


def handed_over(state: PartitionState, node: int, brokers: Brokers) -> PartitionState:
    """With `node` neither leading nor in sync, if another in-sync replica is there; else itself.

    For a node whose log failed. The last in-sync replica stays: no other one has all that was acknowledged.
    """
    others = (each for each in state.isr if each != node)
    return without(state, node, brokers) if any(each in brokers for each in others) else state


def without(state: PartitionState, node: int, brokers: Brokers) -> PartitionState:
    """With `node` neither leading nor in sync, if another that is there can take over; else led by nobody.

    For a node that leaves in order, and for one that comes back and may have lost what it had. Even if it is the only
    one that may lead, it does so in an epoch of its own: what it lost has the offsets of what it will write.
    """
    others = tuple(each for each in state.isr if each != node)
    if node not in state.isr:
        return state
    if not any(each in brokers for each in others):
        return _led_by(state, NO_NODE, state.isr) if state.leader == node else state
    return settle(replace(state, isr=others), {each: brokers[each] for each in brokers if each != node})
