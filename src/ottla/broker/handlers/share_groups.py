"""ShareGroupHeartbeat (76), ShareGroupDescribe (77), DescribeShareGroupOffsets (90), AlterShareGroupOffsets (91),
DeleteShareGroupOffsets (92).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.core.errors import ApiError, ErrorCode
from ottla.share.formats import StateKey
from ottla.share.group import Caller
from ottla.wire.messages import alter_share_group_offsets as alter
from ottla.wire.messages import delete_share_group_offsets as delete
from ottla.wire.messages import describe_share_group_offsets as offsets
from ottla.wire.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.share.group import ShareGroup
    from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


def share_group_heartbeat(
    broker: Broker, request: ShareGroupHeartbeatRequest, context: Context
) -> Coroutine[object, object, ShareGroupHeartbeatResponse]:
    return broker.share.heartbeat(request, Caller(context.client_id, context.client_host))


def share_group_describe(
    broker: Broker, request: ShareGroupDescribeRequest, _context: Context
) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(groups=tuple(_described(broker, group_id) for group_id in request.group_ids))


def _described(broker: Broker, group_id: str) -> DescribedGroup:
    error, message = broker.share.refusal(group_id)
    group = broker.share.groups.get(group_id)
    if group is not None and error is ErrorCode.NONE:
        names = {topic_id: state.name for topic_id, state in broker.topics.by_id.items()}
        return group.described(names)
    return DescribedGroup(
        error_code=error or ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=message or f"Group {group_id} not found.",
        group_id=group_id,
        group_state="Dead",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )


# Offsets


async def describe_share_group_offsets(
    broker: Broker, request: offsets.DescribeShareGroupOffsetsRequest, _context: Context
) -> offsets.DescribeShareGroupOffsetsResponse:
    groups = [await _offsets_of(broker, one) for one in request.groups]
    return offsets.DescribeShareGroupOffsetsResponse(groups=tuple(groups))


async def _offsets_of(
    broker: Broker, wanted: offsets.DescribeShareGroupOffsetsRequestGroup
) -> offsets.DescribeShareGroupOffsetsResponseGroup:
    error, message = broker.share.refusal(wanted.group_id)
    group = broker.share.groups.get(wanted.group_id)
    if group is None or error is not ErrorCode.NONE:
        return offsets.DescribeShareGroupOffsetsResponseGroup(
            group_id=wanted.group_id,
            topics=(),
            error_code=error or ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=message or f"Group {wanted.group_id} not found.",
        )
    asked = wanted.topics
    topics = (
        [(one.name, tuple(sorted(one.partitions))) for one in group.initialized.values()]
        if asked is None
        else [(one.topic_name, one.partitions) for one in asked]
    )
    return offsets.DescribeShareGroupOffsetsResponseGroup(
        group_id=group.id,
        topics=tuple([await _offsets_of_topic(broker, group, name, partitions) for name, partitions in topics]),
        error_code=ErrorCode.NONE,
    )


async def _offsets_of_topic(
    broker: Broker, group: ShareGroup, name: str, partitions: tuple[int, ...]
) -> offsets.DescribeShareGroupOffsetsResponseTopic:
    state = broker.topics.by_name.get(name)
    topic_id = bytes(16) if state is None else state.raw_id
    return offsets.DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic_id,
        partitions=tuple(
            await asyncio.gather(*(_offset_of(broker, group, name, topic_id, index) for index in partitions))
        ),
    )


async def _offset_of(
    broker: Broker, group: ShareGroup, name: str, topic_id: bytes, index: int
) -> offsets.DescribeShareGroupOffsetsResponsePartition:
    answer = offsets.DescribeShareGroupOffsetsResponsePartition
    try:
        partition = broker.topics.partition(name, index)
        key = StateKey(group_id=group.id, topic_id=topic_id, partition=index)
        found = await broker.share.states.progress(key, partition) if broker.share.has_consumed(group) else None
        if found is None:
            return answer(partition_index=index, start_offset=-1, leader_epoch=0, error_code=ErrorCode.NONE)
    except ApiError as refused:
        return answer(
            partition_index=index, start_offset=-1, leader_epoch=0, error_code=refused.code, error_message=str(refused)
        )
    return answer(
        partition_index=index,
        start_offset=found.start,
        leader_epoch=partition.leader_epoch,
        lag=found.lag,
        error_code=ErrorCode.NONE,
    )


async def alter_share_group_offsets(
    broker: Broker, request: alter.AlterShareGroupOffsetsRequest, _context: Context
) -> alter.AlterShareGroupOffsetsResponse:
    share = broker.share
    error, message = share.refusal(request.group_id)
    if error is ErrorCode.NONE and share.groups.get(request.group_id) is not None:
        try:
            share.empty_group(request.group_id)
        except ApiError as refused:
            error, message = refused.code, str(refused)
    if error is not ErrorCode.NONE:
        return alter.AlterShareGroupOffsetsResponse(error_code=error, error_message=message, responses=())
    topics = []
    for topic in request.topics:
        state = broker.topics.by_name.get(topic.topic_name)
        results = [await _moved(broker, request.group_id, topic.topic_name, one) for one in topic.partitions]
        topics.append(
            alter.AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=bytes(16) if state is None else state.raw_id,
                partitions=tuple(results),
            )
        )
    return alter.AlterShareGroupOffsetsResponse(error_code=ErrorCode.NONE, responses=tuple(topics))


async def _moved(
    broker: Broker, group_id: str, topic: str, wanted: alter.AlterShareGroupOffsetsRequestPartition
) -> alter.AlterShareGroupOffsetsResponsePartition:
    code, message = ErrorCode.NONE, None
    try:
        await broker.share.move(group_id, topic, wanted.partition_index, wanted.start_offset)
    except ApiError as refused:
        code, message = refused.code, str(refused)
    return alter.AlterShareGroupOffsetsResponsePartition(
        partition_index=wanted.partition_index, error_code=code, error_message=message
    )


async def delete_share_group_offsets(
    broker: Broker, request: delete.DeleteShareGroupOffsetsRequest, _context: Context
) -> delete.DeleteShareGroupOffsetsResponse:
    share = broker.share
    error, message = share.refusal(request.group_id)
    try:
        if error is ErrorCode.NONE:
            share.empty_group(request.group_id)
    except ApiError as refused:
        error, message = refused.code, str(refused)
    if error is not ErrorCode.NONE:
        return delete.DeleteShareGroupOffsetsResponse(error_code=error, error_message=message, responses=())
    results = [await _forgotten(broker, request.group_id, topic.topic_name) for topic in request.topics]
    return delete.DeleteShareGroupOffsetsResponse(error_code=ErrorCode.NONE, responses=tuple(results))


async def _forgotten(broker: Broker, group_id: str, topic: str) -> delete.DeleteShareGroupOffsetsResponseTopic:
    state = broker.topics.by_name.get(topic)
    code, message = ErrorCode.NONE, None
    if state is None:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"unknown topic {topic}"
    else:
        try:
            await broker.share.forget_topic(group_id, state.raw_id)
        except ApiError as refused:
            code, message = refused.code, str(refused)
    return delete.DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic,
        topic_id=bytes(16) if state is None else state.raw_id,
        error_code=code,
        error_message=message,
    )
