"""DeleteTopics (20): by name, or since version 6 by name or id.

A topic is deleted when the response is sent; its files are removed in the background. Internal topics can
be deleted, as in Kafka; __consumer_offsets contains all groups and their offsets.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

from ottla.broker.requests.turns import Turns
from ottla.core.errors import ApiError, ErrorCode, InvalidRequest, InvalidTopic, UnknownTopicId, UnknownTopicOrPartition
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.topics import TopicState

_logger: Final = logging.getLogger(__name__)

_BY_ID_SINCE: Final = 6


async def delete_topics(broker: Broker, request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse:
    results = []
    found: Counter[TopicState] = Counter()
    turns = Turns()
    for wanted, times in Counter(_wanted(request, context)).items():
        try:
            found[_find(broker, wanted, times)] += 1
        except ApiError as refused:
            results.append(_result(wanted.name, wanted.topic_id, refused))
        if turns.are_over():
            await asyncio.sleep(0)
    for state, times in found.items():
        results.append(await _delete(broker, state, times, context))
        # Other requests are served between the fsyncs.
        await asyncio.sleep(0)
    return DeleteTopicsResponse(responses=tuple(results))


def _wanted(request: DeleteTopicsRequest, context: Context) -> Iterable[DeleteTopicState]:
    if context.version >= _BY_ID_SINCE:
        return request.topics
    return (DeleteTopicState(name=name, topic_id=NO_UUID) for name in request.topic_names)


def _find(broker: Broker, wanted: DeleteTopicState, times: int) -> TopicState:
    name, raw_id = wanted.name, wanted.topic_id
    if name is None and raw_id == NO_UUID:
        raise InvalidRequest("Neither topic name nor id were specified.")
    if name is not None and raw_id != NO_UUID:
        raise InvalidRequest("You may not specify both topic name and topic id.")
    if times > 1:
        raise InvalidRequest(f"Duplicate topic {'id' if name is None else 'name'}.")
    state = broker.topics.by_id.get(raw_id) if name is None else broker.topics.by_name.get(name)
    if state is not None:
        return state
    if name is None:
        raise UnknownTopicId("This server does not host this topic ID.")
    raise UnknownTopicOrPartition(f"The topic '{name}' does not exist.")


async def _delete(broker: Broker, state: TopicState, times: int, context: Context) -> DeletableTopicResult:
    try:
        if times > 1:
            raise InvalidRequest("The provided topic name maps to an ID that was already supplied.")
        if state.entry.is_internal and not broker.config.allow_internal_topic_deletion:
            raise InvalidTopic(
                f"{state.name} is an internal topic; to delete it, start the broker with "
                "broker.allow_internal_topic_deletion = true"
            )
        await broker.administration.delete_topic(state)
    except ApiError as refused:
        _logger.info("could not delete topic %s for %s: %s", state.name, context, refused)
        return _result(state.name, state.raw_id, refused)
    _logger.info("deleted topic %s for %s", state.name, context)
    return _result(state.name, state.raw_id)


def _result(name: str | None, raw_id: bytes, refused: ApiError | None = None) -> DeletableTopicResult:
    if refused is None:
        return DeletableTopicResult(name=name, topic_id=raw_id, error_code=ErrorCode.NONE)
    return DeletableTopicResult(name=name, topic_id=raw_id, error_code=refused.code, error_message=str(refused))
