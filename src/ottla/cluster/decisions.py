"""The controller's decisions, given the state of the cluster. Pure rules.

Called after every change, they return only the remaining changes: a new controller continues where the last one
stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ottla.cluster.assignment import Load, assign
from ottla.cluster.election import first_state, prefer, settle
from ottla.cluster.reassignment import advance
from ottla.cluster.state import PartitionKey
from ottla.core.errors import ApiError, InvalidReplicationFactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ottla.cluster.state import ClusterView, PartitionState
    from ottla.core.ids import TopicId


@dataclass(frozen=True, slots=True)
class WantedTopic:
    """The requested properties of a topic."""

    id: TopicId
    name: str
    partitions: int
    factor: int
    assignments: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Manually assigned replicas."""
    allows_unclean: bool | None = None
    """Whether an out-of-sync replica may become leader; None for the cluster's default."""
    min_isr: int = 1
    """The topic's min.insync.replicas."""


@dataclass(frozen=True, slots=True)
class Task:
    """The input of decisions. `touched` None means everything."""

    view: ClusterView
    topics: Mapping[TopicId, WantedTopic]
    orphans: frozenset[PartitionKey] = frozenset()
    """Partitions that have a state but whose topic was deleted."""
    touched_partitions: frozenset[PartitionKey] | None = None
    touched_topics: frozenset[TopicId] | None = None
    allows_unclean: bool = False


def all_steps(task: Task) -> list[Step]:
    topics: Iterable[WantedTopic] = task.topics.values()
    if task.touched_topics is not None:
        topics = [task.topics[each] for each in task.touched_topics if each in task.topics]

    def allows_unclean(topic_id: TopicId) -> bool:
        wanted = task.topics[topic_id].allows_unclean
        return task.allows_unclean if wanted is None else wanted

    return [
        *creations(task.view, topics),
        *steps(task.view, allows_unclean, task.touched_partitions),
        *(DeleteState(key) for key in task.orphans),
    ]


@dataclass(frozen=True, slots=True)
class CreateState:
    state: PartitionState


@dataclass(frozen=True, slots=True)
class ChangeState:
    before: PartitionState
    after: PartitionState


@dataclass(frozen=True, slots=True)
class DeleteState:
    key: PartitionKey


Step: TypeAlias = CreateState | ChangeState | DeleteState


def steps(
    view: ClusterView, allows_unclean: Callable[[TopicId], bool], touched: Iterable[PartitionKey] | None = None
) -> list[Step]:
    """Changes of existing partitions; with `touched` only of these, if no node came or left."""
    keys = view.partitions.keys() if touched is None else [key for key in touched if key in view.partitions]
    done: list[Step] = []
    for key in keys:
        before = view.partitions[key]
        after = settle(before, view.brokers, allow_unclean=before.leader not in view.brokers and allows_unclean(key[0]))
        after = advance(after, view.brokers)
        if after != before:
            done.append(ChangeState(before, after))
    return done


def creations(view: ClusterView, topics: Iterable[WantedTopic]) -> list[Step]:
    """The states of partitions that have none yet. With too few nodes, partitions wait for more."""
    wanting = [(topic, missing) for topic in topics if (missing := _missing(view, topic))]
    if not wanting:
        return []
    load = Load(view.partitions.values())
    done: list[Step] = []
    for topic, missing in wanting:
        chosen = {index: topic.assignments[index] for index in missing if index in topic.assignments}
        left = [index for index in missing if index not in chosen]
        try:
            placed = chosen | dict(zip(left, assign(left, topic.factor, view.brokers, load), strict=True))
        except InvalidReplicationFactor:
            placed = chosen
        done += [
            CreateState(first_state(topic.id, topic.name, index, placed[index], view.brokers))
            for index in sorted(placed)
        ]
    return done


def _missing(view: ClusterView, topic: WantedTopic) -> list[int]:
    return [index for index in range(topic.partitions) if PartitionKey(topic.id, index) not in view.partitions]


def rebalanced(view: ClusterView) -> list[Step]:
    """Elect the preferred leader of every partition that has another leader, if it is eligible."""
    done: list[Step] = []
    for before in view.partitions.values():
        if before.leader == before.target[0] or before.is_reassigning:
            continue
        try:
            done.append(ChangeState(before, prefer(before, view.brokers)))
        except ApiError:
            continue
    return done
