"""DeleteRecords (21): a partition forgets what is below an offset.

It is forgotten at once for every reader, and once it is answered no crash brings it back: the new start is on the disk
then. (Kafka writes it with its next checkpoint.) As in Kafka, the space is reclaimed when old segments are next
looked for.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.partition import NO_EPOCH
from ottla.broker.turns import Turns
from ottla.core.errors import ApiError, ErrorCode, InvalidTopic, OffsetOutOfRange, PolicyViolation
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.wire.messages.delete_records import DeleteRecordsPartition

_logger: Final = logging.getLogger(__name__)

_HIGH_WATERMARK: Final = -1
_NO_OFFSET: Final = -1


async def delete_records(broker: Broker, request: DeleteRecordsRequest, context: Context) -> DeleteRecordsResponse:
    # Each once, as from Kafka: of a partition that is named twice the last offset counts.
    wanted: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update((one.partition_index, one) for one in topic.partitions)
    turns = Turns()
    results: dict[str, list[DeleteRecordsPartitionResult]] = {name: [] for name in wanted}
    for name, partitions in wanted.items():
        for one in partitions.values():
            results[name].append(_result(broker, name, one, context))
            if turns.are_over():
                await asyncio.sleep(0)
    # Also where nothing had to be deleted: who did that before may not have got it to the disk.
    if any(one.error_code == ErrorCode.NONE for found in results.values() for one in found):
        try:
            await broker.maintenance.checkpoint()
        except ApiError as failed:
            _logger.error("records may be back after a crash: %s", failed)
            results = {name: [_not_durable(one, failed) for one in found] for name, found in results.items()}
    return DeleteRecordsResponse(
        topics=tuple(DeleteRecordsTopicResult(name=name, partitions=tuple(found)) for name, found in results.items())
    )


def _result(
    broker: Broker, topic: str, wanted: DeleteRecordsPartition, context: Context
) -> DeleteRecordsPartitionResult:
    index = wanted.partition_index
    try:
        low_watermark = _delete(broker, topic, wanted)
    except ApiError as refused:
        _logger.info("records of %s-%d not deleted for %s: %s", topic, index, context, refused)
        return _refusal(index, refused.code)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark, error_code=ErrorCode.NONE)


def _not_durable(result: DeleteRecordsPartitionResult, failed: ApiError) -> DeleteRecordsPartitionResult:
    return result if result.error_code != ErrorCode.NONE else _refusal(result.partition_index, failed.code)


def _refusal(partition_index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=partition_index, low_watermark=_NO_OFFSET, error_code=code)


def _delete(broker: Broker, topic: str, wanted: DeleteRecordsPartition) -> int:
    partition = broker.topics.partition(topic, wanted.partition_index)
    if broker.topics.by_name[topic].entry.is_internal:
        raise InvalidTopic(f"Cannot delete records of internal topic {topic}")
    partition.check_leader(NO_EPOCH)
    log = partition.log
    if log.config.cleanup_policy == "compact":
        raise PolicyViolation(f"Records of partition {partition.at} can not be deleted due to the configured policy")
    offset = partition.high_watermark if wanted.offset == _HIGH_WATERMARK else wanted.offset
    if not 0 <= offset <= partition.high_watermark:
        raise OffsetOutOfRange(f"{offset} is not in 0..{partition.high_watermark}")
    # Below the start there is nothing left to delete, which is no error.
    if offset > log.start_offset:
        log.raise_start(offset)
    return log.start_offset
