"""AlterPartitionReassignments (45), ListPartitionReassignments (46) and ElectLeaders (43).

A standalone broker answers like a cluster of one: it is the replica and leader of everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.requests.turns import Turns
from ottla.core.errors import ApiError, ErrorCode, UnknownTopicOrPartition
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
    from ottla.broker.topics import TopicState

_UNCLEAN: Final = 1


def _state(broker: Broker, name: str, partition: int) -> TopicState:
    state = broker.topics.by_name.get(name)
    if state is None or not 0 <= partition < len(state.partitions):
        raise UnknownTopicOrPartition(f"unknown partition {name}-{partition}")
    return state


# Moving


async def alter_partition_reassignments(
    broker: Broker, request: AlterPartitionReassignmentsRequest, _context: Context
) -> AlterPartitionReassignmentsResponse:
    topics = []
    for topic in request.topics:
        partitions = [
            await _move(broker, topic.name, one, keeps_factor=not request.allow_replication_factor_change)
            for one in topic.partitions
        ]
        topics.append(ReassignableTopicResponse(name=topic.name, partitions=tuple(partitions)))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=tuple(topics),
    )


async def _move(
    broker: Broker, name: str, wanted: ReassignablePartition, *, keeps_factor: bool
) -> ReassignablePartitionResponse:
    code, message = ErrorCode.NONE, None
    index = wanted.partition_index
    try:
        state = _state(broker, name, index)
        await broker.administration.move(state, index, wanted.replicas, keeps_factor=keeps_factor)
    except ApiError as refused:
        code, message = refused.code, str(refused)
    return ReassignablePartitionResponse(partition_index=index, error_code=code, error_message=message)


def list_partition_reassignments(
    broker: Broker, request: ListPartitionReassignmentsRequest, _context: Context
) -> InTurns[ListPartitionReassignmentsResponse]:
    turns = Turns()
    topics = []
    for name, indexes in _asked_for(broker, request):
        if moving := _moving(broker, name, indexes):
            topics.append(OngoingTopicReassignment(name=name, partitions=tuple(moving)))
        if turns.are_over():
            yield
    return ListPartitionReassignmentsResponse(error_code=ErrorCode.NONE, error_message=None, topics=tuple(topics))


def _asked_for(broker: Broker, request: ListPartitionReassignmentsRequest) -> list[tuple[str, Iterable[int]]]:
    if request.topics is None:
        return [(name, range(len(state.partitions))) for name, state in broker.topics.by_name.items()]
    return [(topic.name, topic.partition_indexes) for topic in request.topics]


def _moving(broker: Broker, name: str, indexes: Iterable[int]) -> list[OngoingPartitionReassignment]:
    state = broker.topics.by_name.get(name)
    if state is None:
        return []
    return [
        OngoingPartitionReassignment(
            partition_index=index,
            replicas=placed.replicas,
            adding_replicas=placed.adding,
            removing_replicas=placed.removing,
        )
        for index in indexes
        if 0 <= index < len(state.partitions)
        and ((placed := broker.topology.placed(state, index)).adding or placed.removing)
    ]


# Electing


async def elect_leaders(broker: Broker, request: ElectLeadersRequest, _context: Context) -> ElectLeadersResponse:
    is_unclean = request.election_type == _UNCLEAN
    asked: dict[str, Iterable[int]] = {}
    if request.topic_partitions is None:
        asked |= {name: range(len(state.partitions)) for name, state in broker.topics.by_name.items()}
    else:
        asked |= {topic.topic: topic.partitions for topic in request.topic_partitions}
    results = []
    for name, indexes in asked.items():
        partitions = [await _elect(broker, name, index, is_unclean=is_unclean) for index in indexes]
        if request.topic_partitions is None:
            # Kafka lists only partitions that needed an election.
            partitions = [one for one in partitions if one.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        if partitions:
            results.append(ReplicaElectionResult(topic=name, partition_result=tuple(partitions)))
    return ElectLeadersResponse(error_code=ErrorCode.NONE, replica_election_results=tuple(results))


async def _elect(broker: Broker, name: str, index: int, *, is_unclean: bool) -> PartitionResult:
    code, message = ErrorCode.NONE, None
    try:
        await broker.administration.elect_leader(_state(broker, name, index), index, is_unclean=is_unclean)
    except ApiError as refused:
        code, message = refused.code, str(refused)
    return PartitionResult(partition_id=index, error_code=code, error_message=message)
