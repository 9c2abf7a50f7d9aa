"""Creating, deleting, listing and describing topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.client.admin.requests import AdminRequests, raise_if_error
from ottla.client.errors import BrokerError, broker_error, raise_for
from ottla.core.errors import ErrorCode
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla.client.view import TopicView

BROKERS_CHOICE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    name: str
    partitions: int = BROKERS_CHOICE
    """The number of partitions; -1 for the broker's default."""
    replication_factor: int = BROKERS_CHOICE
    """The replication factor; -1 for the broker's default."""
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """The brokers of each partition, instead of the two numbers."""


class TopicAdmin(AdminRequests):
    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = BROKERS_CHOICE,
        replication_factor: int = BROKERS_CHOICE,
        configs: Mapping[str, str | None] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Create one topic, or only validate the request."""
        topic = NewTopic(name=name, partitions=partitions, replication_factor=replication_factor, configs=configs or {})
        [outcome] = (await self.create_topics([topic], validate_only=validate_only)).values()
        raise_if_error(outcome)

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, BrokerError | None]:
        """Create topics; returns for each an error, or None."""
        request = CreateTopicsRequest(
            topics=tuple(map(_creatable, topics)), timeout_ms=self._timeout_ms, validate_only=validate_only
        )
        response = await self._ask_controller(request, lambda answer: (each.error_code for each in answer.topics))
        return {
            each.name: _outcome(each.error_code, f"cannot create topic {each.name!r}", each.error_message)
            for each in response.topics
        }

    async def delete_topic(self, name: str) -> None:
        [outcome] = (await self.delete_topics([name])).values()
        raise_if_error(outcome)

    async def delete_topics(self, names: Iterable[str]) -> dict[str, BrokerError | None]:
        """Delete topics; returns for each an error, or None."""
        wanted = tuple(names)
        request = DeleteTopicsRequest(
            topic_names=wanted,
            topics=tuple(DeleteTopicState(name=name, topic_id=NO_UUID) for name in wanted),
            timeout_ms=self._timeout_ms,
        )
        response = await self._ask_controller(request, lambda answer: (each.error_code for each in answer.responses))
        return {
            each.name: _outcome(each.error_code, f"cannot delete topic {each.name!r}", each.error_message)
            for each in response.responses
            if each.name is not None
        }

    async def list_topics(self, *, include_internal: bool = False) -> list[str]:
        """The names of all topics, optionally with internal ones."""
        await self._router.refresh()
        known = self._router.view.topics.values()
        return sorted(
            topic.name
            for topic in known
            if topic.error is ErrorCode.NONE and (include_internal or not topic.is_internal)
        )

    async def describe_topic(self, name: str) -> TopicView:
        [described] = (await self.describe_topics([name])).values()
        return raise_if_error(described)

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicView | BrokerError]:
        """The partitions of topics, with their current leaders and replicas."""
        wanted = list(names)
        await self._router.refresh(wanted)
        return {name: self._described(name) for name in wanted}

    def _described(self, name: str) -> TopicView | BrokerError:
        known = self._router.view.topics.get(name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known is None else known.error
        if known is None or code is not ErrorCode.NONE:
            return broker_error(code, f"topic {name!r}")
        return known

    async def create_partitions(
        self,
        topic: str,
        total: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Increase a topic's partitions to `total`; `assignments` are the brokers of the new ones."""
        placed = None
        if assignments is not None:
            placed = tuple(CreatePartitionsAssignment(broker_ids=tuple(brokers)) for brokers in assignments)
        request = CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name=topic, count=total, assignments=placed),),
            timeout_ms=self._timeout_ms,
            validate_only=validate_only,
        )
        response = await self._ask_controller(request, lambda answer: (each.error_code for each in answer.results))
        [result] = response.results
        raise_for(result.error_code, f"cannot increase topic {topic!r} to {total} partitions", result.error_message)


def _creatable(topic: NewTopic) -> CreatableTopic:
    is_assigned = bool(topic.assignments)
    return CreatableTopic(
        name=topic.name,
        num_partitions=BROKERS_CHOICE if is_assigned else topic.partitions,
        replication_factor=BROKERS_CHOICE if is_assigned else topic.replication_factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
            for index, brokers in topic.assignments.items()
        ),
        configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()),
    )


def _outcome(code: int, about: str, broker_says: str | None) -> BrokerError | None:
    return None if code == ErrorCode.NONE else broker_error(code, about, broker_says)
