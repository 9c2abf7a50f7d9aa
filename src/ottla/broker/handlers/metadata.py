"""Metadata (3): who serves what. Creates topics that do not exist, if it may."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ApiError, ErrorCode, TopicAlreadyExists, UnknownTopicOrPartition
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
    from ottla.broker.context import Context
    from ottla.broker.topics import TopicState

_logger: Final = logging.getLogger(__name__)


def metadata(broker: Broker, request: MetadataRequest, context: Context) -> MetadataResponse:
    wants_all = request.topics is None or (context.version == 0 and not request.topics)
    if wants_all:
        topics = [_described(broker, state) for state in broker.topics.by_name.values()]
    else:
        may_create = broker.config.auto_create_topics and request.allow_auto_topic_creation
        topics = [_asked_for(broker, wanted, may_create) for wanted in request.topics or ()]
    host, port = broker.advertised_to(context.connection)
    return MetadataResponse(
        brokers=(MetadataResponseBroker(node_id=broker.config.node_id, host=host, port=port),),
        cluster_id=broker.cluster_id,
        controller_id=broker.config.node_id,
        topics=tuple(topics),
    )


def _asked_for(broker: Broker, wanted: MetadataRequestTopic, may_create: bool) -> MetadataResponseTopic:  # noqa: FBT001
    if wanted.topic_id != NO_UUID:
        state = broker.topics.by_id.get(wanted.topic_id)
        if state is None:
            return _unknown(ErrorCode.UNKNOWN_TOPIC_ID, wanted.name, wanted.topic_id)
        return _described(broker, state)
    name = wanted.name or ""
    state = broker.topics.by_name.get(name)
    if state is None:
        try:
            state = _create(broker, name, may_create)
        except ApiError as refused:
            return _unknown(refused.code, name, NO_UUID)
    return _described(broker, state)


def _create(broker: Broker, name: str, may_create: bool) -> TopicState:  # noqa: FBT001
    if not may_create:
        broker.check_topic_name(name)
        raise UnknownTopicOrPartition(f"there is no topic {name!r}")
    try:
        state = broker.create_topic(name)
    except TopicAlreadyExists:
        return broker.topics.by_name[name]
    _logger.info("topic %s created, because a client asked for it", name)
    return state


def _unknown(code: ErrorCode, name: str | None, topic_id: bytes) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=name or "", topic_id=topic_id, partitions=())


def _described(broker: Broker, state: TopicState) -> MetadataResponseTopic:
    nodes = (broker.config.node_id,)
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=state.name,
        topic_id=state.raw_id,
        is_internal=state.entry.is_internal,
        partitions=tuple(
            MetadataResponsePartition(
                error_code=ErrorCode.NONE,
                partition_index=partition.at.partition,
                leader_id=broker.config.node_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=nodes,
                isr_nodes=nodes,
            )
            for partition in state.partitions
        ),
    )
