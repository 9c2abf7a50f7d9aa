"""CreateTopics (19) and CreatePartitions (37).

A change blocks the event loop for the catalog's fsync, a fraction of a millisecond on a good disk: the next request
must see it. So `timeout_ms` has no effect, except in a cluster, where it limits the wait for the controller to elect a
leader of every partition. Between two changes of a request others are served, and the remaining changes are skipped if
the client disconnects.

Differences to Kafka: `validate_only` returns no topic id. Two names of one request that differ only by '.'
and '_' are rejected; Kafka checks only against existing topics.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

from ottla.broker import placement
from ottla.broker.administration import NewTopic
from ottla.broker.configs.alter import new_topic_configs
from ottla.broker.configs.describe import describe_topic
from ottla.broker.configs.replies import for_create
from ottla.broker.requests.turns import Turns
from ottla.broker.topics import INTERNAL_TOPICS
from ottla.core.errors import (
    ApiError,
    ErrorCode,
    InvalidPartitions,
    InvalidRequest,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.topics import TopicState

_logger: Final = logging.getLogger(__name__)

_CONFIGS_SINCE: Final = 5


async def create_topics(broker: Broker, request: CreateTopicsRequest, context: Context) -> CreateTopicsResponse:
    try:
        placement.check_request(request.topics, broker.config.default_partitions)
    except ApiError as refused:
        names = dict.fromkeys(topic.name for topic in request.topics)
        return CreateTopicsResponse(topics=tuple(_not_created(name, refused) for name in names))
    repeated = _repeated(topic.name for topic in request.topics)
    results = []
    for topic in request.topics:
        if topic.name not in repeated:
            results.append(await _create(broker, topic, request, context))
            await asyncio.sleep(0)
    results += [_not_created(name, InvalidRequest("Duplicate topic name.")) for name in repeated]
    return CreateTopicsResponse(topics=tuple(results))


async def _create(
    broker: Broker, topic: CreatableTopic, request: CreateTopicsRequest, context: Context
) -> CreatableTopicResult:
    try:
        await _check_new(broker, topic.name)
        configs = new_topic_configs(broker.configs, topic.configs)
        partitions = placement.count_of(topic, broker.config.default_partitions, broker.topology.node_ids)
        if topic.name not in INTERNAL_TOPICS:
            broker.topic_limits.check_room(partitions)
        factor = placement.factor_of(topic)
        topic_id = NO_UUID
        if not request.validate_only:
            chosen = {one.partition_index: tuple(one.broker_ids) for one in topic.assignments}
            wanted = NewTopic(topic.name, partitions, configs, factor, chosen)
            state = await broker.administration.create_topic(wanted, request.timeout_ms)
            topic_id = state.raw_id
            _logger.info("created topic %s with %d partitions for %s", topic.name, partitions, context)
    except ApiError as refused:
        _logger.info("could not create topic %r for %s: %s", topic.name, context, refused)
        return _not_created(topic.name, refused)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=partitions,
        replication_factor=factor or broker.default_replication_factor,
        configs=_described(broker, configs) if context.version >= _CONFIGS_SINCE else None,
    )


async def _check_new(broker: Broker, name: str) -> None:
    try:
        broker.topics.check_new(name)
    except TopicAlreadyExists:
        # It may have been deleted at another broker.
        await broker.administration.catch_up(name)
        broker.topics.check_new(name)


def _described(broker: Broker, configs: Mapping[str, str]) -> tuple[CreatableTopicConfigs, ...]:
    return for_create(describe_topic(configs, broker.configs))


def _not_created(name: str, refused: ApiError) -> CreatableTopicResult:
    # Like Kafka: an empty list of configs, not null, which some clients cannot read.
    return CreatableTopicResult(name=name, error_code=refused.code, error_message=str(refused), configs=())


async def create_partitions(
    broker: Broker, request: CreatePartitionsRequest, context: Context
) -> CreatePartitionsResponse:
    repeated = _repeated(topic.name for topic in request.topics)
    results = {name: _not_grown(name, InvalidRequest("Duplicate topic name.")) for name in repeated}
    allowed: list[tuple[CreatePartitionsTopic, TopicState]] = []
    turns = Turns()
    for topic in request.topics:
        if turns.are_over():
            await asyncio.sleep(0)
        if topic.name not in repeated:
            try:
                allowed.append((topic, _growable(broker, topic)))
            except ApiError as refused:
                results[topic.name] = _not_grown(topic.name, refused)
    try:
        added = sum(topic.count - len(state.partitions) for topic, state in allowed)
        placement.check_added(added)
        broker.topic_limits.check_room(added)
    except ApiError as refused:
        results |= {topic.name: _not_grown(topic.name, refused) for topic, _ in allowed}
        allowed = []
    for topic, state in allowed:
        results[topic.name] = await _grow(broker, topic, state, request, context)
        await asyncio.sleep(0)
    return CreatePartitionsResponse(results=tuple(results.values()))


def _growable(broker: Broker, topic: CreatePartitionsTopic) -> TopicState:
    state = broker.topics.by_name.get(topic.name)
    if state is None:
        raise UnknownTopicOrPartition(f"The topic '{topic.name}' does not exist.")
    if state.entry.is_internal:
        # The partition of a group depends on their number: existing state would not be found again.
        raise InvalidPartitions(f"The number of partitions of '{topic.name}' cannot be changed.")
    placement.check_growth(topic, len(state.partitions), broker.topology.node_ids)
    return state


async def _grow(
    broker: Broker, topic: CreatePartitionsTopic, state: TopicState, request: CreatePartitionsRequest, context: Context
) -> CreatePartitionsTopicResult:
    if not request.validate_only:
        try:
            chosen = [one.broker_ids for one in topic.assignments or ()]
            await broker.administration.grow(state, topic.count, chosen, request.timeout_ms)
        except ApiError as refused:
            return _not_grown(topic.name, refused)
        _logger.info("increased topic %s to %d partitions for %s", topic.name, topic.count, context)
    return CreatePartitionsTopicResult(name=topic.name, error_code=ErrorCode.NONE)


def _not_grown(name: str, refused: ApiError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=refused.code, error_message=str(refused))


def _repeated(names: Iterable[str]) -> dict[str, None]:
    """The duplicate names, in order."""
    return {name: None for name, times in Counter(names).items() if times > 1}
