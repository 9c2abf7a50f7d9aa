"""Leader election of a partition. Pure rules: a state and the live nodes in, the next state out.

Only an in-sync replica may become leader: it has all acknowledged records. ISR membership is bound to the data folder
with which the replica joined; with another folder, or an older copy of it, it lacks records. Every new leader gets a
new leader epoch, which fences its predecessor.
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
    """The state of a new partition: all live replicas are in sync, because it is empty."""
    present = tuple(node for node in replicas if node in brokers)
    leader = present[0] if present else NO_NODE
    isr = present or tuple(replicas)
    new = PartitionState(topic_id, topic, partition, tuple(replicas), leader, 0, isr)
    return replace(new, folders=_folders(new, isr, brokers))


def settle(state: PartitionState, brokers: Brokers, *, allow_unclean: bool = False) -> PartitionState:
    """The state with these live nodes; unchanged if it is still valid."""
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
    # The last in-sync replicas stay in the ISR: only they may become leader when they return.
    return _led_by(state, NO_NODE, state.isr, {})


def _survivor(state: PartitionState, brokers: Brokers) -> int:
    """The leader of an unclean election. A replica with another folder has the fewest records."""
    present = [node for node in state.replicas if node in brokers and state.key not in brokers[node].offline]
    return min(present, key=lambda node: node in state.isr, default=NO_NODE)


def in_sync_there(state: PartitionState, brokers: Brokers) -> tuple[int, ...]:
    """The in-sync replicas that are online, with the folder with which they joined: any of them may become leader."""
    return tuple(node for node in state.isr if node in brokers and _is_online(state, brokers[node]))


def eligible_there(state: PartitionState, brokers: Brokers) -> tuple[int, ...]:
    """Like `in_sync_there`, for eligible replicas, which are not in the ISR but have all committed records
    (KIP-966).
    """
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
    """Eligible replicas: those that left an ISR smaller than min.insync.replicas, until it is large enough again."""
    if len(isr) >= min(state.min_isr, len(state.replicas)):
        return ()
    left = dict.fromkeys((*state.eligible, *state.isr))
    return tuple(node for node in left if node not in isr and node in state.replicas)


def _folders(state: PartitionState, members: tuple[int, ...], brokers: Brokers) -> tuple[tuple[int, str], ...]:
    """Known folders, and the current folders of members without a known one."""
    noted = ((node, state.folder_of(node) or (brokers[node].folder if node in brokers else "")) for node in members)
    return tuple((node, folder) for node, folder in noted if folder)


def with_isr(
    state: PartitionState, isr: tuple[int, ...], brokers: Brokers, lost: Container[int] = ()
) -> PartitionState:
    """The state with this ISR and the same leader: a replica joins with its current folder.

    Replicas with `lost` committed records are not eligible.
    """
    kept = tuple(node for node in state.isr if node in isr or node not in lost)
    eligible = tuple(node for node in state.eligible if node not in lost)
    # An eligible replica that rejoins may have come back with another folder.
    joined = tuple((node, folder) for node, folder in state.folders if node in state.isr or node not in isr)
    after = _led_by(replace(state, isr=kept, eligible=eligible, folders=joined), state.leader, isr, brokers)
    return state if after == state else after


def prefer(state: PartitionState, brokers: Brokers) -> PartitionState:
    """The state with the preferred leader, if it is live and in sync."""
    preferred = state.target[0]
    if state.leader == preferred:
        raise ElectionNotNeeded(f"{state.topic}-{state.partition} already has its preferred leader {preferred}")
    if preferred not in in_sync_there(state, brokers) or brokers[preferred].is_draining:
        raise PreferredLeaderNotAvailable(
            f"the preferred leader {preferred} of {state.topic}-{state.partition} is offline or not in the ISR"
        )
    return _led_by(state, preferred, state.isr, brokers)


def elect_any(state: PartitionState, brokers: Brokers) -> PartitionState:
    """On an operator's request: if there is no leader, elect any live replica, even if acknowledged records are
    lost.
    """
    if state.leader in brokers:
        raise ElectionNotNeeded(f"{state.topic}-{state.partition} has the leader {state.leader}")
    elected = settle(state, brokers, allow_unclean=True)
    if elected.leader == NO_NODE:
        raise EligibleLeadersNotAvailable(f"no replica of {state.topic}-{state.partition} is online")
    return elected


def without(state: PartitionState, node: int, brokers: Brokers) -> PartitionState:
    """The state without `node` as leader or ISR member, if another live member can take over; otherwise without a
    leader.

    For a node that shuts down, returns after a crash, or whose log failed. Even if it is the only one that may become
    leader, it does so in a new epoch: records it lost have the offsets of the records it will append.
    """
    if node not in state.isr:
        return state
    others = {each: brokers[each] for each in brokers if each != node}
    left = replace(state, isr=tuple(each for each in state.isr if each != node), eligible=(*state.eligible, node))
    if not in_sync_there(left, others):
        return _led_by(state, NO_NODE, state.isr, {}) if state.leader == node else state
    return settle(left, others)


def given_up(state: PartitionState, node: int, brokers: Brokers) -> PartitionState:
    """The state without `node` in the ISR if another member may have the records that it lost, even an offline one.

    For a replica that may lack acknowledged records: unsynced when the machine lost power, or its log failed. The last
    member stays, as in `without`: no replica is known to have more.
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
        # Eligible replicas have all committed records, and this node does not.
        left = replace(state, isr=kept, eligible=tuple(each for each in eligible if each not in kept))
    return settle(left, {each: brokers[each] for each in brokers if each != node})


def _may_have_its_records(state: PartitionState, node: int, brokers: Brokers) -> bool:
    if node in brokers and not has_its_folder(state, node, brokers[node].folder):
        return False
    return state.folder_of(node) != LOST_FOLDER


@dataclass(frozen=True, slots=True)
class StartingReplica:
    """The replica's condition when its broker starts."""

    folder: str
    is_empty: bool = False
    """Whether all its records are lost."""
    may_lack_records: bool = False
    """Whether acknowledged but unsynced records may be lost."""


def returned(state: PartitionState, node: int, replica: StartingReplica, brokers: Brokers) -> PartitionState:
    """The state when `node` returns after a crash, or with another folder."""
    is_its_folder = has_its_folder(state, node, replica.folder)
    after = (given_up if replica.may_lack_records and is_its_folder else without)(state, node, brokers)
    was_ever_led = state.leader_epoch > 0 or state.leader != NO_NODE
    if replica.is_empty and is_its_folder and node in after.eligible:
        after = replace(after, eligible=tuple(each for each in after.eligible if each != node))
    if replica.is_empty and was_ever_led and node in after.isr and has_its_folder(after, node, replica.folder):
        # Not the folder that was in sync: an older release did not store its id, or the partition is missing from the
        # folder.
        others = tuple((each, known) for each, known in after.folders if each != node)
        return replace(after, folders=(*others, (node, LOST_FOLDER)))
    return after
