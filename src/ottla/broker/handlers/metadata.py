"""Metadata (3): brokers, topics and leaders. Creates missing topics, if allowed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.broker.requests.authorized_operations import NOT_ASKED, ON_CLUSTER, ON_TOPIC
from ottla.broker.requests.turns import Turns
from ottla.broker.topic_names import is_by_id_too_early
from ottla.core.errors import ApiError, ErrorCode, TopicAlreadyExists
from ottla.core.ids import problem_with_topic_name
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
    from ottla.broker.topics import TopicState
    from ottla.broker.topology import PartitionPlacement

_logger: Final = logging.getLogger(__name__)


def metadata(broker: Broker, request: MetadataRequest, context: Context) -> InTurns[MetadataResponse]:
    if is_by_id_too_early(request, context.version):
        refused = [_unknown(ErrorCode.INVALID_REQUEST, one.name or "", one.topic_id) for one in request.topics or ()]
        return MetadataResponse(brokers=(), topics=tuple(refused))
    if request.topics is None or (context.version == 0 and not request.topics):
        topics = yield from _all(broker)
    else:
        # Without duplicates, as in Kafka: a request may contain the same large topic a million times.
        asked = {_identity(wanted): wanted for wanted in request.topics}
        topics = yield from _requested_topics(broker, request, asked)
    return _response(broker, request, context, topics)


def _all(broker: Broker) -> InTurns[list[MetadataResponseTopic]]:
    turns = Turns()
    topics = []
    for state in list(broker.topics.by_name.values()):
        topics.append(_described(broker, state))
        if turns.are_over():
            yield
    return topics


def _requested_topics(
    broker: Broker, request: MetadataRequest, asked: dict[bytes | str, MetadataRequestTopic]
) -> InTurns[list[MetadataResponseTopic]]:
    refused: dict[bytes | str, MetadataResponseTopic] = {}
    if broker.config.auto_create_topics and request.allow_auto_topic_creation:
        for name in [name for name in asked if isinstance(name, str) and name not in broker.topics.by_name]:
            try:
                _create(broker, name)
            except ApiError as error:
                refused[name] = _unknown(error.code, name, NO_UUID)
            # Each creation blocks on the disk: other requests are served in between.
            yield
    turns = Turns()
    topics = []
    for key, wanted in asked.items():
        topics.append(refused.get(key) or _asked_for(broker, wanted))
        if turns.are_over():
            yield
    return topics


def _create(broker: Broker, name: str) -> None:
    broker.check_topic_name(name)
    broker.topic_limits.check_auto_creation()
    broker.topic_limits.check_room(broker.config.default_partitions)
    try:
        broker.create_topic(name)
    except TopicAlreadyExists:
        return
    _logger.info("created topic %s automatically", name)


def _response(
    broker: Broker, request: MetadataRequest, context: Context, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    if request.include_topic_authorized_operations:
        topics = [_with_operations(topic) for topic in topics]
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=each.id, host=each.host, port=each.port, rack=each.rack)
            for each in broker.topology.brokers(context.connection)
        ),
        cluster_id=broker.cluster_id,
        controller_id=broker.topology.controller_id,
        topics=tuple(topics),
        cluster_authorized_operations=ON_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED,
    )


def _identity(wanted: MetadataRequestTopic) -> bytes | str:
    return wanted.name or "" if wanted.topic_id == NO_UUID else wanted.topic_id


def _asked_for(broker: Broker, wanted: MetadataRequestTopic) -> MetadataResponseTopic:
    if wanted.topic_id != NO_UUID:
        state = broker.topics.by_id.get(wanted.topic_id)
        if state is None:
            return _unknown(ErrorCode.UNKNOWN_TOPIC_ID, None, wanted.topic_id)
        return _described(broker, state)
    name = wanted.name or ""
    state = broker.topics.by_name.get(name)
    if state is None:
        is_legal = problem_with_topic_name(name) is None
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION
        return _unknown(code, name, NO_UUID)
    return _described(broker, state)


def _with_operations(topic: MetadataResponseTopic) -> MetadataResponseTopic:
    """Add the authorized operations; they are unknown if only the topic id is known."""
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
        return topic
    return replace(topic, topic_authorized_operations=ON_TOPIC)


def _unknown(code: ErrorCode, name: str | None, topic_id: bytes) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=name, topic_id=topic_id, partitions=())


def _described(broker: Broker, state: TopicState) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=state.name,
        topic_id=state.raw_id,
        is_internal=state.entry.is_internal,
        partitions=tuple(
            _partition(index, broker.topology.placed(state, index)) for index in range(len(state.partitions))
        ),
    )


def _partition(index: int, placed: PartitionPlacement) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=placed.error_code,
        partition_index=index,
        leader_id=placed.leader,
        leader_epoch=placed.leader_epoch,
        replica_nodes=placed.replicas,
        isr_nodes=placed.isr,
        offline_replicas=placed.offline,
    )
