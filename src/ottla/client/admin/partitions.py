"""Replica assignment and leadership."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.client.admin.requests import AdminRequests
from ottla.client.errors import BrokerError, broker_error, raise_for
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment in progress."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class PartitionAdmin(AdminRequests):
    async def reassign_partitions(
        self, targets: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, BrokerError | None]:
        """Start reassigning partitions to these brokers; None cancels one. Returns for each an error, or None."""
        topics: dict[str, list[ReassignablePartition]] = {}
        for where, replicas in targets.items():
            wanted = None if replicas is None else tuple(replicas)
            topics.setdefault(where.topic, []).append(
                ReassignablePartition(partition_index=where.partition, replicas=wanted)
            )
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._timeout_ms,
            topics=tuple(ReassignableTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()),
        )
        response = await self._ask_controller(request, lambda answer: (answer.error_code,))
        raise_for(response.error_code, "cannot reassign partitions", response.error_message)
        return {
            TopicPartition(topic.name, part.partition_index): _outcome(
                part.error_code, f"cannot reassign {topic.name}-{part.partition_index}", part.error_message
            )
            for topic in response.responses
            for part in topic.partitions
        }

    async def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        """The reassignments in progress."""
        request = ListPartitionReassignmentsRequest(timeout_ms=self._timeout_ms, topics=None)
        response = await self._ask_controller(request, lambda answer: (answer.error_code,))
        raise_for(response.error_code, "cannot list reassignments", response.error_message)
        return {
            TopicPartition(topic.name, part.partition_index): Reassignment(
                part.replicas, part.adding_replicas, part.removing_replicas
            )
            for topic in response.topics
            for part in topic.partitions
        }

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, *, unclean: bool = False
    ) -> dict[TopicPartition, BrokerError | None]:
        """Elect preferred replicas; with `unclean`, any live replica of leaderless partitions. None: all partitions.

        Returns for each an error, or None if it has a new leader.
        """
        wanted: dict[str, list[int]] = {}
        for where in partitions or ():
            wanted.setdefault(where.topic, []).append(where.partition)
        named = tuple(TopicPartitions(topic=name, partitions=tuple(parts)) for name, parts in wanted.items())
        request = ElectLeadersRequest(
            election_type=1 if unclean else 0,
            topic_partitions=None if partitions is None else named,
            timeout_ms=self._timeout_ms,
        )
        response = await self._ask_controller(request, lambda answer: (answer.error_code,))
        raise_for(response.error_code, "cannot elect leaders", None)
        return {
            TopicPartition(topic.topic, part.partition_id): _outcome(
                part.error_code, f"cannot elect a leader of {topic.topic}-{part.partition_id}", part.error_message
            )
            for topic in response.replica_election_results
            for part in topic.partition_result
        }


def _outcome(code: int, what: str, message: str | None) -> BrokerError | None:
    return None if code == ErrorCode.NONE else broker_error(code, what, message)
