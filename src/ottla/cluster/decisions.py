"""What a controller has to change about a cluster, given all that is known of it. Pure rules.

Asked again after every change, it answers only with what is left to do: a controller that takes over in the
middle of something goes on where the last one ended.
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
    """What a topic's creator asked for."""

    id: TopicId
    name: str
    partitions: int
    factor: int
    assignments: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Of partitions whose replicas were chosen by hand."""
    allows_unclean: bool | None = None
    """Whether one that lacks records may lead; None for what is usual in the cluster."""
    min_isr: int = 1
    """Its own min.insync.replicas."""


@dataclass(frozen=True, slots=True)
class Task:
    """All that decisions are made of. None of what was touched means everything."""

    view: ClusterView
    topics: Mapping[TopicId, WantedTopic]
    orphans: frozenset[PartitionKey] = frozenset()
    """Partitions that have a state and whose topic is gone."""
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
    """What existing partitions need; with `touched` only these, where no node came or went."""
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
    """States for the partitions that have none yet. Where too few nodes are there it waits for more."""
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
    """Every partition that its preferred replica could lead and does not, led by it."""
    done: list[Step] = []
    for before in view.partitions.values():
        if before.leader == before.target[0] or before.is_reassigning:
            continue
        try:
            done.append(ChangeState(before, prefer(before, view.brokers)))
        except ApiError:
            continue
    return done
