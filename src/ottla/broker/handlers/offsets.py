"""ListOffsets (2) and OffsetForLeaderEpoch (23)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.broker.batches.timestamp_search import TimestampSearch
from ottla.broker.requests.turns import Turns
from ottla.core.errors import ApiError, ErrorCode, InvalidRequest
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns

_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6
_SPECIAL_SINCE: Final = {
    _LATEST: 1,
    _EARLIEST: 1,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
"""Special timestamps, and the first version that supports them."""
_NEVER: Final = 1 << 15
_NONE: Final = -1


class _UnsupportedVersion(ApiError):
    code = ErrorCode.UNSUPPORTED_VERSION


async def list_offsets(broker: Broker, request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    turns = Turns()
    topics = []
    seen: set[tuple[str, int]] = set()
    allowance = broker.inflating.allowance()
    for topic in request.topics:
        partitions = []
        for wanted in topic.partitions:
            try:
                _check_wanted(topic.name, wanted, context, seen)
                partition = broker.topics.partition(topic.name, wanted.partition_index)
                partition.check_leader(wanted.current_leader_epoch)
                partitions.append(await _listed(TimestampSearch(broker, partition, allowance), wanted, request))
            except ApiError as refused:
                partitions.append(
                    ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=refused.code)
                )
            if turns.are_over():
                await asyncio.sleep(0)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(partitions)))
    return ListOffsetsResponse(topics=tuple(topics))


def _check_wanted(name: str, wanted: ListOffsetsPartition, context: Context, seen: set[tuple[str, int]]) -> None:
    key = name, wanted.partition_index
    if key in seen:
        # Duplicates are rejected as in Kafka: otherwise one request could search the same log a million times.
        raise InvalidRequest(f"{name}-{wanted.partition_index} is requested twice")
    seen.add(key)
    if wanted.timestamp < 0 and context.version < _SPECIAL_SINCE.get(wanted.timestamp, _NEVER):
        raise _UnsupportedVersion(f"version {context.version} does not support timestamp {wanted.timestamp}")


async def _listed(
    search: TimestampSearch, wanted: ListOffsetsPartition, request: ListOffsetsRequest
) -> ListOffsetsPartitionResponse:
    partition = search.partition
    if request.replica_id >= 0:
        until = partition.role.end_for_followers(request.isolation_level)
    else:
        if wanted.timestamp == _LATEST:
            partition.check_settled()
        until = partition.readable_until(request.isolation_level)
    timestamp, offset, epoch = await _found(search, wanted.timestamp, until)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch,
    )


async def _found(search: TimestampSearch, timestamp: int, until: int) -> tuple[int, int, int]:
    partition = search.partition
    log = partition.log
    if timestamp == _LATEST:
        return _NONE, until, partition.leader_epoch
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        return _NONE, log.start_offset, partition.leader_epochs.epoch_at(log.start_offset)
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _NONE, _NONE, _NONE
    found = await search.newest() if timestamp == _MAX_TIMESTAMP else await search.first_since(timestamp)
    if found is None or found.offset >= until:
        return _NONE, _NONE, _NONE
    return found


def offset_for_leader_epoch(
    broker: Broker, request: OffsetForLeaderEpochRequest, _context: Context
) -> InTurns[OffsetForLeaderEpochResponse]:
    turns = Turns()
    topics = []
    for topic in request.topics:
        partitions = []
        for wanted in topic.partitions:
            partitions.append(_epoch_end(broker, topic.topic, wanted))
            if turns.are_over():
                yield
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(partitions)))
    return OffsetForLeaderEpochResponse(topics=tuple(topics))


def _epoch_end(broker: Broker, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = broker.topics.partition(topic, wanted.partition)
        partition.check_leader(wanted.current_leader_epoch)
        epoch, end = partition.leader_epochs.end_of(wanted.leader_epoch, partition.log.next_offset)
    except ApiError as refused:
        return EpochEndOffset(partition=wanted.partition, error_code=refused.code)
    return EpochEndOffset(partition=wanted.partition, error_code=ErrorCode.NONE, leader_epoch=epoch, end_offset=end)
