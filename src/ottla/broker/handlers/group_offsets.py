"""OffsetCommit (8), OffsetFetch (9), OffsetDelete (47)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.broker.requests.turns import Turns
from ottla.core.errors import ApiError, ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
    from ottla.groups.records import OffsetCommitValue

_BY_ID_SINCE: Final = 10
_GROUPS_SINCE: Final = 8
_NO_OFFSET: Final = -1
_COMMITTED_AT_ONCE: Final = 5000


async def offset_commit(broker: Broker, request: OffsetCommitRequest, context: Context) -> OffsetCommitResponse:
    topics: list[OffsetCommitResponseTopic] = []
    for number, piece in enumerate(_pieces(request.topics)):
        if number > 0:
            await asyncio.sleep(0)
        topics += await _commit(broker, msgspec.structs.replace(request, topics=piece), context)
    return OffsetCommitResponse(topics=tuple(topics))


def _pieces(topics: tuple[OffsetCommitRequestTopic, ...]) -> Iterator[tuple[OffsetCommitRequestTopic, ...]]:
    """Process all at once, or in time slices for many partitions."""
    piece: list[OffsetCommitRequestTopic] = []
    size = 0
    for topic in topics:
        for start in range(0, len(topic.partitions) or 1, _COMMITTED_AT_ONCE):
            partitions = topic.partitions[start : start + _COMMITTED_AT_ONCE]
            piece.append(msgspec.structs.replace(topic, partitions=partitions))
            size += 1 + len(partitions)
            if size >= _COMMITTED_AT_ONCE:
                yield tuple(piece)
                piece, size = [], 0
    if piece or not topics:
        yield tuple(piece)


async def _commit(
    broker: Broker, request: OffsetCommitRequest, context: Context
) -> tuple[OffsetCommitResponseTopic, ...]:
    groups = broker.groups
    if error := groups.error_for(request.group_id):
        return _all_refused(request, error)
    if broker.is_share_group(request.group_id):
        return _all_refused(request, ErrorCode.GROUP_ID_NOT_FOUND)
    known, refused = _sorted_out(broker, request, is_by_id=context.version >= _BY_ID_SINCE)
    response, actions = groups.rules.offsets.commit(
        msgspec.structs.replace(request, topics=known), context.version, groups.now_ms()
    )
    error = await groups.persist(actions)
    if error:
        return _all_refused(request, error)
    return (*response.topics, *refused)


def _sorted_out(
    broker: Broker, request: OffsetCommitRequest, *, is_by_id: bool
) -> tuple[tuple[OffsetCommitRequestTopic, ...], list[OffsetCommitResponseTopic]]:
    """The offsets of existing partitions by name, and the response for the others."""
    known, refused = [], []
    for topic in request.topics:
        parts, errors = [], []
        name = topic.name
        for part in topic.partitions:
            try:
                if is_by_id:
                    name = broker.topics.partition_by_id(topic.topic_id, part.partition_index).at.topic
                else:
                    broker.topics.partition(name, part.partition_index)
                parts.append(part)
            except ApiError as unknown:
                errors.append(
                    OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=unknown.code)
                )
        if parts:
            # Stored with the offset, so that a re-created topic does not inherit it.
            topic_id = broker.topics.by_name[name].raw_id
            known.append(msgspec.structs.replace(topic, name=name, topic_id=topic_id, partitions=tuple(parts)))
        if errors:
            refused.append(
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(errors))
            )
    return tuple(known), refused


def _all_refused(request: OffsetCommitRequest, error: ErrorCode) -> tuple[OffsetCommitResponseTopic, ...]:
    return tuple(
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=error)
                for part in topic.partitions
            ),
        )
        for topic in request.topics
    )


def offset_fetch(broker: Broker, request: OffsetFetchRequest, context: Context) -> InTurns[OffsetFetchResponse]:
    turns = Turns()
    if context.version >= _GROUPS_SINCE:
        is_by_id = context.version >= _BY_ID_SINCE
        groups = []
        for group in request.groups:
            fetched = yield from _fetched(
                broker, group, turns, is_by_id=is_by_id, requires_stable=request.require_stable
            )
            groups.append(fetched)
            if turns.are_over():
                yield
        return OffsetFetchResponse(groups=tuple(groups))
    wanted = None
    if request.topics is not None:
        wanted = tuple(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        )
    only = OffsetFetchRequestGroup(group_id=request.group_id, topics=wanted)
    found = yield from _fetched(broker, only, turns, is_by_id=False, requires_stable=request.require_stable)
    return _of_one_group(found)


def _of_one_group(found: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """The response before version 8."""
    return OffsetFetchResponse(
        error_code=found.error_code,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=part.partition_index,
                        committed_offset=part.committed_offset,
                        committed_leader_epoch=part.committed_leader_epoch,
                        metadata=part.metadata,
                        error_code=part.error_code,
                    )
                    for part in topic.partitions
                ),
            )
            for topic in found.topics
        ),
    )


def _fetched(
    broker: Broker, group: OffsetFetchRequestGroup, turns: Turns, *, is_by_id: bool, requires_stable: bool
) -> InTurns[OffsetFetchResponseGroup]:
    if error := broker.groups.error_for(group.group_id):
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=error)
    if error := broker.groups.rules.offsets.check_fetch(group.group_id, group.member_id, group.member_epoch):
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=error)
    wanted = _all_of(broker, group.group_id) if group.topics is None else group.topics
    topics = []
    for topic in wanted:
        fetched = yield from _fetched_topic(
            broker, group.group_id, topic, turns, is_by_id=is_by_id, requires_stable=requires_stable
        )
        topics.append(fetched)
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=tuple(topics))


def _all_of(broker: Broker, group_id: str) -> tuple[OffsetFetchRequestTopics, ...]:
    partitions: dict[str, list[int]] = {}
    for at in broker.groups.rules.offsets.all(group_id):
        partitions.setdefault(at.topic, []).append(at.partition)
    found = []
    for name, indexes in partitions.items():
        state = broker.topics.by_name.get(name)
        if state is not None:
            found.append(
                OffsetFetchRequestTopics(name=name, topic_id=state.raw_id, partition_indexes=tuple(sorted(indexes)))
            )
    return tuple(found)


def _fetched_topic(  # noqa: PLR0913
    broker: Broker,
    group_id: str,
    topic: OffsetFetchRequestTopics,
    turns: Turns,
    *,
    is_by_id: bool,
    requires_stable: bool,
) -> InTurns[OffsetFetchResponseTopics]:
    state = broker.topics.by_id.get(topic.topic_id) if is_by_id else broker.topics.by_name.get(topic.name)
    is_unknown = is_by_id and state is None
    error = ErrorCode.UNKNOWN_TOPIC_ID if is_unknown else ErrorCode.NONE
    name = state.name if state else topic.name
    topic_id = state.raw_id if state else NO_UUID
    offsets = broker.groups.rules.offsets
    partitions = []
    for index in topic.partition_indexes:
        at = TopicPartition(name, index)
        if requires_stable and not is_unknown and offsets.is_unstable(group_id, at):
            partitions.append(_fetched_partition(index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        else:
            value = None if is_unknown else offsets.get(group_id, at, topic_id)
            partitions.append(_fetched_partition(index, value, error))
        if turns.are_over():
            yield
    return OffsetFetchResponseTopics(name=name, topic_id=topic.topic_id, partitions=tuple(partitions))


def _fetched_partition(index: int, value: OffsetCommitValue | None, error: ErrorCode) -> OffsetFetchResponsePartitions:
    if value is None:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=error
        )
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        error_code=error,
    )


async def offset_delete(broker: Broker, request: OffsetDeleteRequest, _context: Context) -> OffsetDeleteResponse:
    if error := broker.groups.error_for(request.group_id):
        return OffsetDeleteResponse(error_code=error, topics=())
    response, actions = broker.groups.rules.offsets.delete(request)
    error = await broker.groups.persist(actions)
    if error:
        return OffsetDeleteResponse(error_code=error, topics=())
    return msgspec.structs.replace(response, topics=tuple(_known_only(broker, topic) for topic in response.topics))


def _known_only(broker: Broker, topic: OffsetDeleteResponseTopic) -> OffsetDeleteResponseTopic:
    state = broker.topics.by_name.get(topic.name)
    count = len(state.partitions) if state else 0
    return msgspec.structs.replace(
        topic,
        partitions=tuple(
            part
            if part.partition_index in range(count)
            else msgspec.structs.replace(part, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for part in topic.partitions
        ),
    )
