"""Limits of partition counts and manual assignments. Pure rules, with Kafka's messages."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from ottla.core.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    PolicyViolation,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ottla.wire.messages.create_partitions import CreatePartitionsTopic
    from ottla.wire.messages.create_topics import CreatableTopic

MOST_PARTITIONS_PER_REQUEST: Final = 10_000
"""Kafka's limit of one CreateTopics or CreatePartitions request."""
MOST_PARTITIONS_PER_TOPIC: Final = 100_000
"""Ottla's limit: more are probably a mistake, and would make every response that lists them huge."""

_DEFAULT: Final = -1


def count_of(topic: CreatableTopic, default_partitions: int, nodes: Collection[int]) -> int:
    """The number of partitions of a new topic; raises if the request cannot be satisfied with these nodes."""
    if topic.assignments:
        return _count_assigned(topic, nodes)
    factor = topic.replication_factor
    if factor < _DEFAULT or factor == 0:
        raise InvalidReplicationFactor("Replication factor must be larger than 0, or -1 to use the default value.")
    if topic.num_partitions < _DEFAULT or topic.num_partitions == 0:
        raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
    if factor > len(nodes):
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be "
            f"reached because only {len(nodes)} broker(s) are registered."
        )
    return default_partitions if topic.num_partitions == _DEFAULT else topic.num_partitions


def _count_assigned(topic: CreatableTopic, nodes: Collection[int]) -> int:
    if topic.replication_factor != _DEFAULT:
        raise InvalidRequest("A manual partition assignment was specified, but replication factor was not set to -1.")
    if topic.num_partitions != _DEFAULT:
        raise InvalidRequest("A manual partition assignment was specified, but numPartitions was not set to -1.")
    assigned: set[int] = set()
    for assignment in topic.assignments:
        if assignment.partition_index in assigned:
            raise InvalidReplicaAssignment(
                f"Found multiple manual partition assignments for partition {assignment.partition_index}"
            )
        assigned.add(assignment.partition_index)
        _check_replicas(assignment.broker_ids, nodes)
    if assigned != set(range(len(assigned))):
        raise InvalidReplicaAssignment("partitions should be a consecutive 0-based integer sequence")
    return len(assigned)


def factor_of(topic: CreatableTopic) -> int | None:
    """The requested replication factor; None if not given. Manual assignments may differ by partition."""
    if topic.assignments:
        return len(topic.assignments[0].broker_ids)
    return None if topic.replication_factor == _DEFAULT else topic.replication_factor


def check_growth(topic: CreatePartitionsTopic, count_now: int, nodes: Collection[int]) -> None:
    """Raises unless a topic with `count_now` partitions may grow as requested."""
    if topic.count == count_now:
        raise InvalidPartitions(f"Topic already has {count_now} partition(s).")
    if topic.count < count_now:
        raise InvalidPartitions(
            f"The topic {topic.name} currently has {count_now} partition(s); {topic.count} would not be an increase."
        )
    if topic.count > MOST_PARTITIONS_PER_TOPIC:
        raise InvalidPartitions(f"A topic may have at most {MOST_PARTITIONS_PER_TOPIC} partitions, not {topic.count}.")
    if topic.assignments is None:
        return
    added = topic.count - count_now
    if len(topic.assignments) != added:
        raise InvalidReplicaAssignment(
            f"Attempted to add {added} additional partition(s), but only {len(topic.assignments)} assignment(s) were "
            "specified."
        )
    for assignment in topic.assignments:
        _check_replicas(assignment.broker_ids, nodes)


def check_request(topics: Iterable[CreatableTopic], default_partitions: int) -> None:
    """Raises if a request creates too many partitions."""
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == _DEFAULT:
            total += default_partitions
        else:
            total += max(topic.num_partitions, 0)
    if total > MOST_PARTITIONS_PER_REQUEST:
        raise PolicyViolation(
            f"Excessively large number of partitions per request: {total}, where {MOST_PARTITIONS_PER_REQUEST} are "
            "allowed."
        )


def check_added(total: int) -> None:
    """Raises if a request adds too many partitions to existing topics."""
    if total > MOST_PARTITIONS_PER_REQUEST:
        raise PolicyViolation(
            f"Unable to perform excessively large batch operation: {total} partitions, where "
            f"{MOST_PARTITIONS_PER_REQUEST} are allowed."
        )


def _check_replicas(broker_ids: Sequence[int], nodes: Collection[int]) -> None:
    prefix = "The manual partition assignment includes"
    if not broker_ids:
        raise InvalidReplicaAssignment(f"{prefix} an empty replica list.")
    for broker_id in sorted(broker_ids):
        if broker_id not in nodes:
            raise InvalidReplicaAssignment(f"{prefix} broker {broker_id}, but no such broker is registered.")
    repeated = [broker_id for broker_id, times in Counter(broker_ids).items() if times > 1]
    if repeated:
        raise InvalidReplicaAssignment(f"{prefix} the broker {repeated[0]} more than once.")
