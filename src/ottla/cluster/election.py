"""Who leads a partition. Pure rules: a state and who is there in, the next state out.

Only a replica that is in sync may lead: it has everything that was acknowledged. It is in sync with the data folder
with which it joined the ISR; with another, or an older copy of it, it lacks records. With every new leader the epoch
grows, and what the old one still says is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ottla.cluster.state import (
    LOST_FOLDER,
    NO_NODE,
    EligibleLeadersNotAvailable,
    PartitionState,
    PreferredLeaderNotAvailable,
)
from ottla.core.errors import ElectionNotNeeded

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from ottla.cluster.state import BrokerInfo
    from ottla.core.ids import TopicId

    Brokers = Mapping[int, BrokerInfo]


def first_state(
    topic_id: TopicId, topic: str, partition: int, replicas: Sequence[int], brokers: Brokers
) -> PartitionState:
    """Of a partition that was not there before: whoever of its replicas is there is in sync, since it is empty."""
    present = tuple(node for node in replicas if node in brokers)
    leader = present[0] if present else NO_NODE
    isr = present or tuple(replicas)
    new = PartitionState(topic_id, topic, partition, tuple(replicas), leader, 0, isr)
    return replace(new, folders=_folders(new, isr, brokers))


def settle(state: PartitionState, brokers: Brokers, *, allow_unclean: bool = False) -> PartitionState:
    """What the state must become now that these nodes are there; itself if it may stay."""
    if in_sync := in_sync_there(state, brokers):
        leader = state.leader if _may_stay(state, in_sync, brokers) else _first_in_sync(state, in_sync, brokers)
        return _led_by(state, leader, in_sync, brokers)
    if eligible := eligible_there(state, brokers):
        leader = _first_in_sync(state, eligible, brokers)
        return _led_by(state, leader, (leader,), brokers)
    if allow_unclean:
        survivor = _survivor(state, brokers)
        if survivor != NO_NODE:
            return _led_by(replace(state, folders=(), isr=(survivor,), eligible=()), survivor, (survivor,), brokers)
    # The last who were in sync stay named: only they may lead when they come back.
    return _led_by(state, NO_NODE, state.isr, {})


def _survivor(state: PartitionState, brokers: Brokers) -> int:
    """Who leads if records have to be lost. One that came back with another folder has the least."""
    present = [node for node in state.replicas if node in brokers and state.key not in brokers[node].offline]
    return min(present, key=lambda node: node in state.isr, default=NO_NODE)


def in_sync_there(state: PartitionState, brokers: Brokers) -> tuple[int, ...]:
    """The in-sync replicas that are online, with the folder with which they joined: any of them may lead."""
    return tuple(node for node in state.isr if node in brokers and _is_online(state, brokers[node]))


def eligible_there(state: PartitionState, brokers: Brokers) -> tuple[int, ...]:
    """The same of replicas that are not in sync and have all that was committed (KIP-966)."""
    return tuple(
        node
        for node in state.eligible
        if node in brokers and node in state.replicas and _is_online(state, brokers[node])
    )


def _is_online(state: PartitionState, broker: BrokerInfo) -> bool:
    return state.key not in broker.offline and has_its_folder(state, broker.id, broker.folder)


def has_its_folder(state: PartitionState, node: int, folder: str) -> bool:
    """Whether this is the folder with which the node joined the ISR, as far as that is known."""
    return state.folder_of(node) in (None, folder)


def _may_stay(state: PartitionState, in_sync: Sequence[int], brokers: Brokers) -> bool:
    if state.leader not in in_sync:
        return False
    others = [node for node in in_sync if not brokers[node].is_draining]
    return not brokers[state.leader].is_draining or not others


def _first_in_sync(state: PartitionState, in_sync: Sequence[int], brokers: Brokers) -> int:
    return min(in_sync, key=lambda node: (brokers[node].is_draining, _rank(state, node)))


def _rank(state: PartitionState, node: int) -> int:
    return state.replicas.index(node) if node in state.replicas else len(state.replicas)


def _led_by(state: PartitionState, leader: int, isr: tuple[int, ...], brokers: Brokers) -> PartitionState:
    eligible = _eligible(state, isr)
    folders = _folders(state, (*isr, *eligible), brokers)
    if leader != state.leader:
        state = replace(state, leader=leader, leader_epoch=state.leader_epoch + 1)
    elif (isr, folders, eligible) == (state.isr, state.folders, state.eligible):
        return state
    return replace(state, isr=isr, folders=folders, eligible=eligible)


def _eligible(state: PartitionState, isr: tuple[int, ...]) -> tuple[int, ...]:
    """Members that leave an ISR that is smaller than min.insync.replicas, until it has enough again."""
    if len(isr) >= min(state.min_isr, len(state.replicas)):
        return ()
    left = dict.fromkeys((*state.eligible, *state.isr))
    return tuple(node for node in left if node not in isr and node in state.replicas)


def _folders(state: PartitionState, members: tuple[int, ...], brokers: Brokers) -> tuple[tuple[int, str], ...]:
    """Those that are known, and of members of whom it is not known yet those that they have."""
    noted = ((node, state.folder_of(node) or (brokers[node].folder if node in brokers else "")) for node in members)
    return tuple((node, folder) for node, folder in noted if folder)


def with_isr(
    state: PartitionState, isr: tuple[int, ...], brokers: Brokers, lost: Container[int] = ()
) -> PartitionState:
    """With this ISR, under the same leader: a replica joins with the folder that it has now.

    Those that were seen to have `lost` committed records are not eligible.
    """
    kept = tuple(node for node in state.isr if node in isr or node not in lost)
    eligible = tuple(node for node in state.eligible if node not in lost)
    # A replica that joins from among the eligible ones has come back, maybe with another folder.
    joined = tuple((node, folder) for node, folder in state.folders if node in state.isr or node not in isr)
    after = _led_by(replace(state, isr=kept, eligible=eligible, folders=joined), state.leader, isr, brokers)
    return state if after == state else after


def prefer(state: PartitionState, brokers: Brokers) -> PartitionState:
    """Led by its first replica, if that is there and in sync."""
    preferred = state.target[0]
    if state.leader == preferred:
        raise ElectionNotNeeded(f"{state.topic}-{state.partition} is led by {preferred} already")
    if preferred not in in_sync_there(state, brokers) or brokers[preferred].is_draining:
        raise PreferredLeaderNotAvailable(
            f"node {preferred}, preferred to lead {state.topic}-{state.partition}, is away or not in sync"
        )
    return _led_by(state, preferred, state.isr, brokers)


def elect_anyone(state: PartitionState, brokers: Brokers) -> PartitionState:
    """Asked for by an operator: if nobody leads, whoever is there, even if acknowledged records are lost by it."""
    if state.leader in brokers:
        raise ElectionNotNeeded(f"{state.topic}-{state.partition} is led by {state.leader}")
    elected = settle(state, brokers, allow_unclean=True)
    if elected.leader == NO_NODE:
        raise EligibleLeadersNotAvailable(f"no replica of {state.topic}-{state.partition} is there")
    return elected


def without(state: PartitionState, node: int, brokers: Brokers) -> PartitionState:
    """With `node` neither leading nor in sync, if another that is there can take over; else led by nobody.

    For a node that leaves in order, one that comes back after a crash, and one whose log failed. Even if it is the only
    one that may lead, it does so in an epoch of its own: what it lost has the offsets of what it will write.
    """
    if node not in state.isr:
        return state
    others = {each: brokers[each] for each in brokers if each != node}
    left = replace(state, isr=tuple(each for each in state.isr if each != node), eligible=(*state.eligible, node))
    if not in_sync_there(left, others):
        return _led_by(state, NO_NODE, state.isr, {}) if state.leader == node else state
    return settle(left, others)


def given_up(state: PartitionState, node: int, brokers: Brokers) -> PartitionState:
    """With `node` out of the ISR if another member may have the records that it lost, even one that is away.

    For a replica that may lack acknowledged records: one that was not synced when the machine lost power, or whose log
    failed. The last member stays, as in `without`: no replica is known to have more.
    """
    if node not in (*state.isr, *state.eligible):
        return state
    isr = tuple(each for each in state.isr if each != node)
    eligible = tuple(each for each in state.eligible if each != node)
    left = replace(state, isr=isr, eligible=eligible)
    if not any(_may_have_its_records(state, each, brokers) for each in isr):
        kept = tuple(each for each in eligible if _may_have_its_records(state, each, brokers))
        if not kept:
            return without(replace(state, eligible=()) if state.eligible else state, node, brokers)
        # They have all that was committed, and it does not.
        left = replace(state, isr=kept, eligible=tuple(each for each in eligible if each not in kept))
    return settle(left, {each: brokers[each] for each in brokers if each != node})


def _may_have_its_records(state: PartitionState, node: int, brokers: Brokers) -> bool:
    if node in brokers and not has_its_folder(state, node, brokers[node].folder):
        return False
    return state.folder_of(node) != LOST_FOLDER


@dataclass(frozen=True, slots=True)
class Returning:
    """What is known of the replica of a broker that starts."""

    folder: str
    is_empty: bool = False
    """Nothing of what it had is left."""
    may_lack_records: bool = False
    """It may have lost records that were acknowledged and not synced."""


def returned(state: PartitionState, node: int, replica: Returning, brokers: Brokers) -> PartitionState:
    """With `node` back after a crash, or with another folder."""
    is_its_folder = has_its_folder(state, node, replica.folder)
    after = (given_up if replica.may_lack_records and is_its_folder else without)(state, node, brokers)
    was_ever_led = state.leader_epoch > 0 or state.leader != NO_NODE
    if replica.is_empty and is_its_folder and node in after.eligible:
        after = replace(after, eligible=tuple(each for each in after.eligible if each != node))
    if replica.is_empty and was_ever_led and node in after.isr and has_its_folder(after, node, replica.folder):
        # What was in sync is not this: an older release did not note the folder, or the partition is gone from it.
        others = tuple((each, known) for each, known in after.folders if each != node)
        return replace(after, folders=(*others, (node, LOST_FOLDER)))
    return after
