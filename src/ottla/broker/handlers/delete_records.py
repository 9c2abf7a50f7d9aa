"""DeleteRecords (21): a partition forgets what is below an offset.

It is forgotten at once for every reader. As in Kafka, the space is reclaimed when old segments are next looked for,
and a crash before the next checkpoint may bring records back.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

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
    from ottla.broker.turns import InTurns
    from ottla.wire.messages.delete_records import DeleteRecordsPartition

_logger: Final = logging.getLogger(__name__)

_HIGH_WATERMARK: Final = -1
_NO_OFFSET: Final = -1


def delete_records(broker: Broker, request: DeleteRecordsRequest, context: Context) -> InTurns[DeleteRecordsResponse]:
    # Each once, as from Kafka: of a partition that is named twice the last offset counts.
    wanted: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update((one.partition_index, one) for one in topic.partitions)
    turns = Turns()
    topics = []
    for name, partitions in wanted.items():
        results = []
        for one in partitions.values():
            results.append(_result(broker, name, one, context))
            if turns.are_over():
                yield
        topics.append(DeleteRecordsTopicResult(name=name, partitions=tuple(results)))
    return DeleteRecordsResponse(topics=tuple(topics))


def _result(
    broker: Broker, topic: str, wanted: DeleteRecordsPartition, context: Context
) -> DeleteRecordsPartitionResult:
    code, low_watermark = ErrorCode.NONE, _NO_OFFSET
    try:
        low_watermark = _delete(broker, topic, wanted)
    except ApiError as refused:
        code = refused.code
        _logger.info("records of %s-%d not deleted for %s: %s", topic, wanted.partition_index, context, refused)
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index, low_watermark=low_watermark, error_code=code
    )


def _delete(broker: Broker, topic: str, wanted: DeleteRecordsPartition) -> int:
    partition = broker.topics.partition(topic, wanted.partition_index)
    if broker.topics.by_name[topic].entry.is_internal:
        raise InvalidTopic(f"Cannot delete records of internal topic {topic}")
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
