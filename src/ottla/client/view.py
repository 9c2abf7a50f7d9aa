"""Cluster metadata: brokers, topics and partition leaders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ottla.client.errors import error_code
from ottla.core.ids import Address
from ottla.wire.declare import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.core.errors import ErrorCode
    from ottla.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


@dataclass(frozen=True, slots=True)
class PartitionView:
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    topic_id: bytes
    is_internal: bool
    error: ErrorCode
    """Why the topic has no metadata: it does not exist, or the user may not describe it."""
    partitions: Mapping[int, PartitionView]

    @property
    def has_leader(self) -> bool:
        return any(partition.leader != NO_LEADER for partition in self.partitions.values())


@dataclass(frozen=True, slots=True)
class ClusterView:
    cluster_id: str | None
    controller_id: int
    brokers: Mapping[int, BrokerAddress]
    topics: Mapping[str, TopicView]

    def leader(self, topic: str, partition: int) -> int:
        """The leader of this partition; -1 if unknown or none."""
        known = self.topics.get(topic)
        if known is None or partition not in known.partitions:
            return NO_LEADER
        return known.partitions[partition].leader

    def with_broker(self, broker: BrokerAddress) -> ClusterView:
        return replace(self, brokers={**self.brokers, broker.node_id: broker})

    def merged(self, response: MetadataResponse, *, are_all_topics: bool) -> ClusterView:
        """The view updated with this response, which covers all topics or the named ones."""
        answered = {
            topic.name: _merge_topic(self.topics.get(topic.name), topic.name, topic)
            for topic in response.topics
            if topic.name is not None
        }
        return ClusterView(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            brokers={
                each.node_id: BrokerAddress(each.node_id, each.host, each.port, each.rack) for each in response.brokers
            },
            topics=answered if are_all_topics else {**self.topics, **answered},
        )


EMPTY_VIEW: Final = ClusterView(cluster_id=None, controller_id=-1, brokers={}, topics={})


def _merge_topic(known: TopicView | None, name: str, answered: MetadataResponseTopic) -> TopicView:
    is_same_topic = known is not None and known.topic_id == answered.topic_id != NO_UUID
    before = known.partitions if known is not None and is_same_topic else {}
    return TopicView(
        name=name,
        topic_id=answered.topic_id,
        is_internal=answered.is_internal,
        error=error_code(answered.error_code),
        partitions={
            each.partition_index: _merge_partition(before.get(each.partition_index), each)
            for each in sorted(answered.partitions, key=lambda partition: partition.partition_index)
        },
    )


def _merge_partition(known: PartitionView | None, answered: MetadataResponsePartition) -> PartitionView:
    # A lagging broker may return an older leader than another has already returned (KIP-320).
    if known is not None and 0 <= answered.leader_epoch < known.leader_epoch:
        return known
    return PartitionView(
        leader=answered.leader_id,
        leader_epoch=answered.leader_epoch,
        replicas=answered.replica_nodes,
        isr=answered.isr_nodes,
        offline=answered.offline_replicas,
    )
